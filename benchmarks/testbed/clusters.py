"""The four clusters of the paper (section 4.1), two of many cores a node, and their description in SimGrid's words.

Each processor is a simulated host with its own load, since the paper pins processes to cores; the processors of a node
share the node's link, which is full duplex, and exchange messages through its memory. All links meet in one switch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from benchmarks.testbed.timeline import Series, Timeline

MBIT = 1e6 / 8  # bytes/s


@dataclass(frozen=True)
class ClusterModel:
    """A cluster: shape, processors, network.

    Parameters
    ----------
    name : the paper's name for it.
    node_count, processors_per_node : shape.
    bandwidth : of a node's link (Mbit/s).
    speed : of a processor on data in cache (flop/s).
    cache : that one process can call its own (bytes).
    balance : flops that pass while memory delivers one byte.
    other_traffic : whether other users' jobs load the network even where processors are dedicated.
    sample_period : seconds between two samples of the monitors.
    streams : processes that the memory of a node serves as fast as one; None for as many as there are.
    """

    name: str
    node_count: int
    processors_per_node: int
    bandwidth: float
    speed: float
    cache: float
    balance: float
    other_traffic: bool = False
    sample_period: float = 10.0
    streams: float | None = None

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes."""
        return tuple(f"n{index}" for index in range(self.node_count))

    @property
    def processors(self) -> tuple[str, ...]:
        """Names of the processors: one for each node first, as a scheduler spreads a job over nodes.

        Examples
        --------
        >>> CLUSTERS["intel"].processors[:2], CLUSTERS["amd"].processors[7:9]
        (('n0', 'n1'), ('n7.0', 'n0.1'))
        """
        if self.processors_per_node == 1:
            return self.nodes
        return tuple(f"{node}.{core}" for core in range(self.processors_per_node) for node in self.nodes)


def node_of(processor: str) -> str:
    """Name of the node that a processor belongs to.

    Examples
    --------
    >>> node_of("n3.1"), node_of("n3")
    ('n3', 'n3')
    """
    return processor.partition(".")[0]


CLUSTERS = {
    cluster.name: cluster
    for cluster in (
        # Pentium 4, 2.8 GHz, 512 KB of cache, 100 Mbit/s
        ClusterModel("intel", 8, 1, 100.0, speed=0.8e9, cache=512e3, balance=0.35),
        # Power5, 1.65 GHz, 8 four-way nodes, 1.9 MB of L2 for a pair and an outer cache, 1 Gbit/s
        ClusterModel("ibm", 8, 4, 1000.0, 1.2e9, cache=2e6, balance=0.45, other_traffic=True, sample_period=60.0),
        # Opteron 1214, 2.2 GHz, 8 dual-core nodes, 1 MB of cache for each core, 1 Gbit/s
        ClusterModel("amd", 8, 2, 1000.0, speed=1.0e9, cache=1e6, balance=0.30, sample_period=20.0),
        # Xeon 5130, 2.0 GHz, 12 dual-core nodes, 4 MB of cache shared by two cores, 100 Mbit/s
        ClusterModel("woodcrest", 12, 2, 100.0, speed=1.4e9, cache=2e6, balance=0.40, sample_period=20.0),
    )
}
#: Nodes whose processes share memory and link: pack a job on few of them or spread it? Not of the paper.
MULTICORE = {
    cluster.name: cluster
    for cluster in (
        ClusterModel("quad", 8, 4, 1000.0, 1.5e9, cache=1e6, balance=0.6, sample_period=60.0, streams=1.5),
        ClusterModel("wide", 4, 16, 4000.0, 1.5e9, cache=1.5e6, balance=0.6, sample_period=60.0, streams=4.0),
    )
}


def _write_profile(path: Path, series: Series, scale: float, horizon: float) -> None:
    rows = [
        f"{time:.6f} {value * scale:.9g}"
        for time, value in zip(series.times, series.values, strict=True)
        if time < horizon
    ]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def write_platform(
    cluster: ClusterModel, timeline: Timeline | None, folder: Path, watts: tuple[float, float] | None = None
) -> Path:
    """Write the platform file, with a profile for each processor and link where there are loads.

    Parameters
    ----------
    cluster : what to describe.
    timeline : its loads; None for an idle cluster.
    folder : existing folder that takes the files.
    watts : power of a processor that does nothing and of one at work, for the plugin host_energy; none where None.

    Returns
    -------
    Path of the platform file.
    """
    platform = ElementTree.Element("platform", version="4.1")
    zone = ElementTree.SubElement(platform, "zone", id=cluster.name, routing="Full")
    for processor in cluster.processors:
        host = ElementTree.SubElement(zone, "host", id=processor, speed=f"{cluster.speed:g}f")
        for key, value in (("cache", cluster.cache), ("balance", cluster.balance), ("streams", cluster.streams)):
            if value is not None:
                ElementTree.SubElement(host, "prop", id=key, value=f"{value:g}")
        if watts is not None:
            idle, full = watts
            ElementTree.SubElement(host, "prop", id="wattage_per_state", value=f"{idle:.9g}:{idle:.9g}:{full:.9g}")
        if timeline is not None:
            host.set("speed_file", f"{processor}.cpu")
            _write_profile(folder / f"{processor}.cpu", timeline.cpu[processor], 1.0, timeline.horizon)
    for node in cluster.nodes:
        ElementTree.SubElement(zone, "link", id=f"memory-{node}", bandwidth="1500MBps", latency="1us")
        for way in ("from", "to"):
            bandwidth = f"{cluster.bandwidth:g}Mbps"
            link = ElementTree.SubElement(zone, "link", id=f"{way}-{node}", bandwidth=bandwidth, latency="20us")
            if timeline is not None:
                # both ways carry the same load, but SimGrid refuses to read one file twice
                link.set("bandwidth_file", f"{way}-{node}.bandwidth")
                profile = folder / f"{way}-{node}.bandwidth"
                _write_profile(profile, timeline.bandwidth[node], MBIT, timeline.horizon)
    for source in cluster.processors:
        for target in cluster.processors:
            here, there = node_of(source), node_of(target)
            links = [f"memory-{here}"] if here == there else [f"from-{here}", f"to-{there}"]
            route = ElementTree.SubElement(zone, "route", src=source, dst=target, symmetrical="NO")
            for name in links:
                ElementTree.SubElement(route, "link_ctn", id=name)
    path = folder / "platform.xml"
    head = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    path.write_text(head + ElementTree.tostring(platform, encoding="unicode"), encoding="utf-8")
    return path
