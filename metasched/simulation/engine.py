"""Simulates an application on a placement: groups of identical processes, messages, collective operations.

A message is under way from when its sender begins until as long after as its block takes; the sender is busy meanwhile.
Its receiver goes on when it has asked for it, it is there, and the receiver's link is free of the message before it,
which it takes in whether its receiver has asked for it or not.
All who take part in a collective operation go on when the last has come and its block's time has passed. What a process
receives is known by the sender's name, so clocks need no calendar of events: any order of running gives the same ones.

A group runs until it must wait; where its processes differ (in a condition, in whose message is there) it is split.
Rounds of loops that repeat are skipped (:mod:`metasched.simulation.steady`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, pairwise

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.blocks.entry import Block
from metasched.records import InputError
from metasched.simulation.application import COLLECTIVES, Application, Instruction
from metasched.simulation.channel import Channel
from metasched.simulation.expressions import Expression, Scope
from metasched.simulation.groups import DRAWN, Group, Sent, plain, positions, progressions
from metasched.simulation.steady import Steady
from metasched.simulation.system import Placement
from metasched.simulation.values import Affine, Value, each, part, settled, why

#: The senders whose messages a group waits for, by channel.
Wanted = list[tuple[tuple[str, str, int], range]]
#: Most instructions that an application may run, those of a group counted once.
STEPS = 1_000_000


class _SplitError(Exception):
    """Raised when processes of a group behave differently; holds the parts that the group is split into."""

    def __init__(self, parts: list[range]) -> None:
        super().__init__()
        self.parts = parts


def _called(group: Group, instruction: Instruction, size: float) -> str:
    amount = f" of {size:g} bytes" if instruction.values else ""
    return f"{group.label}[{group.ranks.start}] calls {instruction.kind}{amount} at line {instruction.line}"


def _first(times: Floats | float) -> float:
    """The time of a group's first process."""
    return float(times[0]) if isinstance(times, np.ndarray) else times


def _later(one: Floats | float, other: Floats | float) -> Floats | float:
    """The maximum of two times (s), element by element."""
    if type(one) is float and type(other) is float:
        return one if one >= other else other
    return np.maximum(one, other)


def _joined(times: list[Floats | float], found: list[Sent]) -> Floats | float:
    """The times (s) of the receivers of several messages, in the order of their group; one number if all are equal."""
    if all(not np.ndim(each) for each in times) and len({float(each) for each in times}) == 1:
        joined: Floats | float = settled(float(times[0]))
    else:
        lengths = [len(sent.ranks) for sent in found]
        joined = settled(np.concatenate([np.broadcast_to(t, n) for t, n in zip(times, lengths, strict=True)]))
    return joined


def _stretches(ranks: range, shift: int | None, others: Value) -> list[tuple[slice, int]]:
    """Ranks in a row whose partners are at one distance: their positions, and the distance.

    >>> _stretches(range(4), None, np.array([1, 2, 3, 0]))
    [(slice(0, 3, None), 1), (slice(3, 4, None), -3)]
    """
    if shift is not None:
        return [(slice(0, len(ranks)), shift)]
    distances = others - np.arange(ranks.start, ranks.stop, ranks.step)
    ends = [0, *(np.flatnonzero(np.diff(distances)) + 1).tolist(), len(ranks)]
    return [(slice(first, last), int(distances[first])) for first, last in pairwise(ends)]


