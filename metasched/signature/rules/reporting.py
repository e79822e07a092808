"""Reports of rules: the equations of each action, the valid process counts, and open alternatives."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from metasched.records import InputError
from metasched.signature.equations.expressions import CARRIED, Env, Expression, place_on
from metasched.signature.equations.local_equations import local_equation
from metasched.signature.equations.topologies import TOPOLOGIES, asks_for_squares
from metasched.signature.equations.transforms import weight_form
from metasched.signature.rules.application import Application
from metasched.signature.rules.attributes import Attribute, with_grid
from metasched.signature.rules.expanding import sampled
from metasched.signature.rules.presence import OPEN
from metasched.signature.traces.actions import AMOUNTS, BYTE
from metasched.signature.traces.trace import Trace
from metasched.signature.traces.unrecorded import lacking

#: Counts at which a grid that the runs left open is compared with others.
COMPARED = (2, 4_096)
#: Runs that would decide between rules have fewer processes.
DECIDING = 257
#: The same of runs that have to be expanded to see it.
SMALL = 33
#: Turns of an inner loop that are expanded then: more than the rounds, one for each doubling of the processes.
MOST_ROUNDS = 32
#: The bytes of the numbers that most data are made of; they may also be half or a quarter as large.
LARGEST_NUMBER = 8
#: What divides by n, by a root of it or by a side.
QUOTIENT = re.compile(r"1/(?:n|\(n-1\)|P\d|(?:sqrt|cbrt)\(n\))|floor[\dw]:\d+")


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


def _words(application: Application) -> set[str]:
    """The names that occur in the rules of an application, each once."""
    expressions = (one for each in application.attributes() for part in each.parts() for one in part.expressions)
    return {atom for expression in expressions for _, atom in expression.terms}


def possible_counts(application: Application, counts: Iterable[int]) -> Iterator[int]:
    """Those of some counts where all roots and logarithms that rules take are whole, and all grids possible."""
    words, grids = " ".join(_words(application)), _grids(application)
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


def _grids(application: Application) -> set[str]:
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


def open_rules(application: Application, counts: Iterable[int] | None = None) -> list[str]:
    """What the runs left open of grids, of waits for nothing and of shares, and the smallest run that would decide.

    Parameters
    ----------
    application : with the rules that were chosen.
    counts : only the choices on which runs of these numbers of processes depend; all where None.
    """
    asked, found = None if counts is None else [*counts], []
    for name in sorted(_grids(application)):
        same = [
            other
            for other, sides in TOPOLOGIES.items()
            if other != name
            and not other.startswith(("greedy", "simgrid"))
            and all(sides(n) == TOPOLOGIES[name](n) for n in application.learned)
        ]
        for other in same[:1]:
            differ = partial(_other_sides, name, other)
            deciding = next(filter(differ, range(2, DECIDING)), 0)
            if deciding and _matters(differ, asked):
                found.append(
                    f"the runs do not tell {name} from {other}: the first is taken, a run of {deciding} processes "
                    "would decide"
                )
    return found + _open_waits(application, asked) + _open_shares(application, asked)


def _open_waits(application: Application, asked: Sequence[int] | None) -> list[str]:
    """Whether processes wait where they have no request open, which no run showed."""
    differ = partial(_waits_for_none, application)
    if OPEN not in _words(application) or any(map(differ, application.learned)) or not _matters(differ, asked):
        return []
    deciding = next(filter(differ, possible_counts(application, range(2, SMALL))), 0)
    if asked is None and not deciding:
        return []
    return [
        "the runs do not tell whether processes call waitall where no request is open: it is assumed that they do"
        + (f", a run of {deciding} processes would decide" if deciding else "")
    ]


def _waits_for_none(application: Application, count: int) -> bool:
    """Whether some process would wait for no request at all."""
    table = sampled(application, count, MOST_ROUNDS, 1).trace.table
    return any(
        table.shapes[shape].name.lower() == "waitall" and not numbers[0]
        for shape, numbers in zip(table.shape, table.numbers, strict=True)
    )


def _matters(differ: Callable[[int], bool], asked: Sequence[int] | None) -> bool:
    return asked is None or any(map(differ, asked))


def _other_sides(name: str, other: str, count: int) -> bool:
    """Whether a grid has other sides than another that is possible too."""
    return bool(TOPOLOGIES[other](count)) and TOPOLOGIES[other](count) != TOPOLOGIES[name](count)


def _open_shares(application: Application, asked: Sequence[int] | None) -> list[str]:
    """Rules that divide, whose quotients were whole in all runs."""
    found = []
    possible = [*possible_counts(application, range(*COMPARED))]
    for action, rule, in_bytes in sorted(_quotients(application), key=str):
        finer = _finer(rule)
        differ = partial(_other_value, rule, finer or rule)
        if finer is not None and not any(map(differ, application.learned)) and _matters(differ, asked):
            deciding = next(filter(differ, possible), 0)
            found.append(
                f"the runs do not tell {rule} of {action} from {finer}: the first is taken"
                + (f", a run of {deciding} processes would decide" if deciding else "")
            )
        uneven = partial(_uneven, rule, _piece(rule, application.learned) if in_bytes else 1)
        if any(map(uneven, application.learned)) or not _matters(uneven, asked):
            continue
        deciding = next(filter(uneven, possible), 0)
        if deciding:
            found.append(
                f"the runs do not tell how {rule} of {action} is rounded: whatever is divided is rounded down, a run "
                f"of {deciding} processes would decide"
            )
    return found


def _quotients(application: Application) -> set[tuple[str, Attribute, bool]]:
    """Rules of whole numbers that divide something by n or by sides: the action's name, the rule, whether of bytes."""
    found = set()
    for part, role in ((each, role) for each in application.each() for role in each.roles.values()):
        for leaf, rule in zip(role.program.leaves, role.rules, strict=True):
            name = part.shapes[leaf.shape].name
            in_bytes = rule.numbers[-1:] == (Attribute(expression=Expression(float(BYTE))),)
            for each in rule.each() if name not in AMOUNTS else ():
                for one in each.table or (each,):
                    atoms = [atom for _, atom in one.expression.terms] if one.expression is not None else []
                    factors = [factor for atom in atoms for factor in atom.split("*")]
                    if factors and all(QUOTIENT.fullmatch(factor) for factor in factors):
                        # A rule without a grid of its own speaks of that of the part.
                        one = one if one.topology else replace(one, topology=part.topology)
                        found.add((name, one, in_bytes))
    return found


