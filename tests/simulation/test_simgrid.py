"""System models as platforms of SimGrid."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from metasched.blocks.entry import Block, Quantity
from metasched.blocks.formulas import answer
from metasched.records import InputError
from metasched.simulation.simgrid import platform_xml
from metasched.simulation.system import System
from metasched.store.files.hardware import read_entry
from metasched.store.files.simulation import read_system

FIGURE_2 = Path(__file__).parents[2] / "examples" / "simulation" / "figure2.toml"
SYSTEM = """
network = [
    { name = "wan", entry = "ethernet-100m" },
    { name = "near", entry = "galera-plus", within = "wan" },
    { name = "far", entry = "ethernet-1g", within = "wan" },
]
[[node]]
name = "a"
count = 2
network = "near"
device = "galera-plus"
slots = { w = 12 }
bus = "pcie-3-x16"
lambda = 1e-9
[[node]]
name = "b"
count = 3
network = "far"
device = "i7-2600k"
slots = { v = 5 }
[[node]]
name = "c"
count = 1
network = "wan"
device = "testbed-intel"
slots = { u = 1 }
"""
PING = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank;
    char *data = malloc(1 << 20);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double begin = MPI_Wtime();
    if (rank == 0) MPI_Send(data, 1 << 20, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(data, 1 << 20, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) printf("%.9g\n", MPI_Wtime() - begin);
    MPI_Finalize();
}
"""


@pytest.fixture
def system(tmp_path: Path) -> System:
    (tmp_path / "system.toml").write_text(SYSTEM)
    return read_system(tmp_path / "system.toml")


def test_every_host_has_speed_power_and_failures_of_its_device(system: System) -> None:
    platform = ElementTree.fromstring(platform_xml(system))
    hosts = {each.get("id"): each for each in platform.iter("cluster")}
    assert {name: each.get("radical") for name, each in hosts.items()} == {"a": "0-1", "b": "0-2", "c": "0-0"}
    answer = {name: {prop.get("id"): prop.get("value") for prop in each} for name, each in hosts.items()}
    assert answer["a"] == {"wattage_per_state": "78:78:136.08", "lambda": "1e-09"}
    assert answer["b"] == {"wattage_per_state": "0:0:95"}
    assert answer["c"] == {}
    assert (hosts["a"].get("core"), hosts["c"].get("core"), hosts["c"].get("speed")) == ("12", "1", "800000000f")
    assert 1e9 / float(str(hosts["a"].get("speed"))[:-1]) == pytest.approx(1.65)  # T_min in nanoseconds


@pytest.mark.parametrize("busy", range(13))
def test_a_host_draws_what_its_node_does_with_as_many_busy_cores(system: System, busy: int) -> None:
    """SimGrid draws idle power without load, else a line in the load from the second value to the third."""
    host = next(each for each in ElementTree.fromstring(platform_xml(system)).iter("cluster") if each.get("id") == "a")
    values = {prop.get("id"): str(prop.get("value")) for prop in host}["wattage_per_state"]
    idle, little, full = map(float, values.split(":"))
    watts = little + (full - little) * busy / int(str(host.get("core"))) if busy else idle
    assert watts == pytest.approx(system.nodes[0].power(np.array([busy])).item())


def test_every_two_parts_of_a_network_are_joined_by_known_routers_and_links(system: System) -> None:
    platform = ElementTree.fromstring(platform_xml(system))
    assert [zone.get("id") for zone in platform.iter("zone")] == ["wan", "near", "far"]
    routers = {each.get("router_id") for each in platform.iter("cluster")}
    links = {each.get("id") for each in platform.iter("link")}
    joined = set()
    for route in platform.iter("zoneRoute"):
        assert {route.get("gw_src"), route.get("gw_dst")} <= routers
        assert {each.get("id") for each in route} <= links
        joined.add(frozenset((route.get("src"), route.get("dst"))))
    assert joined == set(map(frozenset, itertools.combinations(("c", "near", "far"), 2)))


