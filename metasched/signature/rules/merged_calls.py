"""The calls of processes, merged role by role into one sequence, of which each makes those whose partner exists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial

import numpy as np

from metasched.arrays import Flags, Floats, Ints
from metasched.signature.rules.numbered_runs import NumberedRun
from metasched.signature.rules.open_relations import Relation
from metasched.signature.rules.open_sides import BothWays, Call, NestedLoops, period, with_lacking
from metasched.signature.traces.actions import ActionTable, Shape
from metasched.signature.traces.message_order import opened
from metasched.signature.traces.trace import Trace


class CallPairs:
    """The different actions of each process: rank and action of each, and which of them stands where.

    Parameters
    ----------
    run : whose actions these are.
    """

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
        #: The last relations that calls were asked for, and these calls.
        self._last: tuple[tuple[tuple[int, Relation], ...], Ints, tuple[Call, ...]] | None = None

    def of_shape(self, number: int) -> Ints:
        """The pairs whose action has a shape."""
        return np.flatnonzero(self.shape == number)

    def often(self, called: Iterable[tuple[int, Shape]], relation: Relation) -> dict[int, int]:
        """How often a process calls each neighbour along a side of a grid, at most, by the side; corners left out.

        Parameters
        ----------
        called : shapes that have partners, with their numbers.
        relation : of partners to processes.
        """
        found: dict[int, int] = {}
        times = np.bincount(np.concatenate(self.at), minlength=self.rank.size)
        for number, shape in called:
            rows, labels, _ = self.labels(number, shape, relation)
            for label, many in {*zip(labels[:, 0].tolist(), times[rows].tolist(), strict=True)}:
                along = [side for side, part in enumerate(relation.parts(label)) if part]
                if len(along) == 1:
                    found[along[0]] = max(found.get(along[0], 0), many)
        return found

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

    def calls(self, shapes: Sequence[Shape], chosen: tuple[tuple[int, Relation], ...]) -> tuple[Ints, tuple[Call, ...]]:
        """The call of each pair by its number, and all calls: the number of a shape with the labels of its partners.

        The same relations are tried with one way to tell roles apart after another, so the last ones are kept.

        Parameters
        ----------
        shapes : of actions, by number.
        chosen : the numbers of shapes that have partners, with how these are related.
        """
        if self._last is None or self._last[0] != chosen:
            relations, symbol = dict(chosen), np.zeros(self.rank.size, dtype=np.int64)
            known: dict[Call, int] = {}
            for number, shape in enumerate(shapes):
                rows = self.of_shape(number)
                labels = np.zeros((rows.size, 0), dtype=np.int64)
                if number in relations:
                    _, labels, _ = self.labels(number, shape, relations[number])
                for row, each in zip(rows.tolist(), labels.tolist(), strict=True):
                    symbol[row] = known.setdefault((number, *each), len(known))
            self._last = chosen, symbol, (*known,)
        return self._last[1:]


class MergedCalls:
    """The calls of the processes of a run, merged role by role into one sequence.

    Parameters
    ----------
    run, pairs : the run, and the different actions of its processes.
    keys : the shapes of actions, each with what tells its calls apart, by number.
    chosen : of each shape that has partners, how they are related.
    largest : the merged calls of the largest run, which shows best how they follow each other; None in that run itself.
    """

    def __init__(
        self, run: NumberedRun, pairs: CallPairs, keys: Sequence[tuple[Shape, float]], chosen: Mapping[int, Relation],
        largest: MergedCalls | None,
    ) -> None:  # fmt: skip
        #: Where calls stand first, here and in the largest run.
        self.guided = dict[Call, int]()
        self.guide: Mapping[Call, int] = {} if largest is None else largest.guided
        self.run, self.pairs, self.keys, self.chosen = run, pairs, keys, chosen
        self.skipped = False
        self.symbol, calls = pairs.calls([shape for shape, _ in keys], tuple(chosen.items()))
        #: Where pairs stand in each process, and the action of each.
        self.at, self.action = pairs.at, pairs.action
        self.calls = [*calls]
        if largest is not None:
            self._tell_apart(largest)
        names = [keys[call[0]][0].name.lower() for call in self.calls]
        self.opens = np.array([opened(name) for name in names])
        self.waits = np.array([name == "waitall" for name in names])
        waited = self.waits[self.symbol].tolist()
        numbers = [run.trace.table.numbers[action] for action in self.action.tolist()]
        #: How many requests each pair waits for.
        self.asked = np.array([own[0] if waits else 0.0 for own, waits in zip(numbers, waited, strict=True)])
        self.sequences: dict[int, Ints] = {}
        #: The calls of each role in order, and of those that the run lacks, by number, an action of the largest run.
        self.merged: list[list[int]] = []
        self.lacking: dict[int, tuple[Shape, tuple[float, ...], tuple[Floats, ...]]] = {}
        self.both_ways: BothWays | None = None if largest is None else largest.both_ways
        #: Only where the order of calls is not known from the largest run, and where corners have some.
        self.nested: NestedLoops | None = None
        if largest is None:
            self._order_calls()

    def _order_calls(self) -> None:
        """Find the order of calls that no process makes together, where partners are neighbours in one grid."""
        relations = {*self.chosen.values()}
        labels = [label for call in self.calls for label in call[1:]]
        if len(relations) != 1 or not (relation := relations.pop()).beside(labels):
            return
        kinds: dict[Shape, int] = {}
        of = [kinds.setdefault(shape, len(kinds)) for shape, _ in self.keys]
        waits = {of[call[0]] for call, each in zip(self.calls, self.waits, strict=True) if each}
        processes = [[self.calls[each] for each in self.symbol[at].tolist()] for at in self.at]
        self.both_ways = BothWays(relation.parts, of, waits, processes)
        if not self.both_ways.complete:
            self.nested = NestedLoops(relation.parts, of, processes)

    def _tell_apart(self, largest: MergedCalls) -> None:
        """Give calls that go round sides of two processes, or of one, the ways that they go in the largest run.

        There these are different calls, which come in the same order again and again.
        """
        if len(largest.merged) != 1 or not any(each.around for each in self.chosen.values()):
            return
        ways: dict[Call, list[Call]] = {}
        for call in (largest.calls[symbol] for symbol in largest.merged[0]):
            relation = self.chosen.get(call[0])
            here = call if relation is None else (call[0], *(relation.at(each, self.run.count) for each in call[1:]))
            ways.setdefault(here, []).append(call)
        turns = {here: period(several) for here, several in ways.items() if {*several} != {here}}
        if not turns:
            return
        numbers = {call: symbol for symbol, call in enumerate(self.calls)}
        of, actions = [turns.get(self.calls[symbol]) for symbol in self.symbol.tolist()], self.action.tolist()
        symbols, made, at = self.symbol.tolist(), dict[tuple[int, Call], int](), list[Ints]()
        for process in self.at:
            often: dict[int, int] = {}
            own = process.tolist()
            for place, pair in enumerate(own):
                if (turn := of[pair]) is None:
                    continue
                symbol = symbols[pair]
                way = turn[often.get(symbol, 0) % len(turn)]
                often[symbol] = often.get(symbol, 0) + 1
                if (pair, way) not in made:
                    made[pair, way] = len(actions)
                    actions.append(actions[pair])
                    symbols.append(numbers.setdefault(way, len(numbers)))
                own[place] = made[pair, way]
            at.append(np.array(own, dtype=np.int64))
        self.calls, self.symbol = [*numbers], np.array(symbols, dtype=np.int64)
        self.at, self.action = at, np.array(actions, dtype=np.int64)

    def as_often(self, ranks: Ints) -> bool:
        """Whether each call but waits is made equally often by all processes of a role whose partner exists."""
        times = np.stack([np.bincount(self.symbol[self.at[rank]], minlength=len(self.calls)) for rank in ranks])
        made = np.flatnonzero(times.any(axis=0) & ~self.waits).tolist()
        return all(np.array_equal(each := times[:, symbol], self._valid(symbol, ranks) * each.max()) for symbol in made)

    def _valid(self, symbol: int, ranks: Ints) -> Flags:
        number, *labels = self.calls[symbol]
        there = np.ones(ranks.size, dtype=np.bool_)
        for label in labels:
            there &= self.chosen[number].exists(ranks, label, self.run.count)
        return there

    def _order(self, last: Call, after: Mapping[int, int], symbol: int) -> tuple[int, bool, int]:
        """Where a call comes after the last one: as in the guide, else as calls of its shape did before."""
        call, many = self.calls[symbol], len(self.guide) + 1
        guided = (self.guide[call] - self.guide.get(last, -1)) % many or many if call in self.guide else many
        return guided, call[0] != after.get(last[0] if last else -1), symbol

    def add(self, ranks: Ints) -> bool:
        """Merge the calls of the processes of a role; False where they do not make the calls whose partner exists."""
        own = [self.at[rank] for rank in ranks.tolist()]
        pairs = np.full((ranks.size, max(each.size for each in own) + 1), -1, dtype=np.int64)
        for row, each in enumerate(own):
            pairs[row, : each.size] = each
        rows, at, requests = np.arange(ranks.size), np.zeros(ranks.size, dtype=np.int64), np.zeros(ranks.size)
        merged: list[int] = []
        there: list[Flags] = []
        after: dict[int, int] = {}
        along: dict[int, int] = {}
        valid: dict[int, Flags] = {}

        def may_follow(symbol: int) -> bool:
            """Whether all processes whose partner exists make a call next."""
            if symbol not in valid:
                valid[symbol] = self._valid(symbol, ranks)
            here = calls == symbol
            waits = bool(self.waits[symbol])
            needed = here | (requests > 0) if waits else valid[symbol]
            return np.array_equal(here, needed) and not (waits and np.any(self.asked[heads[here]] != requests[here]))

        while True:
            heads = pairs[rows, at]
            calls = np.where(heads < 0, -1, self.symbol[heads])
            last = self.calls[merged[-1]] if merged else ()
            possible = filter(may_follow, sorted({*calls.tolist()} - {-1}, key=partial(self._order, last, after)))
            if (symbol := next(possible, -1)) < 0:
                break
            if self.both_ways is not None:
                calls_next = [self.calls[each] for each in (symbol, *possible)]
                first = (
                    self.nested.first(calls_next, last)
                    if self.nested is not None and len(calls_next) > 1
                    else self.both_ways.first(calls_next, last, along)
                )
                if first is None:
                    return False
                symbol = self.calls.index(first)
                self.both_ways.passed(first, along)
            needed, waits = calls == symbol, bool(self.waits[symbol])
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
        self.merged.append(merged)
        present = np.stack(there, axis=1)
        for row, rank in enumerate(ranks.tolist()):
            # Null actions have numbers of their own, after those of all pairs.
            process = self.action.size + np.array(merged, dtype=np.int64)
            process[present[row]] = own[row]
            self.sequences[rank] = process
        return True

    def with_lacking(self, largest: MergedCalls) -> bool:
        """Add the calls of the largest run whose partner no process has; False where their places are not clear."""
        there = {*self.calls}
        new = [call for call in largest.calls if call not in there and len(call) > 1]
        known = largest.both_ways is not None
        if not new or not known or len(self.merged) != 1 or len(largest.merged) != 1:
            return True
        opens = {call: int(many) for call, many in zip(largest.calls, largest.opens, strict=True)}
        waits = {call for call, each in zip(largest.calls, largest.waits, strict=True) if each}
        own, whole = ([each.calls[symbol] for symbol in each.merged[0]] for each in (self, largest))
        made = with_lacking(own, whole, new, opens, waits)
        if made is None:
            return False
        for call in dict.fromkeys(call for call, lacks in made if lacks and call not in there):
            self.lacking[len(self.calls)] = largest.example(call)
            self.calls.append(call)
        numbers = {call: symbol for symbol, call in enumerate(self.calls)}
        if any(self._valid(numbers[call], np.arange(self.run.count)).any() for call in new):
            return False
        size = self.action.size
        for rank, process in self.sequences.items():
            actions = iter(process.tolist())
            self.sequences[rank] = np.array([size + numbers[call] if lacks else next(actions) for call, lacks in made])
        self.skipped |= any(call in waits for call, lacks in made if lacks)
        return True

    def example(self, call: Call) -> tuple[Shape, tuple[float, ...], tuple[Floats, ...]]:
        """The shape, numbers and lists of an action that makes a call."""
        table = self.run.trace.table
        action = int(self.action[np.flatnonzero(self.symbol == self.calls.index(call))[-1]])
        return table.shapes[table.shape[action]], table.numbers[action], table.lists.get(action, ())

    def trace(self) -> Trace:
        """The completed run, with labels in place of partners."""
        table, to = self.run.trace.table, ActionTable()
        to.shapes = [*table.shapes]
        calls = [*self.symbol.tolist(), *range(len(self.calls))]
        examples = {symbol: int(self.action[pair]) for pair, symbol in enumerate(self.symbol.tolist())}
        of_pairs = [*self.action.tolist(), *(examples.get(symbol, -1) for symbol in range(len(self.calls)))]
        for number, (symbol, action) in enumerate(zip(calls, of_pairs, strict=True)):
            if action < 0:
                shape, known, lists = self.lacking[symbol]
                to.shapes += [shape] if shape not in to.shapes else []
            else:
                shape, known = table.shapes[table.shape[action]], table.numbers[action]
                lists = table.lists.get(action, ())
            numbers = [*known]
            for place, label in zip(shape.peers, self.calls[symbol][1:], strict=False):
                numbers[place] = float(label)
            if shape.name.lower() == "waitall":
                numbers[0] = 0.0
            to.shape.append(to.shapes.index(shape))
            to.numbers.append(tuple(numbers))
            if lists:
                to.lists[number] = lists
        processes = [self.sequences[rank].astype(np.int32) for rank in range(self.run.count)]
        return Trace(to, tuple(processes))

    def missing(self) -> Flags:
        """Which actions of the completed run are not made."""
        return np.arange(self.action.size + len(self.calls)) >= self.action.size
