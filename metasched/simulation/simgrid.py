"""A system model as a platform file of SimGrid 3.32: hosts with speed and power, links, and zones for networks."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import numpy as np

from metasched.blocks.entry import Block, Entry
from metasched.blocks.formulas import answer
from metasched.records import InputError
from metasched.simulation.system import Network, Nodes, System

_HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
#: Message sizes (bytes) between which the bandwidth of a fitted network is read off.
_SMALL, _LARGE = 2.0**20, 2.0**22


def platform_xml(system: System) -> str:
    """The platform file of a system, version 4.1.

    A node is a host ``NAME-0``, ``NAME-1``, ... on a link of its own, full duplex; its processes communicate over the
    loopback, which is the bus. A network is a zone, whose parts exchange messages over a link that none has to share.
    One below another is joined to it by a link of that other one. An operation counts as a flop. Power is the property
    ``wattage_per_state`` of the plugin host_energy: idle, as the load tends to none, and with all cores at work;
    between the last two it is a line. Failures are the property ``lambda`` (1/s). Disks are left out.

    Raises
    ------
    InputError : when SimGrid refuses a name, a device has no speed, a network neither bandwidth nor point-to-point
        time, or the networks do not form a tree.

    Examples
    --------
    >>> from metasched.blocks.entry import Kind, Quantity
    >>> link = Entry("g", Kind.link, "", {"bandwidth": Quantity(1, "Gbit/s", "made")})
    >>> processor = Entry("c", Kind.cpu, "", {"speed": Quantity(2, "Gflop/s", "made")})
    >>> text = platform_xml(System("s", (Network("lan", link),), (Nodes("n", 2, "lan", processor, {"w": 1}),)))
    >>> ElementTree.fromstring(text).find("zone/cluster").get("speed")
    '2e+09f'
    """
    roots = [network for network in system.networks if not network.within]
    if len(roots) != 1:
        raise InputError(f"no network connects {', '.join(network.name for network in roots)}")
    _check_names(system)
    platform = ElementTree.Element("platform", version="4.1")
    _add_network(platform, system, roots[0])
    ElementTree.indent(platform, " ")
    return _HEAD + ElementTree.tostring(platform, encoding="unicode") + "\n"


def _check_names(system: System) -> None:
    """Refuse names that SimGrid refuses: of other characters, or given twice."""
    names = [*(network.name for network in system.networks), *(nodes.name for nodes in system.nodes)]
    for name in names:
        if not _NAME.fullmatch(name):
            raise InputError(f"the name {name!r} is not valid in SimGrid, expected letters, digits, '_', '.' and '-'")
        if names.count(name) > 1:
            raise InputError(f"two networks or nodes are called {name}, expected a name for each")
        stem, _, last = name.rpartition("-")
        for nodes in system.nodes:
            if stem == nodes.name and (last == "router" or last in map(str, range(nodes.count))):
                raise InputError(f"{name} is the name of a host or router of node {stem} too, expected another")


def _add_network(parent: ElementTree.Element, system: System, network: Network) -> str:
    """Add the zone of a network with its nodes and networks, and its router."""
    zone = ElementTree.SubElement(parent, "zone", id=network.name, routing="Full")
    latency, bandwidth = _line(network.entry)
    ends = []  # name, router and uplink of each part of the zone
    for nodes in system.nodes:
        if nodes.network == network.name:
            _add_nodes(zone, nodes, latency, bandwidth)
            ends.append((nodes.name, _router(nodes), ""))
    inner = [other for other in system.networks if other.within == network.name]
    for other in inner:
        ends.append((other.name, _add_network(zone, system, other), f"{other.name}-uplink"))
    if not ends:
        raise InputError(f"network {network.name} connects nothing")
    for other in inner:
        line = _link(latency, bandwidth, "bandwidth", "latency")
        ElementTree.SubElement(zone, "link", {"id": f"{other.name}-uplink"} | line)
    if len(ends) > 1:
        # Nodes bring their links themselves; but SimGrid refuses empty routes. So all lead over one that nobody shares.
        ElementTree.SubElement(zone, "link", {"id": f"{network.name}-switch"} | _switch(bandwidth))
    for (here, from_router, up), (there, to_router, down) in itertools.combinations(ends, 2):
        ways = {"src": here, "dst": there, "gw_src": from_router, "gw_dst": to_router}
        route = ElementTree.SubElement(zone, "zoneRoute", ways)
        for name, way in ((up, "UP"), (down, "DOWN")):
            if name:
                ElementTree.SubElement(route, "link_ctn", id=name, direction=way)
        ElementTree.SubElement(route, "link_ctn", id=f"{network.name}-switch")
    return ends[0][1]


def _router(nodes: Nodes) -> str:
    return f"{nodes.name}-router"


def _link(latency: float, bandwidth: float, fast: str, late: str) -> dict[str, str]:
    """Attributes of the full-duplex link at one end of a route, with half of the route's latency."""
    return {fast: f"{bandwidth:.9g}Bps", late: f"{latency / 2:.9g}s", "sharing_policy": "SPLITDUPLEX"}


