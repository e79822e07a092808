"""Clusters from Slurm's own output (recorded from 22.05 with jobs, a drained and a down node) and from host lists."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from known_model import Known

from metasched.placement.clusters.from_hosts import cluster_from_hosts
from metasched.placement.clusters.from_slurm import cluster_from_slurm
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.ranking.query import Question
from metasched.placement.ranking.ranker import rank
from metasched.records import InputError
from metasched.store.files.descriptions import read_description

RECORDED = Path(__file__).parent / "slurm-22.05"
SINFO = json.loads((RECORDED / "sinfo.json").read_text())
TOPOLOGY = (RECORDED / "topology.conf").read_text()


def test_slurm_nodes_have_their_free_processors_states_and_switches() -> None:
    probe = cluster_from_slurm("probe", SINFO, TOPOLOGY, uplinks={"sa": 100.0})
    assert probe.nodes == ("a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4")
    assert probe.processors.tolist() == [4, 0, 2, 4, 4, 4, 4, 4]
    assert probe.up.tolist() == [True, True, True, True, False, False, True, True]
    assert probe.jobs.tolist() == [0, 1, 1, 0, 0, 0, 0, 0]
    assert probe.features[0] == {"racka"}
    assert probe.memory.tolist() == [1000.0] * 8
    assert probe.network.bandwidth(probe.available_bandwidth, [0, 1]) == 1000
    assert probe.network.bandwidth(probe.available_bandwidth, [0, 7]) == 100


def test_a_partition_leaves_its_own_nodes_though_switches_list_others() -> None:
    rack = cluster_from_slurm("probe", SINFO, TOPOLOGY, partition="rackb")
    assert rack.nodes == ("b1", "b2", "b3", "b4")
    best = rank([rack], Known(traffic=0.0), Question(1.0)).placements[0]
    assert set(best.resource_set.nodes) == {"b3", "b4"}


def test_newer_releases_spell_states_and_features_as_lists() -> None:
    node = {
        "name": "n1",
        "cpus": 8,
        "alloc_cpus": 2,
        "real_memory": 64,
        "state": ["MIXED", "DRAIN"],
        "features": ["ib"],
    }
    newer = cluster_from_slurm("new", {"nodes": [node]})
    assert newer.processors.tolist() == [6]
    assert not newer.up[0]
    assert newer.features == (frozenset({"ib"}),)


@pytest.mark.parametrize("flag", ["MAINTENANCE", "INVALID_REG", "POWER_DRAIN", "DYNAMIC_FUTURE", "BLOCKED", "PERFCTRS"])
def test_nodes_that_newer_releases_give_to_no_job_are_not_up(flag: str) -> None:
    nodes = [{"name": f"n{number}", "cpus": 2, "state": ["IDLE", *more]} for number, more in enumerate(([], [flag]))]
    assert cluster_from_slurm("c", {"nodes": nodes}).up.tolist() == [True, False]


def test_blocks_of_newer_releases_are_switches_below_one() -> None:
    nodes = [{"name": f"n{number}", "cpus": 2, "state": ["IDLE"], "partitions": ["p"]} for number in range(1, 6)]
    blocks = "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n[3-4]  # the fifth is in none\nBlockSizes=2,4\n"
    found = cluster_from_slurm("c", {"nodes": nodes}, blocks, uplinks={"b1": 10.0, "b2": 20.0}).network
    assert found is not None
    free = np.full(5, 100.0)
    pairs = ([0, 1], [0, 2], [2, 3], [2, 4])
    assert [found.bandwidth(free, pair) for pair in pairs] == [100.0, 10.0, 100.0, 20.0]


def test_nodes_that_are_switched_off_draw_no_power_others_that_are_not_up_may() -> None:
    states = (["IDLE"], ["IDLE", "POWERED_DOWN"], ["IDLE", "powering_down"], ["DOWN"], ["MIXED", "DRAIN"], ["RESERVED"])
    nodes = [{"name": f"n{number}", "cpus": 2, "state": state} for number, state in enumerate(states)]
    found = cluster_from_slurm("c", {"nodes": nodes})
    assert found.up.tolist() == [True, False, False, False, False, False]
    assert found.powered.tolist() == [True, False, False, True, True, True]


@pytest.mark.parametrize(
    ("sinfo", "topology", "line"),
    [
        ({"sinfo": []}, None, "is not what scontrol show nodes --json prints: it has no single nodes"),
        ({}, None, "is not what scontrol show nodes --json prints: nodes is missing"),
        ([], None, "is not what scontrol show nodes --json prints"),
        ({"nodes": [{"name": "a", "cpus": -1, "state": "idle"}]}, None, r"nodes\[0\].cpus is -1"),
        (SINFO, "SwitchName=s Nodes=a[1-4],b[1-4],c1", "s lists node c1, which is not described"),
        (SINFO, "SwitchName=s Nodes=a[1-4]", "node b1 is on no switch"),
        (SINFO, "Switch=s Nodes=a[1-4]", "line 1: 'Switch=s .*' has no SwitchName="),
        (SINFO, "SwitchName=s Node=a[1-4]", "line 1: node is not a known key"),
        (SINFO, "SwitchName=s Nodes=a[1-4],b[1-4] Switches=t\nSwitchName=t Switches=s", "is part of a cycle"),
    ],
)
def test_what_slurm_never_prints_is_refused(sinfo, topology, line) -> None:
    with pytest.raises(InputError, match=line):
        cluster_from_slurm("probe", sinfo, topology)


def test_an_uplink_of_an_unknown_switch_and_an_unknown_partition_are_refused() -> None:
    with pytest.raises(InputError, match="an uplink is given for switch sx, which does not exist"):
        cluster_from_slurm("probe", SINFO, TOPOLOGY, uplinks={"sx": 1.0})
    with pytest.raises(InputError, match="no node in partition gpu, expected one of all, racka, rackb"):
        cluster_from_slurm("probe", SINFO, TOPOLOGY, partition="gpu")


def test_continued_lines_and_comments_of_a_topology_are_understood() -> None:
    lines = ["# racks", "SwitchName=sa \\", "  Nodes=a[1-4]", "switchname=sb Nodes=b[1-4] LinkSpeed=1 # slow"]
    probe = cluster_from_slurm("probe", SINFO, "\n".join([*lines, "SwitchName=t Switches=sa,sb"]))
    assert isinstance(probe.network, Topology)
    assert np.unique(probe.network.domains(probe.available_bandwidth)[0]).size == 3


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "has no host, expected at least one"),
        ("n1 cores=4", "hosts: 1: 'n1 cores=4' is not a host"),
        ("n1\nn1:2", "node n1 is given twice"),
        ("n1:0", "is not a host"),
        ("n[1-99999999999]", "is more than 2000000 nodes"),
    ],
)
def test_what_is_no_host_list_is_refused(text, line) -> None:
    with pytest.raises(InputError, match=line):
        cluster_from_hosts("east", text)


def test_a_description_names_files_that_lie_beside_it(tmp_path) -> None:
    (tmp_path / "hosts").write_text("h[1-2]:2\n")
    (tmp_path / "sinfo.json").write_text(json.dumps(SINFO))
    (tmp_path / "topology.conf").write_text(TOPOLOGY)
    (tmp_path / "clusters.toml").write_text(
        """
        [[cluster]]
        name = "plain"
        hosts = "hosts"
        watts = 12.5
        bandwidth = [[0, 50], [40, 0]]
        queue_wait = [{processors = 1, seconds = 0}, {processors = 3, seconds = 60}]

        [[cluster]]
        name = "probe"
        slurm = {sinfo = "sinfo.json", topology = "topology.conf", partition = "racka", uplinks = {sa = 10}}

        [[application]]
        name = "cg"
        min_processors = 2
        clusters = ["plain"]
        """
    )
    description = read_description(tmp_path / "clusters.toml")
    plain, probe = description.clusters
    assert plain.processors.tolist() == [2, 2]
    assert plain.queue_wait.at([1, 3, 4]).tolist() == [0, 60, 60]
    assert plain.network.bandwidth(plain.available_bandwidth, [0, 1]) == 40
    assert probe.nodes == ("a1", "a2", "a3", "a4")
    assert description.constraints["cg"].clusters == ("plain",)
