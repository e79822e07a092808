"""Processes that make the calls of one program whose partner exists, completed by the calls that they leave out.

Where the messages of a program lead to partners that some processes lack, the sequences of calls differ from process to
process, and no roles explain them. Completed by null communications (the ``X`` of the paper's local equations), all are
the same again: a call is missing exactly where its partner would be past the end of a line, or of a side of a grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from metasched.arrays import Flags, Ints
from metasched.signature.equations.expressions import Expression
from metasched.signature.equations.open_partners import NOBODY, open_label, open_place
from metasched.signature.equations.topologies import TOPOLOGIES, coordinates, dimensions_of
from metasched.signature.rules.attributes import Attribute, Axis
from metasched.signature.rules.numbered_runs import NumberedRun, tagged_shapes
from metasched.signature.rules.presence import OPEN, OPEN_IF_ANY
from metasched.signature.rules.roles import cells
from metasched.signature.traces.actions import ActionTable, Shape
from metasched.signature.traces.message_order import opened
from metasched.signature.traces.trace import Trace

#: Most children of the trees that are tried.
MOST_TRIED_CHILDREN = 8
#: Distances round each side, where every process has a partner.
ROUND = "shift"
#: Labels along the sides of a grid are one number, with this base.
BASE = 1 << 20


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation between partners along the sides of a grid.

    Parameters
    ----------
    topology : the grid.
    kind, of : one of :mod:`metasched.signature.equations.open_partners`, and its number; or :data:`ROUND`.
    """

    topology: str
    kind: str
    of: int = 0

    def labels(self, ranks: Ints, peers: Ints, count: int) -> tuple[Ints, Flags]:
        """The labels of partners, and which partners have one."""
        sides = TOPOLOGIES[self.topology](count)
        found, known = np.zeros(ranks.shape, dtype=np.int64), np.ones(ranks.shape, dtype=np.bool_)
        for own, peer, side in zip(coordinates(ranks, sides), coordinates(peers, sides), sides, strict=True):
            if self.kind == ROUND:
                found = found * BASE + np.mod(peer - own + side // 2, side) - side // 2
                continue
            label, has = open_label(self.kind, own, peer, self.of)
            found, known = found * BASE + label, known & has
        return found, known

    def exists(self, ranks: Ints, label: int, count: int) -> Flags:
        """Which processes have a partner with a label."""
        sides = TOPOLOGIES[self.topology](count)
        there = np.ones(ranks.shape, dtype=np.bool_)
        if self.kind == ROUND:
            return there
        for own, side, part in zip(coordinates(ranks, sides), sides, self._parts(label), strict=True):
            there &= open_place(self.kind, own, np.array(int(part)), self.of, side) != NOBODY
        return there

    def _parts(self, label: float) -> list[float]:
        """What a label, or a coefficient of one, holds for each side."""
        parts: list[float] = []
        for _ in range(dimensions_of(self.topology) - 1):
            rest = label - BASE * round(label / BASE)
            parts.insert(0, rest)
            label = (label - rest) / BASE
        return [label, *parts]

    def rule(self, label: Attribute) -> Attribute | None:
        """The rule of a partner from that of its label; None where labels depend on the process, or on another grid."""
        if label.table:
            table = [self.rule(each) for each in label.table]
            return replace(label, table=tuple(filter(None, table))) if all(table) and not label.placement else None
        by = label.expression
        # Sides are those of the label's own grid, and nothing else in it may differ from process to process.
        sided = label.topology not in ("", self.topology) and any(name[0] == "P" for name in by.names) if by else False
        if by is None or by.modulus or sided or any(name[0] in "rx" for name in by.names):
            return None
        constants = self._parts(by.constant)
        slopes = [self._parts(slope) for slope, _ in by.terms]
        axes = [
            Axis(
                self.kind,
                Expression(
                    constant,
                    tuple((own[side], atom) for own, (_, atom) in zip(slopes, by.terms, strict=True) if own[side]),
                ),
                self.of,
            )
            for side, constant in enumerate(constants)
        ]
        return Attribute(self.topology, tuple(axes))


def relations(topology: str) -> list[Relation]:
    """Those that are tried, simplest first."""
    trees = [Relation("line", "branch", of) for of in range(2, MOST_TRIED_CHILDREN + 1)]
    return [Relation(topology, "step"), Relation(topology, ROUND), Relation("line", "flip"), *trees]


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
        self.pairs = [_Pairs(run) for run in self.runs]


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
    for topology in topologies:
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
    guide: dict[tuple[int, ...], int] = {}
    # The largest run shows best in which order calls stand that no process of a smaller one makes together.
    for run, each in zip(reversed(runs), reversed(pairs), strict=True):
        merged = _Merged(run, each, keys, chosen, guide)
        members = _members(run, features)
        if not all(map(merged.as_often, members)) or not all(map(merged.add, members)):
            return None
        skips |= merged.skipped
        done = NumberedRun(merged.trace(), again, tags)
        done.missing = merged.missing()
        done.seconds = np.where(done.missing, 0.0, done.seconds)
        made.append(done)
        guide = guide or merged.guided
    waits = Attribute(expression=Expression(0.0, ((1.0, OPEN_IF_ANY if skips else OPEN),)))
    return Completed(features, tuple(reversed(made)), tuple(shape for shape, _ in keys), chosen, waits)


def _members(run: NumberedRun, features: str) -> list[Ints]:
    """The processes of one role after another, on the line: those with one cell of its features."""
    by_cell: dict[tuple[int, ...], list[int]] = {}
    for rank, cell in enumerate(cells(features, "line", run.count)):
        by_cell.setdefault(cell, []).append(rank)
    return [np.array(ranks) for ranks in by_cell.values()]


class _Pairs:
    """The different actions of each process: rank and action of each, and which of them stands where."""

    def __init__(self, run: NumberedRun) -> None:
        self.run = run
        done = [np.unique(process, return_inverse=True) for process in run.trace.processes]
        sizes = [actions.size for actions, _ in done]
        self.rank = np.repeat(np.arange(run.count), sizes)
        self.action = np.concatenate([actions for actions, _ in done]).astype(np.int64)
        starts = np.cumsum([0, *sizes[:-1]])
        self.at = [which.reshape(-1) + start for (_, which), start in zip(done, starts.tolist(), strict=True)]
        self.shape = run.shape_of[self.action]
        # Relations on the line are asked for again beside those of each grid.
        self.labels = cache(self._labels)
        self.different = cache(self._different)

    def of_shape(self, number: int) -> Ints:
        return np.flatnonzero(self.shape == number)

    def _labels(self, number: int, shape: Shape, relation: Relation) -> tuple[Ints, Ints, bool]:
        """The pairs of a shape, the labels of its partners, one row a pair, and whether all have one."""
        rows, all_known = self.of_shape(number), True
        columns = []
        for place in shape.peers:
            peers = self.run.column(number, place)[self.action[rows]].astype(np.int64)
            if place in shape.nulls:
                columns.append(np.zeros(rows.size, dtype=np.int64))
                continue
            labels, known = relation.labels(self.rank[rows], peers, self.run.count)
            columns.append(labels)
            all_known = all_known and bool(known.all()) and bool(np.all(peers >= 0))
        return rows, np.stack(columns, axis=1), all_known

    def _different(self, number: int, shape: Shape, relation: Relation) -> set[tuple[int, ...]] | None:
        """The different labels of a shape; None where some partner has none."""
        _, labels, known = self.labels(number, shape, relation)
        return {*map(tuple, labels.tolist())} if known else None


class _Merged:
    """The calls of processes, merged role by role into one sequence, of which each makes those whose partner exists."""

    def __init__(
        self, run: NumberedRun, pairs: _Pairs, keys: Sequence[tuple[Shape, float]], chosen: Mapping[int, Relation],
        guide: Mapping[tuple[int, ...], int],
    ) -> None:  # fmt: skip
        self.guide, self.guided = guide, dict[tuple[int, ...], int]()
        self.run, self.pairs, self.keys, self.chosen = run, pairs, keys, chosen
        self.skipped = False
        self.symbol = np.zeros(pairs.rank.size, dtype=np.int64)
        known: dict[tuple[int, ...], int] = {}
        self.calls: list[tuple[int, ...]] = []
        for number, (shape, _) in enumerate(keys):
            rows = pairs.of_shape(number)
            labels = np.zeros((rows.size, 0), dtype=np.int64)
            if number in chosen:
                _, labels, _ = pairs.labels(number, shape, chosen[number])
            for row, each in zip(rows.tolist(), labels.tolist(), strict=True):
                call = (number, *each)
                self.symbol[row] = known.setdefault(call, len(known))
        self.calls = [*known]
        names = [keys[call[0]][0].name.lower() for call in self.calls]
        self.opens = np.array([opened(name) for name in names])
        self.waits = np.array([name == "waitall" for name in names])
        waited = self.waits[self.symbol].tolist()
        numbers = [run.trace.table.numbers[action] for action in pairs.action.tolist()]
        #: How many requests each pair waits for.
        self.asked = np.array([own[0] if waits else 0.0 for own, waits in zip(numbers, waited, strict=True)])
        self.sequences: dict[int, Ints] = {}

    def as_often(self, ranks: Ints) -> bool:
        """Whether each call but waits is made equally often by all processes of a role whose partner exists."""
        times = np.stack([np.bincount(self.symbol[self.pairs.at[rank]], minlength=len(self.calls)) for rank in ranks])
        made = np.flatnonzero(times.any(axis=0) & ~self.waits).tolist()
        return all(np.array_equal(each := times[:, symbol], self._valid(symbol, ranks) * each.max()) for symbol in made)

    def _valid(self, symbol: int, ranks: Ints) -> Flags:
        number, *labels = self.calls[symbol]
        there = np.ones(ranks.size, dtype=np.bool_)
        for label in labels:
            there &= self.chosen[number].exists(ranks, label, self.run.count)
        return there

    def _order(self, last: tuple[int, ...], after: Mapping[int, int], symbol: int) -> tuple[int, bool, int]:
        """Where a call comes after the last one: as in the guide, else as calls of its shape did before."""
        call, many = self.calls[symbol], len(self.guide) + 1
        guided = (self.guide[call] - self.guide.get(last, -1)) % many or many if call in self.guide else many
        return guided, call[0] != after.get(last[0] if last else -1), symbol

    def add(self, ranks: Ints) -> bool:
        """Merge the calls of the processes of a role; False where they do not make the calls whose partner exists."""
        own = [self.pairs.at[rank] for rank in ranks.tolist()]
        pairs = np.full((ranks.size, max(each.size for each in own) + 1), -1, dtype=np.int64)
        for row, each in enumerate(own):
            pairs[row, : each.size] = each
        rows, at, requests = np.arange(ranks.size), np.zeros(ranks.size, dtype=np.int64), np.zeros(ranks.size)
        merged: list[int] = []
        there: list[Flags] = []
        after: dict[int, int] = {}
        valid: dict[int, Flags] = {}
        while True:
            heads = pairs[rows, at]
            calls = np.where(heads < 0, -1, self.symbol[heads])
            last = self.calls[merged[-1]] if merged else ()
            for symbol in sorted({*calls.tolist()} - {-1}, key=partial(self._order, last, after)):
                if symbol not in valid:
                    valid[symbol] = self._valid(symbol, ranks)
                here = calls == symbol
                waits = bool(self.waits[symbol])
                needed = here | (requests > 0) if waits else valid[symbol]
                if np.array_equal(here, needed) and not (waits and np.any(self.asked[heads[here]] != requests[here])):
                    break
            else:
                break
            self.skipped |= waits and not needed.all()
            requests[needed] = 0 if waits else requests[needed] + self.opens[symbol]
            if last:
                after[last[0]] = self.calls[symbol][0]
            self.guided.setdefault(self.calls[symbol], len(merged))
            merged.append(symbol)
            there.append(needed)
            at[needed] += 1
        if np.any(pairs[rows, at] >= 0):
            return False
        present = np.stack(there, axis=1)
        for row, rank in enumerate(ranks.tolist()):
            # Null actions have numbers of their own, after those of all pairs.
            process = self.pairs.rank.size + np.array(merged, dtype=np.int64)
            process[present[row]] = own[row]
            self.sequences[rank] = process
        return True

    def trace(self) -> Trace:
        """The completed run, with labels in place of partners."""
        table, to = self.run.trace.table, ActionTable()
        examples = {symbol: pair for pair, symbol in enumerate(self.symbol.tolist())}
        to.shapes = [*table.shapes]
        pairs = [*range(self.pairs.rank.size), *(examples[symbol] for symbol in range(len(self.calls)))]
        for number, pair in enumerate(pairs):
            action, call = int(self.pairs.action[pair]), self.calls[int(self.symbol[pair])]
            shape = table.shapes[table.shape[action]]
            numbers = [*table.numbers[action]]
            for place, label in zip(shape.peers, call[1:], strict=False):
                numbers[place] = float(label)
            if shape.name.lower() == "waitall":
                numbers[0] = 0.0
            to.shape.append(table.shape[action])
            to.numbers.append(tuple(numbers))
            if action in table.lists:
                to.lists[number] = table.lists[action]
        processes = [self.sequences[rank].astype(np.int32) for rank in range(self.run.count)]
        return Trace(to, tuple(processes))

    def missing(self) -> Flags:
        """Which actions of the completed run are not made."""
        return np.arange(self.pairs.rank.size + len(self.calls)) >= self.pairs.rank.size
