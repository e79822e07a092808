"""Turns samples of a source into loads for placements: screened, of known nodes, each with a bandwidth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from metasched.plain_numbers import number_of
from metasched.records import Load
from monitors.sources.contract import Sample
from monitors.sources.screening import Refusal, Repair, Rules, Screened, screen


@dataclass(frozen=True, slots=True)
class Sampled:
    """The result of screening a source's samples.

    Parameters
    ----------
    loads : the accepted ones.
    screened : how many were refused and repaired, by reason.
    nodes, foreign : numbers of reported nodes that are known, and that are unknown or not among the source's nodes.
    fault : one line for the administrator; empty if there is no fault.
    """

    loads: tuple[Load, ...]
    screened: Screened = field(default_factory=lambda: Screened(()))
    nodes: int = 0
    foreign: int = 0
    fault: str = ""


def sampled(
    samples: Iterable[Sample],
    now: float,
    *,
    known: Callable[[str], bool],
    rules: Callable[[str], Rules],
    bandwidth: Callable[[str], float | None],
    newest: Callable[[str], float] = lambda node: -math.inf,
    taken: Mapping[str, float] = MappingProxyType({}),
) -> Sampled:
    """Screen the samples of a source.

    Parameters
    ----------
    samples : of any nodes, in any order.
    now : seconds since 1970.
    known : whether the source may report a node.
    rules : the valid ranges of a node's values.
    bandwidth : bandwidth of a node if the source does not know it (Mbit/s); None if unknown.
    newest : time of the newest earlier sample of a node (s).
    taken : time of the sample of a node that the source reported before (s): a source may be asked more often than it
        measures, and repeated samples are dropped.

    Examples
    --------
    >>> said = [Sample("n0", 10.0, 0.5), Sample("mail", 10.0, 0.9, 80.0), Sample("n1", 10.0, 0.7)]
    >>> found = sampled(said, 12.0, known=lambda n: n != "mail", rules=lambda n: Rules(), bandwidth={"n0": 90.0}.get)
    >>> found.loads
    (Load(time=10.0, node='n0', available_cpu=0.5, available_bandwidth=90.0),)
    >>> found.foreign, found.fault
    (1, 'the bandwidth of 1 node, such as n1, is unknown: give bandwidth in the source, or their links')
    """
    loads: list[Load] = []
    refused: Counter[Refusal] = Counter()
    repaired: Counter[Repair] = Counter()
    own: set[str] = set()
    foreign: dict[str, None] = {}
    unlinked: dict[str, None] = {}
    for sample in samples:
        if not known(sample.node):
            foreign[sample.node] = None
            continue
        own.add(sample.node)
        if sample.time == taken.get(sample.node):
            continue
        if math.isnan(sample.available_bandwidth):
            spare = bandwidth(sample.node)
            if spare is None:
                unlinked[sample.node] = None
                continue
            sample = replace(sample, available_bandwidth=spare)
        triple = (sample.time, sample.available_cpu, sample.available_bandwidth)
        found = screen([triple], now, rules(sample.node), newest=newest(sample.node))
        refused.update(found.refused)
        repaired.update(found.repaired)
        loads += [Load(at, sample.node, cpu, link) for at, cpu, link in found.kept]
    fault = _fault(tuple(unlinked), refused, () if own else tuple(foreign))
    return Sampled(tuple(loads), Screened((), refused, repaired), len(own), len(foreign), fault)


def _fault(unlinked: Sequence[str], refused: Mapping[Refusal, int], foreign: Sequence[str]) -> str:
    """The worst fault in one line: of nodes without a bandwidth, of refused samples, or of unknown nodes."""
    if unlinked:
        return (
            f"the bandwidth of {number_of(len(unlinked), 'node')}, such as {unlinked[0]}, is unknown: "
            "give bandwidth in the source, or their links"
        )
    if refused:
        return f"samples were refused: {', '.join(f'{reason} ({count})' for reason, count in refused.items())}"
    if foreign:
        return (
            f"it reports {number_of(len(foreign), 'node')}, such as {foreign[0][:80]}; none is known here: "
            "check nodes, names and label of the source"
        )
    return ""