def _finer(rule: Attribute) -> Attribute | None:
    """The share of twice as much in half as large pieces; None where a rule is no share, or its pieces are odd."""
    terms = rule.expression.terms if rule.expression is not None and not rule.expression.constant else ()
    share = re.fullmatch(r"(floor[\dw]):(\d+)", terms[0][1]) if len(terms) == 1 else None
    if share is None or terms[0][0] % 2:
        return None
    return replace(rule, expression=Expression(0.0, ((terms[0][0] / 2, f"{share[1]}:{2 * int(share[2])}"),)))


def _at(rule: Attribute, count: int) -> Env:
    """The names as a rule that divides sees them in the first process."""
    return with_grid({"n": np.full(1, float(count)), "r": np.zeros(1)}, TOPOLOGIES[rule.topology](count))


def _value(rule: Attribute, count: int, rounded: bool = True) -> float:
    return float(rule(_at(rule, count), count, rounded)[0])


def _other_value(rule: Attribute, other: Attribute, count: int) -> bool:
    return _value(rule, count) != _value(other, count)


def _piece(rule: Attribute, learned: Sequence[int]) -> int:
    """The bytes of a number of which all messages of the runs hold whole ones, as far as they tell."""
    return math.gcd(LARGEST_NUMBER, *(round(_value(rule, count)) for count in learned))


def _uneven(rule: Attribute, piece: int, count: int) -> bool:
    """Whether not all that a rule divides comes out even at a count, in pieces of so many bytes."""
    env = _at(rule, count)
    terms = rule.expression.terms if rule.expression is not None else ()
    shares = [share for _, atom in terms for share in re.findall(r"floor([\dw]):(\d+)", atom)]
    whole = _value(rule, count, rounded=False)
    left = any(int(size) % place_on(line, env)[0][0] for line, size in shares)
    return left or abs(whole - round(whole)) >= CARRIED or round(whole) % piece > 0


def equations(application: Application, traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """The rules of all actions; of ranks with the local equations, where all processes have one role."""
    found = _equations(application, traces, "")
    for mark, part in application.parts.items():
        found += _equations(part, (), f"part {mark}, ")
    return found


def _equations(application: Application, traces: Sequence[Trace], where: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
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