def test_no_route_between_two_kinds_of_nodes_of_one_network_is_empty(tmp_path: Path) -> None:
    """SimGrid refuses platforms with empty routes."""
    (tmp_path / "system.toml").write_text(SYSTEM.replace('network = "wan"', 'network = "near"'))
    platform = ElementTree.fromstring(platform_xml(read_system(tmp_path / "system.toml")))
    routes = {(route.get("src"), route.get("dst")): len(route) for route in platform.iter("zoneRoute")}
    assert routes == {("a", "c"): 1, ("near", "far"): 3}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('name = "far"', 'name = "f r"'), "the name 'f r' is not valid in SimGrid"),
        (('name = "b"', 'name = "near"'), "two networks or nodes are called near"),
        (('name = "b"', 'name = "a-1"'), "a-1 is the name of a host or router of node a too"),
        (('name = "b"', 'name = "a-router"'), "a-router is the name of a host or router of node a too"),
        (('within = "wan" },\n]', 'within = "" },\n]'), "no network connects wan, far"),
        (('device = "testbed-intel"', 'device = "ethernet-1g"'), "ethernet-1g has no T_min, speed or peak_double"),
        (('entry = "ethernet-1g"', 'entry = "i7-2600k"'), "i7-2600k has neither bandwidth nor T_p2p"),
    ],
)
def test_a_system_that_no_platform_can_hold_is_refused(tmp_path: Path, change: tuple[str, str], expected: str) -> None:
    text = SYSTEM.replace(*change)
    (tmp_path / "system.toml").write_text(text.replace('network = "far"', 'network = "f r"') if "f r" in text else text)
    with pytest.raises(InputError, match=expected):
        platform_xml(read_system(tmp_path / "system.toml"))


def test_names_that_no_host_has_are_free(tmp_path: Path) -> None:
    (tmp_path / "system.toml").write_text(SYSTEM.replace('name = "b"', 'name = "a-2"'))
    assert 'prefix="a-2-"' in platform_xml(read_system(tmp_path / "system.toml"))


def test_a_network_on_which_long_messages_take_no_longer_has_no_bandwidth(system: System) -> None:
    near = next(each for each in system.networks if each.name == "near")
    endless = replace(near.entry, values={**near.entry.values, "K_p2p": Quantity(0.0, "s/B", "made")})
    networks = tuple(replace(each, entry=endless) if each == near else each for each in system.networks)
    with pytest.raises(InputError, match="galera-plus: longer messages take no longer, expected K_p2p above 0"):
        platform_xml(replace(system, networks=networks))


@pytest.fixture
def seconds(tmp_path: Path) -> Callable[..., float]:
    """How long 1 MiB takes in SimGrid from a host to another of a system's platform."""
    if not shutil.which("smpirun"):
        pytest.skip("SimGrid with SMPI is not installed")
    (tmp_path / "ping.c").write_text(PING)
    subprocess.run(["smpicc", "-O2", "ping.c", "-o", "ping"], cwd=tmp_path, check=True, timeout=60)
    options = ["--log=root.thres:error", "--cfg=smpi/simulate-computation:no", "--cfg=network/model:CM02"]
    options += ["--cfg=plugin:host_energy"]

    def measured(system: System, *hosts: str) -> float:
        (tmp_path / "platform.xml").write_text(platform_xml(system))
        (tmp_path / "hosts").write_text("\n".join(hosts) + "\n")
        command = ["smpirun", "-np", "2", "-platform", "platform.xml", "-hostfile", "hosts", *options, "./ping"]
        done = subprocess.run(command, cwd=tmp_path, check=True, timeout=60, capture_output=True, text=True)
        return float(done.stdout)

    return measured


@pytest.mark.slow
def test_messages_take_in_simgrid_what_the_slowest_level_that_they_cross_says(
    system: System, seconds: Callable[..., float]
) -> None:
    shown = answer(read_entry("galera-plus"), Block.p2p, data_size=2**20).value
    assert seconds(system, "a-0", "a-1") == pytest.approx(shown, rel=0.01)
    assert seconds(system, "b-0", "b-1") == pytest.approx(2**20 / 125e6, rel=0.01)
    assert seconds(system, "a-0", "b-0") == pytest.approx(2**20 / 12.5e6, rel=0.01)
    assert seconds(system, "a-0", "c-0") == pytest.approx(2**20 / 12.5e6, rel=0.01)
    assert seconds(system, "a-0", "a-0") == pytest.approx(2**20 / 15.75e9, rel=0.01)


@pytest.mark.slow
def test_simgrid_joins_two_kinds_of_nodes_of_one_network(seconds: Callable[..., float]) -> None:
    system = read_system(FIGURE_2)
    assert seconds(system, "master-0", "worker-2559") == pytest.approx(2**20 / 125e6, rel=0.01)
