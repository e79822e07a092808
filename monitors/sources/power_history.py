"""The power of nodes over a period, from a Prometheus server that scrapes their meters.

RAPL counters of node_exporter (``node_rapl_package_joules_total``, ``node_rapl_dram_joules_total``) and the power
readings of ipmi_exporter (``ipmi_dcmi_power_consumption_watts``), which cover the node and go first. A package that the
kernel shows twice, by two interfaces, counts once. A counter that went back has wrapped around: what it counted between
those two scrapes is taken to be as much a second as before and after. Readings that no node can have are left out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitors.one_line import one_line
from monitors.sensors.power import ipmi, powercap
from monitors.sources.prometheus_server import PrometheusServer

Floats = NDArray[np.float64]

_PACKAGES, _MEMORY, _NODE = (
    "node_rapl_package_joules_total", "node_rapl_dram_joules_total", "ipmi_dcmi_power_consumption_watts",
)  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """The power of a node over a period.

    Parameters
    ----------
    covers : package, package+memory or node.
    edges : array of shape (n + 1,), seconds since 1970, ascending.
    watts : array of shape (n,), mean power between them.

    Examples
    --------
    >>> drawn = Drawn("node", np.array([0.0, 10.0, 20.0]), np.array([100.0, 200.0]))
    >>> drawn.joules(5.0, 15.0), drawn.joules(-5.0, 5.0)
    (1500.0, 1000.0)
    """

    covers: str
    edges: Floats
    watts: Floats

    def joules(self, start: float, end: float) -> float:
        """Energy from one time to another (s); before the first and after the last scrape as much a second as there.

        Parameters
        ----------
        start, end : seconds since 1970.
        """
        edges = self.edges.copy()
        edges[0], edges[-1] = min(start, edges[0]), max(end, edges[-1])
        inside = np.clip(edges, start, end)
        return float(np.sum(np.diff(inside) * self.watts))


class PowerHistory(PrometheusServer):
    """The power that a server remembers."""

    def drawn(self, start: float, end: float) -> tuple[Mapping[str, Drawn], str]:
        """The power of each node in a period, and faults; nodes without two scrapes in the period are left out.

        What is wrong with the counters of one node leaves out that node alone.

        Parameters
        ----------
        start, end : of the period, seconds since 1970.
        """
        deadline = time.monotonic() + self.timeout
        found: dict[str, Drawn] = {}
        silent: list[str] = []
        apart: list[str] = []
        try:
            packages, memory = (self._series(each, start, end, deadline) for each in (_PACKAGES, _MEMORY))
            for node, counted in packages.items():
                own, its_memory = _known(counted), _known(memory.get(node, ()))
                if len(own) < len(counted):
                    silent += [node] * all(len(at) > 1 for at, _ in counted)
                    continue
                whole = len(its_memory) == len(own)
                added = _added("package+memory", own + its_memory) if whole else _added("package", own)
                if added is None:
                    apart.append(node)
                else:
                    found[node] = added
            for node, (series, *_) in self._series(_NODE, start, end, deadline).items():
                at, watts = _sound(*series)
                if len(at) > 1:
                    found[node] = Drawn("node", at, (watts[1:] + watts[:-1]) / 2.0)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, IndexError) as error:
            return {}, one_line(error)
        faults = [
            f"the counters of {', '.join(lost)} {what}"
            for nodes, what in ((silent, "tell no energy"), (apart, "were not scraped at the same time"))
            if (lost := [node for node in nodes if node not in found])
        ]
        return found, one_line("; ".join(faults))

    def _series(self, metric: str, start: float, end: float, deadline: float) -> dict[str, list[tuple[Floats, Floats]]]:
        """Times and values of what a metric counts, by node: one series for each index of a part of the node."""
        upto = min(end + self.window, time.time())
        span = max(math.ceil(upto - start + self.window), 1)
        found: dict[str, dict[object, tuple[Floats, Floats]]] = {}
        answers = self.ask(f"{self.series(metric)}[{span}s]", deadline, time=f"{upto:.3f}")
        for seen, item in sorted(answers, key=lambda each: _is_mirror(each[1]["metric"])):
            pairs = np.array([(float(at), float(value)) for at, value in item["values"]]).reshape(-1, 2)
            pairs = pairs[np.isfinite(pairs).all(axis=1)]
            labels = item["metric"]
            part = labels.get("index", tuple(labels.items()))
            found.setdefault(self.node(seen), {}).setdefault(part, (pairs[:, 0], pairs[:, 1]))
        return {node: list(parts.values()) for node, parts in found.items()}


def _is_mirror(labels: Mapping[str, str]) -> bool:
    """Whether a series is of the registers that show a package a second time (``intel-rapl-mmio:0``)."""
    return "-mmio" in labels.get("path", "")


def _sound(at: Floats, watts: Floats) -> tuple[Floats, Floats]:
    """Times and readings that may be the power of a node: controllers that are busy tell 0, or numbers beyond any."""
    sound = (watts > 0.0) & (watts <= ipmi.MOST_WATTS)
    return at[sound], watts[sound]


def _known(counters: Sequence[tuple[Floats, Floats]]) -> list[tuple[Floats, Floats]]:
    """Edges and watts of those counters that tell any."""
    return [part for each in counters if (part := _of_counter(*each)) is not None]


def _of_counter(at: Floats, joules: Floats) -> tuple[Floats, Floats] | None:
    """Edges and watts of a counter; None where it tells none, as one that always reads 0."""
    length, moved = np.diff(at), np.diff(joules)
    if not len(length) or not np.all(length > 0):
        return None
    watts = moved / length
    sound = (watts >= 0.0) & (watts <= powercap.MOST_WATTS)
    if not watts[sound].any():
        return None
    middle = (at[1:] + at[:-1]) / 2.0
    return at, np.where(sound, watts, np.interp(middle, middle[sound], watts[sound]))


def _added(covers: str, parts: Sequence[tuple[Floats, Floats]]) -> Drawn | None:
    """The sum of what counters of one node tell, over the time that all of them cover; None where there is none."""
    edges = np.unique(np.concatenate([at for at, _ in parts]))
    first, last = max(at[0] for at, _ in parts), min(at[-1] for at, _ in parts)
    edges = edges[(edges >= first) & (edges <= last)]
    if len(edges) < 2:
        return None
    middle = (edges[1:] + edges[:-1]) / 2.0
    watts = sum(each[np.searchsorted(at, middle) - 1] for at, each in parts)
    return Drawn(covers, edges, np.asarray(watts, dtype=np.float64))
