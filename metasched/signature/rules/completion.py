"""Processes that make the calls of one program whose partner exists, completed by the calls that they leave out.

Where the messages of a program lead to partners that some processes lack, the sequences of calls differ from process to
process, and no roles explain them. Completed by null communications (the ``X`` of the paper's local equations), all are
the same again: a call is missing exactly where its partner would be past the end of a line, or of a side of a grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from metasched.arrays import Ints
from metasched.signature.equations.expressions import Expression
from metasched.signature.equations.topologies import TOPOLOGIES, dimensions_of
from metasched.signature.rules.attributes import Attribute
from metasched.signature.rules.merged_calls import CallPairs, MergedCalls
from metasched.signature.rules.numbered_runs import MOST_SIDES, NumberedRun, tagged_shapes
from metasched.signature.rules.open_relations import Relation, relations
from metasched.signature.rules.presence import OPEN, OPEN_IF_ANY
from metasched.signature.rules.roles import cells
from metasched.signature.traces.actions import Shape
from metasched.signature.traces.trace import Trace

#: On how many grids relations are tried by which partners are no neighbours.
MOST_LINES = 14


@dataclass(frozen=True)
class Completed:
    """Runs whose processes, role by role, all make the same calls.

    Parameters
    ----------
    features : that tell the roles apart, on the line.
    runs, shapes : completed; the shapes of their actions by number.
    relations : of each shape that has partners, which stand in its actions as labels.
    waits : the rule of how many requests a ``waitall`` waits for.
    """

    features: str
    runs: tuple[NumberedRun, ...]
    shapes: tuple[Shape, ...]
    relations: Mapping[int, Relation]
    waits: Attribute


class Incomplete:
    """Runs with the different actions of each process, which the calls that processes leave out may complete.

    Parameters
    ----------
    traces : of different counts, smallest first.
    """

    def __init__(self, traces: Sequence[Trace]) -> None:
        #: Shapes whose tags tell places of the program apart.
        self.tags = tagged_shapes(traces)
        self.numbered: dict[tuple[Shape, float], int] = {}
        self.runs = [NumberedRun(trace, self.numbered, self.tags) for trace in traces]
        self.pairs = [CallPairs(run) for run in self.runs]


def related(found: Incomplete, topologies: Sequence[str]) -> Iterator[dict[int, Relation]]:
    """The relations of partners that may complete runs, by the shape of the call, simplest first and each once.

    Parameters
    ----------
    found : the runs.
    topologies : along whose sides distances are counted; those on the line are the same for each of them.
    """
    keys, given = [*found.numbered], list[dict[int, Relation]]()
    # Which calls a process leaves out is seen from how many messages it waits for.
    if any(shape.name.lower() == "waitall" and not shape.numbers for shape, _ in keys):
        return
    called = [(number, shape) for number, (shape, _) in enumerate(keys) if {*shape.peers} - {*shape.nulls}]
    # Neighbours in one grid are believed before other relations that would have fewer labels where sides are short, but
    # not before the same distances on the line in all runs.
    line = Relation("line", "step")
    steady = all(
        run.different(*each, line) == found.pairs[-1].different(*each, line) for each in called for run in found.pairs
    )
    for topology in topologies if called else ():
        around = _around(found, called, topology)
        if (topology == "line" and steady) or beside(found, called, topology, around):
            given.append({number: Relation(topology, "step", around=around) for number, _ in called})
            yield given[-1]
    for topology in topologies[:MOST_LINES]:
        chosen: dict[int, Relation] = {}
        for number, shape in called:
            known = [(len(labels), place, relation) for place, relation in enumerate(relations(topology))
                     if (labels := found.pairs[-1].different(number, shape, relation)) is not None]  # fmt: skip
            if not known:
                break
            chosen[number] = min(known)[2]
        if len(chosen) == len(called) and chosen not in given:
            given.append(chosen)
            yield chosen


def _around(found: Incomplete, called: Sequence[tuple[int, Shape]], topology: str) -> tuple[int, ...]:
    """The sides of a grid that neighbours would be round: some partner is more than a step along them.

    Along a side of two none is, but the one neighbour there gets as much as two along longer sides do. None where they
    would be round all sides.
    """
    if dimensions_of(topology) > MOST_SIDES:
        return ()
    step, sides = Relation(topology, "step"), set[int]()
    for run in found.pairs:
        for label in {*chain.from_iterable(chain.from_iterable(run.different(*each, step) or () for each in called))}:
            sides |= {side for side, part in enumerate(step.parts(label)) if abs(part) > 1}
    around = Relation(topology, "step", around=tuple(sorted(sides)))
    largest = found.pairs[-1]
    lengths, often = TOPOLOGIES[topology](largest.run.count), largest.often(called, around)
    longer = {many for side, many in often.items() if lengths[side] > 2}
    sides |= {side for side, many in often.items() if lengths[side] == 2 and longer == {many / 2}}
    return tuple(sorted(sides)) if len(sides) < len(lengths) else ()


def beside(found: Incomplete, called: Sequence[tuple[int, Shape]], topology: str, around: tuple[int, ...] = ()) -> bool:
    """Whether all partners are neighbours along the sides of a grid, corners included, round some of them."""
    step = Relation(topology, "step", around=around)
    return dimensions_of(topology) <= MOST_SIDES and all(
        (labels := run.different(number, shape, step)) is not None and step.beside(chain.from_iterable(labels))
        for run in found.pairs
        for number, shape in called
    )


def completed(found: Incomplete, features: str, chosen: Mapping[int, Relation]) -> Completed | None:
    """Runs completed by the calls that processes leave out; None where they make no such program.

    Parameters
    ----------
    found : the runs.
    features : that tell roles with programs of their own apart, on the line.
    chosen : of each shape that has partners, how they are related.
    """
    numbered, runs, pairs, tags = found.numbered, found.runs, found.pairs, found.tags
    keys = [*numbered]
    again: dict[tuple[Shape, float], int] = dict(numbered)
    made, skips = [], False
    largest: MergedCalls | None = None
    # The largest run shows best in which order calls stand that no process of a smaller one makes together.
    for run, each in zip(reversed(runs), reversed(pairs), strict=True):
        merged = MergedCalls(run, each, keys, chosen, largest)
        members = _members(run, features)
        if not all(map(merged.as_often, members)) or not all(map(merged.add, members)):
            return None
        if largest is not None and not merged.with_lacking(largest):
            return None
        skips |= merged.skipped
        done = NumberedRun(merged.trace(), again, tags)
        done.missing = merged.missing()
        done.seconds = np.where(done.missing, 0.0, done.seconds)
        made.append(done)
        largest = largest or merged
    waits = Attribute(expression=Expression(0.0, ((1.0, OPEN_IF_ANY if skips else OPEN),)))
    return Completed(features, tuple(reversed(made)), tuple(shape for shape, _ in keys), chosen, waits)


def _members(run: NumberedRun, features: str) -> list[Ints]:
    """The processes of one role after another, on the line: those with one cell of its features."""
    by_cell: dict[tuple[int, ...], list[int]] = {}
    for rank, cell in enumerate(cells(features, "line", run.count)):
        by_cell.setdefault(cell, []).append(rank)
    return [np.array(ranks) for ranks in by_cell.values()]
