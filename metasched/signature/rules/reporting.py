"""Reports of rules: the equations of each action, the valid process counts, and what to know before relying on them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from metasched.records import InputError
from metasched.signature.equations.local_equations import local_equation
from metasched.signature.equations.topologies import TOPOLOGIES, asks_for_squares
from metasched.signature.equations.transforms import weight_form
from metasched.signature.rules.application import Application
from metasched.signature.traces.trace import Trace
from metasched.signature.traces.unrecorded import lacking

#: Counts at which a grid that the runs left open is compared with others.
COMPARED = (2, 4_096)


def _square(n: int) -> bool:
    return math.isqrt(n) ** 2 == n


def _power_of_two(n: int) -> bool:
    return n & (n - 1) == 0


def _power_of_four(n: int) -> bool:
    return _square(n) and _power_of_two(n)


def _cube(n: int) -> bool:
    return bool(round(n ** (1 / 3)) ** 3 == n)


#: Kinds of counts that programs ask for.
KINDS: dict[str, Callable[[int], bool]] = {
    "squares": _square,
    "powers of two": _power_of_two,
    "powers of four": _power_of_four,
    "cubes": _cube,
}


def words_of(application: Application) -> set[str]:
    """The names that occur in the rules of an application, each once."""
    expressions = (one for each in application.attributes() for part in each.parts() for one in part.expressions)
    return {atom for expression in expressions for _, atom in expression.terms}


def possible_counts(application: Application, counts: Iterable[int]) -> Iterator[int]:
    """Those of some counts where all roots and logarithms that rules take are whole, and all grids possible."""
    words, grids = " ".join(words_of(application)), grids_of(application)
    asked = {
        _square: asks_for_squares(application.learned, grids) or "sqrt(n)" in words,
        _cube: "cbrt(n)" in words,
        _power_of_two: bool(re.search(r"log2\([nP]", words)),
    }
    # Rules do not ask for what a run was not: sides may be powers of two where their product is none.
    kinds = [kind for kind, needed in asked.items() if needed and all(map(kind, application.learned))]
    return (
        count
        for count in counts
        if all(kind(count) for kind in kinds) and all(TOPOLOGIES[name](count) for name in grids)
    )


def grids_of(application: Application) -> set[str]:
    """The grids that occur in the rules of an application, and those of its roles."""
    own = {part.topology for each in application.attributes() for part in each.parts()}
    return {each.topology for each in application.each()} | (own - {""})


def alike_counts(learned: Sequence[int], counts: Iterable[int]) -> list[int]:
    """Those of some counts that are of every kind that all runs were of; or, where these were of none, as far apart.

    Examples
    --------
    >>> alike_counts([4, 16, 64], [81, 128, 256]), alike_counts([12, 24, 48], [81, 96])
    ([256], [96])
    >>> alike_counts([11, 23, 47], [94, 95]), alike_counts([12, 27, 50], [100, 101])
    ([95], [100, 101])
    """
    kinds = [kind for kind in KINDS.values() if all(map(kind, learned))]
    apart = 1 if kinds else math.gcd(*(count - min(learned) for count in learned))
    return [n for n in counts if all(kind(n) for kind in kinds) and (n - min(learned)) % max(apart, 1) == 0]


def valid_counts(application: Application) -> str:
    """The process counts for which the rules are valid, as text."""
    found = [*possible_counts(application, range(*COMPARED))]
    if len(found) == COMPARED[1] - COMPARED[0]:
        return "any"
    for name, holds in KINDS.items():
        if found == [count for count in range(*COMPARED) if holds(count)]:
            return name
    return ", ".join(map(str, found[:8])) + ", ..."


def checked_count(application: Application, count: int) -> None:
    """Refuse a count for which the rules are not valid, and name the nearest below and above it that are."""
    if count < 1 or [*possible_counts(application, [count])]:
        return
    below, above = range(count - 1, 0, -1), range(count + 1, 2 * count + 64)
    nearest = " or ".join(str(each) for way in (below, above) for each in islice(possible_counts(application, way), 1))
    raise InputError(
        f"the rules are not valid for {count} processes (they are for {valid_counts(application)}), try {nearest}"
    )


def equations(application: Application, traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """The rules of all actions; of ranks with the local equations, where all processes have one role."""
    found = _equations(application, traces, "")
    for mark, part in application.parts.items():
        found += _equations(part, (), f"part {mark}, ")
    return found


def _equations(application: Application, traces: Sequence[Trace], where: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if application.origin is not None:
        found.append({"role": f"{where}all", "action": "ranks", "number": "first", "rule": str(application.origin)})
    for role in application.roles.values():
        name = where + (" ".join(map(str, role.cell)) or "all")
        for repeat, count in zip(role.program.repeats, role.counts, strict=True):
            found.append({"role": name, "action": f"loop {repeat.number}", "number": "times", "rule": str(count)})
        for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
            shape = application.shapes[leaf.shape]
            for place, attribute in enumerate(rule.numbers):
                what = "peer" if place in shape.peers else f"number {place}"
                row: dict[str, Any] = {"role": name, "action": shape.name, "number": what, "rule": str(attribute)}
                if traces and what == "peer" and not role.cell and not leaf.loops:
                    row["local"] = _local(traces, shape.name, place)
                found.append(row)
            found += [
                {"role": name, "action": shape.name, "number": f"list {place}", "rule": str(attribute)}
                for place, attribute in enumerate(rule.lists)
            ]
    return found


def _local(traces: Sequence[Trace], name: str, place: int) -> dict[str, Any]:
    """EC1 or EC2 of the first action of a name, at each count."""
    found = {}
    for trace in traces:
        table = trace.table
        wanted = {number for number, shape in enumerate(table.shape) if table.shapes[shape].name == name}
        firsts = [next((action for action in each.tolist() if action in wanted), None) for each in trace.processes]
        peers = [None if action is None else int(table.numbers[action][place]) for action in firsts]
        found[str(len(trace.processes))] = local_equation(
            [None if peer is None or peer < 0 else peer for peer in peers]
        ).as_dict()
    return found


def weights(documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The weights of phases as functions of the process count; phases are related by their place in the program."""
    ordered = sorted(documents, key=lambda each: int(each["processes"]))
    counts = [int(each["processes"]) for each in ordered]
    phases = [each.get("phases", []) for each in ordered]
    if len({len(each) for each in phases}) > 1:
        return []
    found = []
    for place, of in enumerate(zip(*phases, strict=True)):
        seen = [each["weight"] for each in of]
        form = weight_form(counts, seen) if min(seen) > 0 else None
        found.append({"phase": place, "weights": seen, "equation": None if form is None else str(form)})
    return found


