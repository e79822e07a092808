"""The rules of the calls between collective operations, each part with its own roles, or its statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from metasched.arrays import Floats
from metasched.records import InputError
from metasched.signature.equations.topologies import different
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import expanded
from metasched.signature.rules.fits import Fit, Irregular, add, shares_by_name
from metasched.signature.rules.irregular import statistical
from metasched.signature.rules.larger_runs import larger_counts
from metasched.signature.rules.numbered_runs import NumberedRun, ranks_seen, whole_of
from metasched.signature.rules.role_search import RoleSearch
from metasched.signature.rules.rule_search import RuleSearch
from metasched.signature.rules.whole_programs import FEWEST, completed_program, from_another, whole_program
from metasched.signature.traces.actions import AMOUNTS, PART, TURN, Shape
from metasched.signature.traces.message_order import put_in_order
from metasched.signature.traces.parts import cut
from metasched.signature.traces.trace import Trace

#: What all processes do at the start and at the end of a run.
AROUND = ("init", "finalize")


def in_parts(traces: Sequence[Trace], timed: bool) -> Fit | None:
    """The rules of the calls between collective operations, each part with its own roles; None where none hold.

    A part that follows no rule is modelled by its statistics. No other origin and no null communications explain the
    whole programs: so none explain a part that is the whole program.
    """
    between: dict[tuple[str, str], int] = {}
    cuts = [cut(trace, between) for trace in traces]
    whole = [each for each in cuts if each is not None]
    if len(whole) < len(cuts):
        return None
    numbered: dict[tuple[Shape, float], int] = {}
    runs = [NumberedRun(each.outside, numbered, {Shape(PART, 1)}) for each in whole]
    shapes, tags = [shape for shape, _ in numbered], [int(tag) for _, tag in numbered]
    places = [(before or "the beginning", after or "the end") for before, after in between]
    topologies = different([run.count for run in runs])
    search = RoleSearch(RuleSearch(runs, shapes, "line", topologies, timed, loosely=True), "")
    seen = ranks_seen(runs, "", "line")
    outside = search.fit(seen) if seen is not None else None
    if outside is None:
        return None
    (role,) = outside.application.roles.values()
    placed = search.placed[id(role.program)]
    marked = [np.cumsum([shapes[shape].name == PART for shape in run.sequences[0].tolist()]) - 1 for run in runs]
    everything = whole_of([NumberedRun(trace, {}, set()) for trace in traces])
    unruled = {
        name: np.array([share, outside.times[name]]) * whole_of(runs)
        for name, share in outside.unruled.items()
        if name != PART
    }
    # One part that holds all but the start and the end of a run is the whole program.
    outer = {shapes[leaf.shape].name for leaf in role.program.leaves} - {PART, *AROUND}
    filled = [sum(any(map(len, each)) for each in one.inside) for one in whole]
    searched = not outer and {*filled} == {1}
    parts: dict[int, Application] = {}
    irregular: list[Irregular] = []
    sorted_ = False
    for leaf in role.program.leaves:
        if shapes[leaf.shape].name != PART:
            continue
        at = [placed[place].leaf(leaf.number)[0] for place in range(len(runs))]
        inside = [(one, marks[here].tolist()) for one, marks, here in zip(whole, marked, at, strict=True) if here.size]
        if not inside:
            continue
        # Of loops that run as often as it happens, all runs are compared in as many turns.
        often = any(role.counts[loop].law is not None for loop in leaf.loops)
        fewest = min(len(marks) for _, marks in inside) if often else None
        found = _part([one.together(marks[:fewest]) for one, marks in inside], timed, searched)
        sorted_ |= found.in_order
        own = whole_of([NumberedRun(one.together(marks), {}, set()) for one, marks in inside])
        for name, share in found.unruled.items():
            add(unruled, name, share * own[0], found.times[name] * own[1])
        if not {*found.unruled} <= {*AMOUNTS} and (not found.partners or found.ruled == 0.0):
            before, after = places[tags[leaf.shape]]
            calls = sorted(name for name in found.unruled)
            turns = sum(here.size * run.count for here, run in zip(at, runs, strict=True))
            events, time = ((own - [turns, 0.0]) / everything).tolist()
            irregular.append(Irregular(f"between {before} and {after}", tuple(calls), events, time))
        parts[leaf.number] = found.application
    shares = {name: each / everything for name, each in sorted(unruled.items())}
    left = max(1.0 - float(sum(each[0] for each in shares.values())), 0.0)
    return Fit(replace(outside.application, parts=parts), left, *shares_by_name(shares), tuple(irregular), sorted_)


def _part(traces: Sequence[Trace], timed: bool, searched: bool) -> Fit:
    """The rules of a part as it is, or with messages in order, where all have both ends; else its statistics."""
    if len(traces) >= FEWEST:
        if (found := _sound_part(traces, timed, searched)) is not None:
            return found
        moved = put_in_order(traces)
        if moved is not None and (found := _sound_part(moved, timed)) is not None:
            return replace(found, in_order=True)
    whole = np.zeros(2)
    unruled: dict[str, Floats] = {}
    for trace in traces:
        run = NumberedRun(trace, {}, set())
        for actions in trace.processes:
            for action, times in zip(*np.unique(actions, return_counts=True), strict=True):
                name = trace.table.shapes[trace.table.shape[action]].name
                if name != TURN:
                    add(unruled, name, float(times), float(times * run.seconds[action]))
        whole += whole_of([run])
    shares = {name: each / np.maximum(whole, 1e-30) for name, each in sorted(unruled.items())}
    return Fit(statistical(traces), 0.0, *shares_by_name(shares))


def _sound_part(traces: Sequence[Trace], timed: bool, searched: bool = False) -> Fit | None:
    """The rules of a part, whose messages have both ends where it was learned and beyond; None where there are none.

    Whether null communications and other origins explain it may have been searched already, without success.
    """
    completion = cache(partial(completed_program, traces, timed)) if not searched else lambda: None
    found = whole_program(traces, timed, completion, part=True) or completion()
    if not searched and (found is None or not found.partners):
        found = from_another(traces, timed, part=True)
    if found is None or not found.partners or found.ruled == 0.0:
        return None
    counts = [len(trace.processes) for trace in traces]
    try:
        for count in (*counts, *larger_counts(counts, found.application.topology)):
            expanded(found.application, count).checked()
    except InputError:
        return None
    return found
