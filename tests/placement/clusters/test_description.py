"""The TOML description of clusters: what it says, and what is wrong with it in one line."""

from __future__ import annotations

import pytest
from descriptions import description_of

from metasched.node_names import unfold
from metasched.records import InputError
from metasched.store.files.descriptions import read_description

WHOLE = """
[[cluster]]
name = "east"
queue_wait = 30

[[cluster.nodes]]
names = "e[1-2]"
processors = 4
available_cpu = [0.5, 1.0]
available_bandwidth = 940.0
memory = 64000
features = ["ib"]

[[cluster.nodes]]
names = "f1"
speed = 0.8

[[cluster.switches]]
name = "rack"
nodes = "e[1-2]"
uplink = 100.0

[[cluster.switches]]
name = "top"
nodes = "f1"
switches = "rack"
"""


def one(**nodes):
    return {"cluster": [{"name": "east", "nodes": [{"names": "e[1-2]", **nodes}]}]}


def with_switches(*switches):
    return {"cluster": [{"name": "east", "nodes": [{"names": "e[1-2]"}], "switches": list(switches)}]}


def test_a_whole_file_is_read(tmp_path) -> None:
    path = tmp_path / "clusters.toml"
    path.write_text(WHOLE)
    [east] = read_description(path).clusters
    assert east.nodes == ("e1", "e2", "f1")
    assert east.processors.tolist() == [4, 4, 1]
    assert east.effective_cpu.tolist() == [0.5, 1.0, 0.8]
    assert east.features == (frozenset({"ib"}), frozenset({"ib"}), frozenset())
    assert east.queue_wait.at(4) == 30
    assert east.network.bandwidth(east.available_bandwidth, [0, 1]) == 940
    assert east.network.bandwidth(east.available_bandwidth, [0, 2]) == 100


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ({}, "cluster is missing"),
        ({"cluster": []}, "cluster is empty, expected at least one"),
        ({"clusters": [], "cluster": one()["cluster"]}, "clusters is not a known key"),
        (one(cpu=1), r"cluster\[0\].nodes\[0\].cpu is not a known key"),
        (one(available_cpu=0), r"nodes\[0\].available_cpu is 0, expected greater than 0"),
        (one(available_cpu=[0.5, 1.5]), r"available_cpu\[1\] is 1.5, expected less than or equal to 1"),
        (one(available_cpu=[0.5]), r"available_cpu of e\[1-2\] has 1 values, expected one or 2"),
        (one(available_bandwidth=0), "available_bandwidth is 0, expected greater than 0"),
        (one(available_bandwidth=float("nan")), "available_bandwidth is nan, expected a finite number"),
        (one(link=0), "link is 0, expected greater than 0"),
        (one(link=[1.0]), r"link of e\[1-2\] has 1 values, expected one or 2"),
        (one(link=100.0, available_bandwidth=[90.0, 200.0]), "is 200, expected at most the link, 100"),
        (one(processors=0), "processors is 0, expected greater than or equal to 1"),
        (one(processors=1.5), "processors is 1.5, expected a valid integer"),
        (one(speed=-1), "speed is -1, expected greater than 0"),
        (one(memory=-1), "memory is -1, expected greater than 0"),
        (one(names="e[1-"), "is not a set of node names"),
        (one(names="e1,e1"), "cluster east: node e1 is given twice"),
        ({"cluster": one()["cluster"] * 2}, "cluster east is given twice"),
        (
            {"cluster": [one()["cluster"][0] | {"running": [{"nodes": "e2,e[1-2]", "computation": 5.0}]}]},
            "cluster east: running: node e2 is given twice for one job",
        ),
        (with_switches({"name": "s", "nodes": "e1"}), "node e2 is on no switch, expected every node on one"),
        (with_switches({"name": "s", "nodes": "e[1-3]"}), "s lists node e3, which is not described"),
        (with_switches({"name": "s", "nodes": "e[1-2]", "switches": "t"}), "s lists switch t, which is not described"),
        (with_switches({"name": "s", "nodes": "e[1-2]"}, {"name": "t", "nodes": "e1"}), "node e1 is on both s and t"),
        (with_switches({"name": "s", "nodes": "e[1-2]"}, {"name": "s"}), "switch s is given twice"),
        (with_switches({"name": "s", "nodes": "e[1-2]", "uplink": 0}), "uplink is 0, expected greater than 0"),
        (
            with_switches({"name": "s", "nodes": "e[1-2]", "switches": "t"}, {"name": "t", "switches": "s"}),
            "is part of a cycle, expected a tree",
        ),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_field(document, line) -> None:
    with pytest.raises(InputError, match=line) as error:
        description_of(document, where="clusters.toml")
    assert str(error.value).startswith("clusters.toml: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "(?i)no such file"),
        (b"\xff\xfe", "is not UTF-8"),
        (b"a = [", "is not valid TOML"),
        (b"a = " + b"9" * 5000, "is not valid TOML: it holds a number of more than 4300 digits"),
        (b"a = " + b"[" * 100_000, "is not valid TOML: it is nested too deeply"),
    ],
)
def test_a_file_that_is_no_toml_is_refused(tmp_path, content, line) -> None:
    path = tmp_path / "clusters.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=line):
        read_description(path)


def test_names_keep_the_order_of_their_commas() -> None:
    assert unfold("e2,e[5,1],d", where="names") == ["e2", "e1", "e5", "d"]


@pytest.mark.parametrize("names", ["e[1-99999999999]", "e[1-3000]x[1-3000]", "e[0-99999999999,99999999999-0]"])
def test_a_name_that_stands_for_very_many_nodes_is_refused_before_it_is_unfolded(names) -> None:
    with pytest.raises(InputError, match="is more than 2000000 nodes"):
        unfold(names, where="names")


def test_all_of_a_link_is_available_where_nothing_else_is_told() -> None:
    groups = [
        {"names": "a", "link": 100.0},
        {"names": "b[1-2]", "link": [100.0, 400.0], "available_bandwidth": 50.0},
        {"names": "c"},
    ]
    described = description_of({"cluster": [{"name": "east", "nodes": groups}]})
    assert described.clusters[0].available_bandwidth.tolist() == [100.0, 50.0, 50.0, 1000.0]
    assert described.links == {"a": 100.0, "b1": 100.0, "b2": 400.0}


@pytest.mark.parametrize(
    "steps",
    [
        [{"processors": 4, "seconds": 10.0}, {"processors": 2, "seconds": 20.0}],
        [{"processors": 2, "seconds": 20.0}, {"processors": 4, "seconds": 10.0}],
    ],
)
def test_a_wait_that_cannot_be_is_refused_with_its_place(steps) -> None:
    document = one()
    document["cluster"][0]["queue_wait"] = steps
    with pytest.raises(InputError, match="queue_wait: "):
        description_of(document, where="request")
