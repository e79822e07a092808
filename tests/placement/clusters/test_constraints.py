"""Demands on nodes and processors beside plain sets of them; tables of descriptions up to each bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from descriptions import description_of
from hypothesis import given
from hypothesis import strategies as st

from metasched.placement.clusters.constraints import Constraints, admit, parse_counts, unfold_names
from metasched.placement.clusters.from_slurm import cluster_from_slurm
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology
from metasched.records import InputError, Settings


@given(st.sets(st.integers(1, 12), max_size=4), st.integers(1, 12), st.none() | st.integers(0, 12), st.integers(0, 14))
def test_the_numbers_of_processors_are_those_that_every_demand_allows(
    named: set[int], least: int, more: int | None, available: int
) -> None:
    most = None if more is None else least + more
    demands = Constraints(processors=tuple(named), min_processors=least, max_processors=most)
    allowed = [
        count
        for count in range(1, available + 1)
        if (not named or count in named) and count >= least and (most is None or count <= most)
    ]
    assert demands.counts(available).tolist() == allowed
    limits = [*([most] if most is not None else []), *([max(named)] if named else [])]
    assert demands.most == (min(limits) if limits else None)


@pytest.mark.parametrize("text", ["", "0", "-", "1-", "-4", "4-2", "1.5", "x", "1,,x", "10000001", "1-10000001"])
def test_what_is_no_number_of_processors_is_refused(text: str) -> None:
    if text == "":
        assert parse_counts(text) == ()
    else:
        with pytest.raises(InputError, match="is not a"):
            parse_counts(text)


def test_numbers_of_processors_and_names_are_counted_before_they_are_unfolded() -> None:
    assert parse_counts(" 9-10 , 9,1") == (1, 9, 10)
    assert parse_counts("10000000") == (10_000_000,)
    assert len(parse_counts("1-10000")) == 10_000
    with pytest.raises(InputError, match=r"^processors names more than 10000 numbers, expected at most that many$"):
        parse_counts("1-10001")
    assert len(unfold_names("n[1-20000]", "exclude")) == 20_000
    with pytest.raises(InputError, match=r"^exclude: .*20000"):
        unfold_names("n[1-20001]", "exclude")


CLUSTER = ClusterState.make(
    "east", ["n0", "n1", "n2", "n3"], processors=[8, 0, 2, 4], memory=[100.0, 200.0, float("nan"), 50.0],
    jobs=[0, 1, 0, 1], up=[True, True, True, False],
    features=[frozenset({"ib", "gpu"}), frozenset({"ib"}), frozenset(), frozenset({"ib"})],
)  # fmt: skip

#: A demand, and which nodes it rules out; those of the cluster itself are n1, without processors, and n3, down.
DEMANDS: list[tuple[dict[str, Any], dict[str, list[int]]]] = [
    ({}, {}),
    ({"clusters": ("west", "south")}, {"cluster south or west only": [0, 1, 2, 3]}),
    ({"clusters": ("east", "west")}, {"cluster east or west only": []}),
    ({"exclude": "n[0,3]"}, {"excluded nodes": [0, 3]}),
    ({"memory": 100.0}, {"memory of 100 MB": [2, 3]}),
    ({"memory": 100.5}, {"memory of 100.5 MB": [0, 2, 3]}),
    ({"memory_per_processor": 12.5}, {"memory of 12.5 MB for each processor": [2]}),
    ({"memory_per_processor": 100.5}, {"memory of 100.5 MB for each processor": [0, 2, 3]}),
    ({"features": ("ib", "gpu")}, {"feature gpu": [1, 2, 3], "feature ib": [2]}),
    ({"exclusive": True}, {"exclusive nodes": [1, 3]}),
]


@pytest.mark.parametrize(("demand", "ruled_out"), DEMANDS)
def test_nodes_are_ruled_out_by_each_demand_that_they_fail(
    demand: dict[str, Any], ruled_out: dict[str, list[int]]
) -> None:
    every = {"down, drained or reserved": [3], "no free processor": [1]} | ruled_out
    constraints = Constraints(**demand)
    assert {name: np.flatnonzero(flags).tolist() for name, flags in constraints.excluded(CLUSTER).items()} == every
    left = [node for node in range(4) if not any(node in gone for gone in every.values())]
    assert np.flatnonzero(constraints.admitted(CLUSTER)).tolist() == left
    found = admit(CLUSTER, constraints)
    assert found.ruled_out == {name: len(gone) for name, gone in every.items() if gone}
    assert found.cluster.nodes == tuple(f"n{node}" for node in left)
    free = [8, 0, 2, 4]
    for per_node in (None, 1, 4, 9):
        offered = Constraints(**demand, per_node=per_node).offered(CLUSTER)
        assert offered.tolist() == [min(free[node], per_node or 99) if node in left else 0 for node in range(4)]


def test_each_node_offers_as_many_processors_as_it_has_memory_for() -> None:
    cluster = ClusterState.make(
        "east", ["n0", "n1", "n2", "n3"], processors=[8, 8, 2, 8], memory=[1000.0, 250.0, 1000.0, 99.0]
    )
    demand = Constraints(memory_per_processor=100.0)
    assert demand.offered(cluster).tolist() == [8, 2, 2, 0]
    assert demand.model_copy(update={"per_node": 5}).offered(cluster).tolist() == [5, 2, 2, 0]
    assert demand.laid_out(cluster, Settings(threads=2)).processors.tolist() == [4, 1, 1, 0]
    assert demand.laid_out(demand.laid_out(cluster)).processors.tolist() == [8, 2, 2, 0]


def test_a_cluster_of_which_all_nodes_are_left_stays_as_it_is() -> None:
    whole = ClusterState.make("east", ["n0", "n1"])
    assert admit(whole, Constraints()).cluster is whole
    assert admit(whole, Constraints()).ruled_out == {}


def test_demands_take_the_place_of_those_described_where_they_say_something() -> None:
    described = Constraints(max_processors=8, features=("gpu",), exclusive=True, memory=5.0)
    assert described.with_demands({"features": (), "exclusive": False, "memory": None}) is described
    assert described.with_demands({"memory": 7.0, "min_processors": 8}) == Constraints(
        max_processors=8, min_processors=8, features=("gpu",), exclusive=True, memory=7.0
    )
    with pytest.raises(InputError, match=r"^max_processors is 8, expected at least min_processors, 9$"):
        described.with_demands({"min_processors": 9})
    with pytest.raises(InputError, match="least_efficiency is 2, expected"):
        described.with_demands({"least_efficiency": 2})


def table(place: str, **fields: Any) -> dict[str, Any]:
    """A description with one table that has these fields besides what it needs."""
    cluster: dict[str, Any] = {"name": "east", "nodes": [{"names": "e[1-2]"}]}
    if place == "nodes":
        cluster["nodes"][0] |= fields
    elif place == "cluster":
        cluster |= fields
    elif place == "running":
        cluster["running"] = [{"nodes": "e1"} | fields]
    elif place == "wait":
        cluster["queue_wait"] = [{"processors": 1, "seconds": 0.0} | fields]
    return {"cluster": [cluster]}


APPLICATION = {"application": "cg", "problem_size": 5.0}
MATRIX = [[0.0, 5.0], [5.0, 0.0]]


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        ("nodes", {"processors": 1_000_000}),
        ("nodes", {"processors": [1, 2]}),
        ("nodes", {"available_cpu": 1}),
        ("nodes", {"jobs": 0}),
        ("nodes", {"jobs": 1_000_000}),
        ("nodes", {"age": 0}),
        ("nodes", {"speed": 1e-9}),
        ("running", {"computation": 1e-9}),
        ("running", {"computation": 5.0, "communication": 0.0}),
        ("running", APPLICATION),
        ("running", APPLICATION | {"communication": 0.0, "running_for": 0.0, "processors": 1}),
        ("wait", {"seconds": 0.0}),
        ("cluster", {"watts": 0.0, "idle_watts": 0.0}),
        ("cluster", {"bandwidth": MATRIX}),
    ],
)
def test_a_description_may_say_everything_up_to_its_bounds(place: str, fields: dict[str, Any]) -> None:
    (found,) = description_of(table(place, **fields)).clusters
    assert found.nodes == ("e1", "e2")


@pytest.mark.parametrize(
    ("place", "fields", "line"),
    [
        *[
            ("nodes", {name: wrong}, f"{name} is ")
            for name in ("processors", "jobs")
            for wrong in (1_000_001, "1", True, 1.0)
        ],
        ("nodes", {"jobs": -1}, "jobs is -1"),
        ("nodes", {"age": -1e-9}, "age is -1e-09"),
        ("nodes", {"available_cpu": 1.001}, "available_cpu is 1.001"),
        ("nodes", {"speed": 0.0}, "speed is 0"),
        ("nodes", {"memory": float("inf")}, "memory is inf"),
        ("running", {}, r"a job on e1 must have one of computation \(s\) and application"),
        (
            "running",
            {"computation": 5.0} | APPLICATION,
            r"a job on e1 must have one of computation \(s\) and application",
        ),
        ("running", {"application": "cg"}, "must have both application and problem_size, or none"),
        (
            "running",
            {"computation": 5.0, "problem_size": 5.0},
            "a job on e1 must have both application and problem_size",
        ),
        ("running", APPLICATION | {"communication": 1.0}, "has an application and communication, expected one"),
        ("running", {"computation": 0.0}, "computation is 0"),
        ("running", {"computation": 5.0, "processors": "1"}, "processors is"),
        ("running", {"computation": 5.0, "running_for": -1.0}, "running_for is -1"),
        ("wait", {"processors": 0}, "processors is 0"),
        ("wait", {"seconds": -1.0}, "seconds is -1"),
        ("cluster", {"name": ""}, "name is "),
        ("cluster", {"nodes": []}, "nodes is empty"),
        ("cluster", {"hosts": "h"}, "cluster east must have one of nodes, hosts and slurm"),
        ("cluster", {"nodes": None}, "cluster east must have one of nodes, hosts and slurm"),
        ("cluster", {"watts": 5.0, "hardware": "h"}, "cluster east has both watts and hardware, expected one of them"),
        ("cluster", {"watts": -1.0}, "watts is -1"),
        ("cluster", {"idle_watts": -1.0}, "idle_watts is -1"),
        (
            "cluster",
            {"nodes": None, "slurm": {"sinfo": "s"}, "switches": [{"name": "x"}]},
            "expected those of slurm.topology only",
        ),
        (
            "cluster",
            {"bandwidth": MATRIX, "switches": [{"name": "x", "nodes": "e[1-2]"}]},
            "cluster east has both switches and a bandwidth matrix, expected one of them",
        ),
        (
            "cluster",
            {"nodes": None, "slurm": {"sinfo": "s", "topology": "t"}, "bandwidth": MATRIX},
            "cluster east has both switches and a bandwidth matrix, expected one of them",
        ),
    ],
)
def test_what_a_description_may_not_say_is_refused_in_one_line(place: str, fields: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError, match=line) as refusal:
        description_of(table(place, **fields), where="clusters.toml")
    assert "\n" not in str(refusal.value)


def node(**changes: Any) -> dict[str, Any]:
    return {"name": "n0", "cpus": 8, "state": ["IDLE"], "partitions": ["long"]} | changes


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (8, 0, True, set())),
        ({"alloc_cpus": 3}, (5, 1, True, set())),
        ({"alloc_cpus": 9}, (0, 1, True, set())),
        ({"alloc_cpus": 3, "tres": "cpu=6,mem=1000M,billing=6"}, (3, 1, True, set())),  # two are kept for the system
        ({"tres": "mem=1000M,billing=2"}, (8, 0, True, set())),
        ({"tres": None}, (8, 0, True, set())),
        ({"tres": "cpu=9,gres/gpu=1"}, (8, 0, True, set())),
        ({"state": "mixed"}, (8, 0, True, set())),
        ({"state": "down"}, (8, 0, False, set())),
        ({"state": ["IDLE", "DRAIN"]}, (8, 0, False, set())),
        ({"state_flags": ["maint"]}, (8, 0, False, set())),
        ({"state_flags": ["RESERVED"]}, (8, 0, False, set())),
        ({"state": ["MIXED", "RESERVED"], "alloc_cpus": 2}, (6, 1, False, set())),
        ({"state_flags": ["PLANNED"]}, (8, 0, True, set())),
        ({"features": "ib,,gpu"}, (8, 0, True, {"ib", "gpu"})),
        ({"active_features": ["ib"], "features": ["x"]}, (8, 0, True, {"ib"})),
    ],
)
def test_a_node_of_slurm_is_read_in_each_of_its_forms(
    changes: dict[str, Any], expected: tuple[int, int, bool, set[str]]
) -> None:
    found = cluster_from_slurm("c", {"nodes": [node(**changes)]})
    assert (int(found.processors[0]), int(found.jobs[0]), bool(found.up[0]), set(found.features[0])) == expected
    assert np.isnan(found.memory[0])
    assert cluster_from_slurm("c", {"nodes": [node(real_memory=64)]}).memory[0] == 64.0


@pytest.mark.parametrize(
    ("changes", "memory", "processors"),
    [
        ({"alloc_memory": 900}, 100.0, 8),
        ({"alloc_memory": 900, "specialized_memory": 60}, 40.0, 8),
        ({"alloc_memory": 900, "specialized_memory": 100}, 0.0, 0),  # Slurm starts nothing more there
        ({"alloc_memory": 1200}, 0.0, 0),
    ],
)
def test_memory_that_jobs_have_is_not_free(changes: dict[str, Any], memory: float, processors: int) -> None:
    found = cluster_from_slurm("c", {"nodes": [node(real_memory=1000, **changes)]})
    assert (found.memory.tolist(), found.processors.tolist()) == ([memory], [processors])


def test_a_partition_of_slurm_has_its_nodes_and_others_are_named() -> None:
    every = {"nodes": [node(), node(name="n1", partitions=["short", "long"]), node(name="n2", partitions=["short"])]}
    assert cluster_from_slurm("c", every, partition="long").nodes == ("n0", "n1")
    assert cluster_from_slurm("c", every).nodes == ("n0", "n1", "n2")
    with pytest.raises(InputError, match=r"^f: no node in partition x, expected one of long, short$"):
        cluster_from_slurm("c", every, partition="x", where="f")


@given(st.data())
def test_every_domain_of_a_tree_holds_the_nodes_below_it_with_the_narrowest_link_on_their_way(
    data: st.DataObject,
) -> None:
    switches = data.draw(st.integers(1, 6))
    parent = [data.draw(st.integers(-1, number - 1)) for number in range(switches)]
    width = st.sampled_from([1.0, 5.0, 20.0, float("inf")])
    uplink = [data.draw(width) for _ in range(switches)]
    leaf = data.draw(st.lists(st.integers(0, switches - 1), min_size=1, max_size=6))
    link = [data.draw(st.sampled_from([2.0, 10.0, 50.0])) for _ in leaf]
    network = Topology(tuple(f"s{number}" for number in range(switches)), parent, uplink, leaf)  # type: ignore[arg-type]

    def way(node: int) -> dict[int, float]:
        """The switches above a node, each with the narrowest link up to it."""
        place, narrowest, found = leaf[node], link[node], {}
        while place >= 0:
            found[place] = narrowest
            narrowest, place = min(narrowest, uplink[place]), parent[place]
        return found

    ways = [way(node) for node in range(len(leaf))]
    switch, nodes, widths = network.domains(link)
    found = {(int(s), int(n)): float(w) for s, n, w in zip(switch, nodes, widths, strict=True)}
    assert found == {(s, n): w for n, each in enumerate(ways) for s, w in each.items()}
    assert len(found) == len(switch)
    kept = network.narrowed_above(switch, widths)
    assert kept.tolist() == [
        parent[s] < 0 or w > uplink[s] for s, w in zip(switch.tolist(), widths.tolist(), strict=True)
    ]
    chosen = data.draw(st.sets(st.integers(0, len(leaf) - 1), min_size=1))
    shared = [s for s in range(switches) if all(s in ways[n] for n in chosen)]
    best = max((min(ways[n][s] for n in chosen) for s in shared), default=0.0)
    assert network.bandwidth(link, sorted(chosen)) == (link[min(chosen)] if len(chosen) == 1 else best)