def _switch(bandwidth: float) -> dict[str, str]:
    """Attributes of a link without latency on which every message has the whole bandwidth (bytes/s)."""
    return {"bandwidth": f"{bandwidth:.9g}Bps", "latency": "0s", "sharing_policy": "FATPIPE"}


def _add_nodes(zone: ElementTree.Element, nodes: Nodes, latency: float, bandwidth: float) -> None:
    """Add the hosts of identical nodes, each with its own link."""
    speed, cores = _speed(nodes)
    attributes = {
        "id": nodes.name,
        "prefix": f"{nodes.name}-",
        "suffix": "",
        "radical": f"0-{nodes.count - 1}",
        "speed": f"{speed:.9g}f",
        "core": str(cores),
        "router_id": _router(nodes),
    }
    cluster = ElementTree.SubElement(zone, "cluster", attributes | _link(latency, bandwidth, "bw", "lat"))
    if nodes.bus is not None:
        bus_latency, bus_bandwidth = _line(nodes.bus)
        cluster.set("loopback_bw", f"{bus_bandwidth:.9g}Bps")
        cluster.set("loopback_lat", f"{bus_latency:.9g}s")
    properties = {
        "wattage_per_state": _wattage(nodes, cores),
        "lambda": "" if nodes.rate is None else f"{nodes.rate:.9g}",
    }
    for name, value in properties.items():
        if value:
            ElementTree.SubElement(cluster, "prop", id=name, value=value)


def _speed(nodes: Nodes) -> tuple[float, int]:
    """Speed of a core (flop/s), and cores of a node."""
    device, slots = nodes.device, sum(nodes.slots.values())
    cores = device.get("cores") or 1.0
    if (speed := device.get("speed")) is not None:
        return speed, max(int(cores), 1)
    if "T_min" in device.values or Block.compute in device.blocks:
        alone = answer(device, Block.compute, instructions=1.0, threads=1).value
        return 1.0 / alone, max(int(device.get("P_low") or cores), 1)
    peak = device.get("peak_double") or device.get("peak_single")
    if peak is None:
        raise InputError(f"{device.name} has no T_min, speed or peak_double, which hosts need")
    cores = max(slots, cores)
    return peak / cores, max(int(cores), 1)


def _wattage(nodes: Nodes, cores: int) -> str:
    """``idle:least load:all cores`` in watts; empty where the device gives no power."""
    idle, one, full = nodes.power(np.array([0, 1, cores])).tolist()
    if math.isnan(idle + one + full):
        return ""
    # With a busy core the plugin is to come to what the device does, on its line from the least load to all cores.
    least = (cores * one - full) / (cores - 1) if cores > 1 else idle
    # The plugin refuses power that falls with load, as the pieces of published formulas may.
    return ":".join(f"{each:.9g}" for each in np.maximum.accumulate([idle, least, full]))


def _line(entry: Entry) -> tuple[float, float]:
    """Latency (s) and bandwidth (bytes/s) of a network or a bus."""
    if "T_p2p" in entry.values or Block.p2p in entry.blocks:
        small, large = (answer(entry, Block.p2p, data_size=size, nodes=2).value for size in (_SMALL, _LARGE))
        if large <= small:
            raise InputError(f"{entry.name}: longer messages take no longer, expected K_p2p above 0")
        return answer(entry, Block.p2p, data_size=1.0, nodes=2).value, (_LARGE - _SMALL) / (large - small)
    bandwidth = entry.get("bandwidth")
    if bandwidth is None:
        raise InputError(f"{entry.name} has neither bandwidth nor T_p2p and K_p2p, which links need")
    return entry.get("latency") or 0.0, bandwidth
