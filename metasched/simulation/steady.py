"""Loops whose rounds repeat themselves: from a round that only shifts the clocks on, the next ones follow by addition.

What a round does to the clocks is made of maxima and sums. Such a map keeps a shift of all clocks by the same time, so
two moments that differ by nothing else repeat until a loop ends (F. Baccelli, G. Cohen, G. J. Olsder and J.-P. Quadrat,
*Synchronization and Linearity*, 1992, section 3.7). Moments are compared as R. P. Brent's search for cycles does (*An
improved Monte Carlo factorization algorithm*, BIT 20, 1980, section 2): one is kept, and renewed after 1, 2, 4, 8, ...
further ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from metasched.arrays import Floats
from metasched.simulation.application import Application
from metasched.simulation.channel import Channel
from metasched.simulation.groups import DRAWN, Group, Sent
from metasched.simulation.values import Value

Messages = Mapping[tuple[str, str, int], Channel]

#: How far shifts may differ by rounding, of the clocks.
ROUNDING = 8 * float(np.finfo(np.float64).eps)
#: A round must take at least this share of the time so far, so that rounding stays below 1e-10 however many follow.
SHORTEST = 1e-5


@dataclass(frozen=True)
class _Moment:
    """A snapshot: blocked groups, the drawn part of each, and the messages not yet received."""

    groups: Mapping[tuple[str, range], Group]
    drawn: Mapping[tuple[str, range], int]
    messages: Mapping[tuple[str, str, int], tuple[Sent, ...]]


@dataclass(frozen=True)
class _Turn:
    """The progress of a group's loop in one round: its name, its iterations, and the number of rounds left."""

    loop: str
    turns: int
    rounds: int


class Steady:
    """Detects rounds that only shift all clocks, by comparison with an earlier snapshot, and skips them."""

    def __init__(self, application: Application) -> None:
        #: The variable of each loop, where no expression asks for it: its value decides nothing.
        self._unread = {
            label: {
                each.name: each.labels[0]
                for each in code
                if each.kind == "next" and each.labels[0] not in application.used
            }
            for label, code in application.code.items()
        }
        self._kept: _Moment | None = None
        self._moments, self._renewed = 0, 1

    def skip(self, waiting: Iterable[Group], messages: Messages) -> int:
        """Skip rounds that would repeat the last one, once all groups are blocked or have ended; return their number.

        Parameters
        ----------
        waiting : the groups that have not ended; their clocks and loops are moved on.
        messages : those not yet received, which are moved on likewise.
        """
        if not any(self._unread.values()):
            return 0
        groups = list(waiting)
        self._moments += 1
        rounds = 0 if self._kept is None else self._skipped(self._kept, groups, messages)
        if self._moments >= self._renewed:
            # Also after rounds were skipped: a loop around this one has longer rounds.
            self._moments, self._renewed = 0, self._renewed if self._kept is None else 2 * self._renewed
            self._kept = _Moment(
                {(each.label, each.ranks): replace(each, names=dict(each.names)) for each in groups},
                {(each.label, each.ranks): len(each.drawn) for each in groups},
                {key: tuple(replace(sent) for sent in held) for key, held in _held(messages).items()},
            )
        return rounds

    def _skipped(self, kept: _Moment, groups: list[Group], messages: Messages) -> int:
        if len(groups) != len(kept.groups):
            return 0
        active: list[tuple[Group, Group, _Turn]] = []
        for group in groups:
            before = kept.groups.get((group.label, group.ranks))
            if before is None or before.at != group.at:
                return 0
            if _alike(before.clock, group.clock):
                # It waits for what this round does not bring.
                if not _alike(before.link, group.link) or before.names.keys() != group.names.keys():
                    return 0
                if not all(_alike(value, group.names[name]) for name, value in before.names.items()):
                    return 0
                continue
            turn = self._turn(before, group)
            if turn is None:
                return 0
            active.append((before, group, turn))
        rounds = min((turn.rounds for *_, turn in active), default=0)
        if not rounds:
            return 0
        first, now, _ = active[0]
        step = float(np.max(now.clock)) - float(np.max(first.clock))
        latest = max(float(np.max(group.clock)) for group in groups)
        if not step > SHORTEST * latest:
            return 0
        for before, group, _ in active:
            if not (
                _shifted(before.clock, group.clock, step, latest) and _shifted(before.link, group.link, step, latest)
            ):
                return 0
        moved = _moved(kept.messages, messages, step, latest)
        if moved is None:
            return 0
        for sent in moved:
            sent.there = sent.there + rounds * step
        for before, group, turn in active:
            self._go_on(before, group, turn, rounds, step, kept.drawn[group.label, group.ranks])
        return rounds

    def _turn(self, before: Group, group: Group) -> _Turn | None:
        """The one loop that has advanced; None if variables differ in another way."""
        if before.names.keys() != group.names.keys():
            return None
        loops = self._unread[group.label]
        unread = {*loops.values()}
        found: _Turn | None = None
        for name, value in group.names.items():
            earlier = before.names[name]
            if name in unread or _alike(earlier, value):
                continue
            if name not in loops or found is not None or earlier[1] != value[1] or earlier[0] >= value[0]:
                return None
            turns = value[0] - earlier[0]
            found = _Turn(name, turns, (len(value[1]) - value[0]) // turns)
        return found

    def _go_on(self, before: Group, group: Group, turn: _Turn, rounds: int, step: float, drawn: int) -> None:
        """Advance a group by some rounds, drawn like the last one."""
        group.clock = group.clock + rounds * step
        group.link = group.link + rounds * step
        group.busy = group.busy + rounds * (group.busy - before.busy)
        place, over = group.names[turn.loop]
        place += rounds * turn.turns
        group.names[turn.loop] = (place, over)
        group.names[self._unread[group.label][turn.loop]] = over[place - 1]
        last = group.drawn[drawn:]
        for each in range(1, min(rounds, math.ceil(DRAWN / max(len(last), 1))) + 1):
            shift = each * step
            group.drawn += [(what, begin + shift, end + shift) for what, begin, end in last]
        del group.drawn[DRAWN:]


def _alike(one: Value, other: Value) -> bool:
    if one is other:
        return True
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one == other)


def _shifted(before: Floats | float, after: Floats | float, step: float, latest: float) -> bool:
    """Whether all times are later by one step (s); no message may have been received for the first time."""
    if not isinstance(before, np.ndarray) and not isinstance(after, np.ndarray):
        return before + step == after or abs(after - before - step) <= ROUNDING * latest
    then = np.asarray(before) + step
    with np.errstate(invalid="ignore"):
        return bool(np.all((then == after) | (np.abs(after - then) <= ROUNDING * latest)))


def _held(messages: Messages) -> dict[tuple[str, str, int], list[Sent]]:
    """The messages of the channels that have some."""
    return {key: held for key, channel in messages.items() if (held := [*channel])}


def _moved(
    before: Mapping[tuple[str, str, int], tuple[Sent, ...]], now: Messages, step: float, latest: float
) -> list[Sent] | None:
    """The messages that arrive one step (s) later than before; None if any differs in another way."""
    held = _held(now)
    if held.keys() != before.keys():
        return None
    found = []
    for key, queue in held.items():
        earlier = before[key]
        if len(earlier) != len(queue):
            return None
        for one, sent in zip(earlier, queue, strict=True):
            if one.ranks != sent.ranks or one.line != sent.line or not _alike(one.takes, sent.takes):
                return None
            if _alike(one.there, sent.there):
                continue
            if not _shifted(one.there, sent.there, step, latest):
                return None
            found.append(sent)
    return found