class Simulation:
    """One run of an application.

    Parameters
    ----------
    application, placement : what runs where.
    variables : values that differ from the application's own.
    steps : most instructions to run.
    together : whether groups of processes are simulated as one, and rounds of loops that repeat as one; else each
        process and each round.
    """

    def __init__(
        self,
        application: Application,
        placement: Placement,
        variables: Mapping[str, float] | None = None,
        steps: int = STEPS,
        together: bool = True,
    ) -> None:
        self.application, self.placement, self.steps = application, placement, steps
        self.counts = {label: placement.counts.get(label, 0) for label in application.code}
        start = {**application.variables, **(variables or {})}
        self.groups: list[Group] = []
        for label, count in placement.counts.items():
            whole = range(count)
            parts = [whole] if together else [range(rank, rank + 1) for rank in whole]
            self.groups += [Group(label, ranks, {**start, "size": count}) for ranks in parts]
        for group in self.groups:
            self._renamed(group)
        self.messages: dict[tuple[str, str, int], Channel] = {}
        self._messages_took: dict[tuple[object, ...], Floats | float] = {}
        self.meetings: dict[tuple[str, ...], list[tuple[Group, Instruction, float]]] = {}
        self.waiting: list[tuple[Group, Instruction, Wanted]] = []
        self.steady = Steady(application) if together else None

    def run(self) -> list[Group]:
        """Run to the end and return the groups in their final state, with the end time (s) of each process.

        Raises
        ------
        InputError : when processes wait for each other forever, messages are never received, an expression has no
            value, or the instructions do not end.
        """
        ready = self.groups
        ended: list[Group] = []
        while True:
            while ready:
                group = ready.pop()
                for after in self._advance(group):
                    (ended if after.ended else ready).append(after)
            if self.steady is not None:
                self.steady.skip(self._at_rest(), self.messages)
            ready = self._received() or self._parted()
            if not ready:
                break
        if self.waiting or self.meetings:
            raise InputError(self._deadlock(ended), where=self.application.name)
        left = next(((key, sent) for key, channel in self.messages.items() for sent in channel), None)
        if left is not None:
            (label, other, shift), sent = left
            to = sent.ranks.start + shift
            raise InputError(
                f"deadlock: {label}[{sent.ranks.start}] sends to {other}[{to}] at line {sent.line}, "
                f"which never receives it: {self._state(other, to, ended)}",
                where=self.application.name,
            )
        return ended

    def _at_rest(self) -> list[Group]:
        """The groups that are blocked by a message or a collective operation."""
        return [*(group for group, *_ in self.waiting), *(one for there in self.meetings.values() for one, *_ in there)]

    def _advance(self, group: Group) -> Iterator[Group]:
        """Run a group until it blocks, ends or is split; yield the parts that are runnable or have ended."""
        code = self.application.code[group.label]
        while True:
            instruction = code[group.at]
            group.line = instruction.line
            self.steps -= 1
            if self.steps < 0:
                raise InputError(
                    "the application runs more instructions than it may: is there an endless loop?",
                    where=f"{self.application.name}, line {group.line}",
                )
            try:
                if not self._step(group, instruction):
                    if group.ended:
                        yield group
                    return
            except _SplitError as split:
                yield from self._split(group, split.parts)
                return
            except ArithmeticError as error:
                # It may be so for some of them only, or for none: of a condition's parts, each needs another.
                if (count := len(group.ranks)) > 1:
                    yield from self._split(group, [group.ranks[: count // 2], group.ranks[count // 2 :]])
                    return
                raise InputError(why(error), where=f"{self.application.name}, line {group.line}") from None

    def _split(self, group: Group, parts: list[range]) -> Iterator[Group]:
        for ranks in parts:
            smaller = group.cut(ranks)
            self._renamed(smaller)
            yield smaller

    def _renamed(self, group: Group) -> None:
        group.names["rank"] = group.ranks.start if len(group.ranks) == 1 else Affine(0, 1)
        if len(group.ranks) == 1:
            for name, value in group.names.items():
                if isinstance(value, Affine):
                    group.names[name] = value.a + value.b * group.ranks.start

    def _step(self, group: Group, instruction: Instruction) -> bool:
        """Run one instruction; false if the group blocks or has ended."""
        kind = instruction.kind
        if kind == "set":
            group.names[instruction.name] = self._value(group, instruction.values[0])
        elif kind == "unless":
            if not self._one(group, instruction.values[0]):
                group.at = instruction.target
                return True
        elif kind == "jump":
            group.at = instruction.target
            return True
        elif kind == "loop":
            first, last, step = (self._one(group, each_) for each_ in instruction.values)
            if any(each_ != int(each_) for each_ in (first, last, step)) or step == 0:
                raise ArithmeticError(f"range({first}, {last}, {step}) is not valid, expected whole numbers")
            group.names[instruction.name] = (0, range(int(first), int(last), int(step)))
        elif kind == "next":
            place, over = group.names[instruction.name]
            if place >= len(over):
                group.at = instruction.target
                return True
            group.names[instruction.labels[0]] = over[place]
            group.names[instruction.name] = (place + 1, over)
        elif kind == "end":
            group.ended = True
            return False
        elif kind in COLLECTIVES:
            self._meet(group, instruction)
            return False
        elif kind == "send":
            self._send(group, instruction)
        elif kind == "recv":
            wanted = self._wanted(group, instruction)
            if not self._receive(group, wanted):
                self.waiting.append((group, instruction, wanted))
                return False
        else:
            self._work(group, instruction)
        group.at += 1
        return True

    def _value(self, group: Group, expression: Expression) -> Value:
        return expression(Scope(group.names, group.ranks, self.counts))

    def _one(self, group: Group, expression: Expression) -> Value:
        """Evaluate an expression that must be equal in all processes of a group; split the group otherwise."""
        value = settled(each(self._value(group, expression), group.ranks))
        if isinstance(value, np.ndarray):
            raise _SplitError(
                [ranks for each_ in np.unique(value) for ranks in progressions(group.ranks, value == each_)]
            )
        return value

    def _amount(self, group: Group, expression: Expression, what: str) -> Floats | float:
        value = each(self._value(group, expression), group.ranks)
        if not isinstance(value, np.ndarray) and value >= 0:
            return float(value)
        if np.any(np.asarray(value) < 0):
            raise ArithmeticError(f"the {what} is {np.min(value):g}, expected a number of at least 0")
        return value if isinstance(value, np.ndarray) else float(value)

    def _work(self, group: Group, instruction: Instruction) -> None:
        if instruction.kind == "compute":
            data, operations, factor = instruction.values
            size = self._amount(group, data, "data size")
            inner = Scope({**group.names, "data": size}, group.ranks, self.counts)
            count = self._amount(group, lambda _: operations(inner), "number of operations")
            count = count * self._amount(group, factor, "factor")
            took = self.placement.compute(group.label, group.ranks, count)
        else:
            size = self._amount(group, instruction.values[0], "data size")
            took = self.placement.disk(group.label, group.ranks, Block(instruction.kind), size)
        self._draw(group, instruction.kind, took)
        group.clock = settled(group.clock + took)
        group.busy = settled(group.busy + took)

    def _draw(self, group: Group, kind: str, took: Floats | float) -> None:
        if len(group.drawn) < DRAWN:
            begin, length = _first(group.clock), _first(took)
            if group.drawn and group.drawn[-1][0] == kind and group.drawn[-1][2] == begin:
                group.drawn[-1] = (kind, group.drawn[-1][1], begin + length)
            else:
                group.drawn.append((kind, begin, begin + length))

    def _others(self, group: Group, instruction: Instruction) -> tuple[int | None, Value]:
        """The ranks of the partner processes: their common distance if there is one, and the rank of each."""
        count = self.counts[instruction.name]
        value = self._value(group, instruction.values[0])
        first, last = group.ranks[0], group.ranks[-1]
        if isinstance(value, Affine) and value.b == 1 and value.a + first >= 0 and value.a + last < count:
            return int(value.a), value
        others = np.broadcast_to(np.asarray(each(value, group.ranks), dtype=np.float64), len(group.ranks))
        whole = others == np.floor(others)
        if not np.all(whole & (others >= 0) & (others < count)):
            wrong = others[~whole | (others < 0) | (others >= count)][0]
            known = f"there are {count}" if wrong >= count else f"expected from 0 to {count - 1}"
            raise ArithmeticError(f"{instruction.name}[{wrong:g}] is no process, {known}")
        if len(group.ranks) == 1:
            return int(others[0]) - first, others
        return None, others.astype(np.int64)

    def _send(self, group: Group, instruction: Instruction) -> None:
        size = self._amount(group, instruction.values[1], "data size")
        shift, others = self._others(group, instruction)
        here = self.placement.nodes_of(group.label, group.ranks)
        if shift is not None:
            to = range(group.ranks.start + shift, group.ranks[-1] + shift + 1, group.ranks.step)
            there = self.placement.nodes_of(instruction.name, to)
        else:
            there = self.placement.node[instruction.name][others]
        took = self._took(group.label, instruction.name, group.ranks, shift, here, there, size)
        self._draw(group, "send", took)
        group.clock = settled(group.clock + took)
        for chosen, distance in _stretches(group.ranks, shift, others):
            ranks, there_at = plain(group.ranks[chosen]), part(group.clock, chosen)
            sent = Sent(ranks, there_at, part(took, chosen), instruction.line)
            self.messages.setdefault((group.label, instruction.name, distance), Channel()).put(sent)

    def _took(
        self, label: str, other: str, ranks: range, shift: int | None, here: Ints, there: Ints, size: Floats | float
    ) -> Floats | float:
        if shift is None or isinstance(size, np.ndarray):
            return self.placement.message(here, there, size)
        key = (label, other, ranks, shift, size)
        if key not in self._messages_took:
            self._messages_took[key] = self.placement.message(here, there, size)
        return self._messages_took[key]

    def _wanted(self, group: Group, instruction: Instruction) -> Wanted:
        """The senders whose messages a group waits for, by channel."""
        wanted = []
        for chosen, distance in _stretches(group.ranks, *self._others(group, instruction)):
            ranks = group.ranks[chosen]
            senders = range(ranks.start + distance, ranks[-1] + distance + 1, ranks.step)
            wanted.append(((instruction.name, group.label, -distance), plain(senders)))
        return wanted

    def _receive(self, group: Group, wanted: Wanted) -> bool:
        found: list[Sent] = []
        for key, senders in wanted:
            first = self.messages[key].first(senders) if key in self.messages else None
            if first is None:
                return False
            found += first
        before = group.clock
        self._arrive(group, found)
        for key, senders in wanted:
            self.messages[key].take(senders)
        if len(group.drawn) < DRAWN:
            group.drawn.append(("wait", _first(before), _first(group.clock)))
        return True

    def _arrive(self, group: Group, found: list[Sent]) -> None:
        """Resume a group when its messages have arrived over its link."""
        times, links, first = [], [], 0
        for sent in found:
            chosen = slice(first, first + len(sent.ranks))
            clock, link = part(group.clock, chosen), part(group.link, chosen)
            # The link takes a message in whether its receiver has asked for it yet or not.
            links.append(_later(sent.there, link + sent.takes))
            times.append(_later(clock, links[-1]))
            first = chosen.stop
        assert first == len(group.ranks)  # noqa: S101 - every process received one
        group.clock, group.link = _joined(times, found), _joined(links, found)

    def _meet(self, group: Group, instruction: Instruction) -> None:
        labels = instruction.labels
        if empty := [label for label in labels if not self.counts[label]]:
            raise ArithmeticError(f"{empty[0]} takes part in {instruction.kind} and has no processes")
        size = float(self._one(group, instruction.values[0])) if instruction.values else 0.0
        if size < 0:
            raise ArithmeticError(f"the data size is {size:g}, expected a number of at least 0")
        there = self.meetings.setdefault(labels, [])
        if there and (there[0][1].kind, there[0][2]) != (instruction.kind, size):
            raise InputError(
                f"{_called(group, instruction, size)}, where {_called(*there[0])}", where=self.application.name
            )
        there.append((group, instruction, size))

    def _met(self) -> list[Group]:
        """The groups of collective operations that all participants have entered."""
        found: list[Group] = []
        for labels, there in [*self.meetings.items()]:
            if sum(len(group.ranks) for group, _, _ in there) < sum(self.counts[label] for label in labels):
                continue
            del self.meetings[labels]
            kind, size = there[0][1].kind, there[0][2]
            end = max(float(np.max(group.clock)) for group, _, _ in there)
            end += self.placement.collective(Block(kind), labels, size)
            for group, _, _ in there:
                if len(group.drawn) < DRAWN:
                    group.drawn.append((kind, _first(group.clock), end))
                group.clock, group.link = end, end
                group.at += 1
                found.append(group)
        return found

    def _received(self) -> list[Group]:
        """The groups that can resume: all messages, or all participants of a collective operation, are there."""
        found = self._met()
        waiting, self.waiting = self.waiting, []
        for group, instruction, wanted in waiting:
            if self._receive(group, wanted):
                group.at += 1
                found.append(group)
            else:
                self.waiting.append((group, instruction, wanted))
        return found

    def _parted(self) -> list[Group]:
        """Split the groups in which only some processes can resume."""
        for number, (group, _, wanted) in enumerate(self.waiting):
            if len(group.ranks) == 1:
                continue
            can = np.zeros(len(group.ranks), dtype=np.bool_)
            place = 0
            for key, senders in wanted:
                for ranks in self.messages[key].among(senders) if key in self.messages else ():
                    can[place : place + len(senders)][positions(senders, ranks)] = True
                place += len(senders)
            if can.any():
                del self.waiting[number]
                parts = [*progressions(group.ranks, can), *progressions(group.ranks, ~can)]
                smaller = [group.cut(ranks) for ranks in parts]
                for each_ in smaller:
                    self._renamed(each_)
                return smaller
        return []

    def _deadlock(self, ended: list[Group]) -> str:
        if self.waiting:
            group, instruction, wanted = self.waiting[0]
            (other, *_), senders = wanted[0]
            rank = senders.start
            what = f"recv from {other}[{rank}]"
        else:
            labels, there = next(iter(self.meetings.items()))
            group, instruction, _ = there[0]
            come = {(each_.label, rank) for each_, _, _ in there for rank in each_.ranks}
            missing = ((label, rank) for label in labels for rank in range(self.counts[label]))
            other, rank = next(each_ for each_ in missing if each_ not in come)
            what = instruction.kind
        here = f"{group.label}[{group.ranks.start}] waits at line {instruction.line} ({what})"
        return f"deadlock: {here}, and {self._state(other, rank, ended)}"

    def _state(self, label: str, rank: int, ended: list[Group]) -> str:
        """The state of a process in words, with the line at which it has ended or is blocked."""
        name = f"{label}[{rank}]"
        for group, instruction, _ in chain(self.waiting, *self.meetings.values()):
            if group.label == label and rank in group.ranks:
                return f"{name} waits at line {instruction.line} ({instruction.kind})"
        last = next((group.line for group in ended if group.label == label and rank in group.ranks), 0)
        return f"{name} has ended at line {last}" if last else f"{name} does not run"