def caveats(document: dict[str, Any]) -> list[str]:
    """What to know before one relies on rules, in words: calls that were not recorded, and what follows no rule.

    Parameters
    ----------
    document : of ``metasched signature fit``.

    Examples
    --------
    >>> caveats({"unrecorded": {"8": {"MPI_Put": 3}}})
    ['the trace of 8 processes lacks calls: 3 of MPI_Put']
    >>> caveats({"without_rule": {"send": 0.02}, "time_without_rule": {"send": 0.01}})
    ['send, 2.00 % of the actions and 1.00 % of the time, follows no rule: its statistics are used']
    """
    return [*_lacked(document), *_unruled(document)]


def _lacked(document: dict[str, Any]) -> list[str]:
    """The calls that the traces of the runs lack, with their numbers."""
    runs = document.get("unrecorded")
    return [
        line
        for n, lost in (runs.items() if isinstance(runs, dict) else ())
        if isinstance(lost, dict) and all(isinstance(times, int) for times in lost.values())
        for line in lacking(lost, f"the trace of {n} processes")
    ]


def _unruled(document: dict[str, Any]) -> list[str]:
    """The calls that follow no rule, each with its shares of actions and time."""
    without, times = document.get("without_rule"), document.get("time_without_rule")
    if not isinstance(without, dict):
        return []
    times = times if isinstance(times, dict) else {}
    parts = document.get("irregular", [])
    return [
        f"the calls {each.get('where')}, {_percent(each.get('events'))} of the actions and "
        f"{_percent(each.get('time'))} of the time, follow no rule: their statistics are used"
        for each in (parts if isinstance(parts, list) else [])
        if isinstance(each, dict)
    ] + [
        f"{name}, {100.0 * share:.2f} % of the actions"
        + (f" and {100.0 * times[name]:.2f} % of the time" if isinstance(times.get(name), int | float) else "")
        + ", follows no rule: its statistics are used"
        for name, share in without.items()
        if isinstance(share, int | float)
    ]


def _percent(share: Any) -> str:
    return f"{100.0 * share:.2f} %" if isinstance(share, int | float) else "some"
