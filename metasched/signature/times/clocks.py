"""Simulated clocks of all processes, from the operations of a trace and their costs.

As in :mod:`metasched.simulation.engine`, a message is under way as long as its block takes, and a link carries one
after another. Here calls may be non-blocking, so posting costs nothing; a blocking send of a small message goes on at
once, of a large one when it has arrived. All processes advance together, one operation a round, as arrays; those that
wait rest until a message of theirs departs, those in a collective operation until all are there. Who goes on in a round
depends on what was posted, not on when, so the rounds of several machines are run as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Flags, Floats, Ints
from metasched.records import InputError
from metasched.signature.times.costs import Costs
from metasched.signature.times.trees import RENDEZVOUS, broadcast, messages_sent, reduction
from metasched.signature.traces.actions import AMONG_SOME, ActionTable, some_of
from metasched.signature.traces.exchanges import Exchanges, Operation
from metasched.signature.traces.trace import Trace

#: The operations as plain numbers, which are looked up in every round.
WORK, SEND, RECEIVE, WAIT, COLLECTIVE = KINDS = tuple(int(each) for each in Operation)
#: Operations of all processes that each leaves by itself; all others are left at once.
ONE_BY_ONE = ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv")


@dataclass(frozen=True)
class Clocks:
    """The result of a simulated run: end, computation and communication times.

    Parameters
    ----------
    computing, waiting : arrays of shape (processes, phases), seconds of work and of calls.
    """

    computing: Floats
    waiting: Floats

    @property
    def end(self) -> Floats:
        """When each process has ended (s), an array of shape (processes,)."""
        return np.asarray((self.computing + self.waiting).sum(axis=1))


def run(
    trace: Trace,
    found: Exchanges,
    phases: Ints,
    costs: Sequence[Costs],
    pace: Floats | None = None,
    times: Floats | None = None,
) -> list[Clocks]:
    """Run the operations of a trace on each of several machines.

    Parameters
    ----------
    trace, found : what is done, and the same as operations.
    phases : of each event of the trace, its phase.
    costs : of work, messages and collective operations on each machine.
    pace : seconds of an instruction where they were measured, an array of shape (processes, phases), else 0.
    times : how often each operation counts, an array of shape (operations,), the same for all from one operation of all
        processes to the next, and once after the last; once if not given.

    Raises
    ------
    InputError : when processes wait for each other.
    """
    return _Rounds(trace, found, phases, costs, pace, times).clocks()


class _Links:
    """The links of processes to send, each for one message after another in the order in which they are ready.

    A large message is ready when both ends are, which may be long after others that are reckoned with later. So a link
    has one idle time, between those that have begun and those that begin later, where messages that are ready go first.

    Attributes
    ----------
    free, idle, until : arrays of shape (processes, machines): when each link is free for good, and from when until
        when it is idle before (s).
    """

    def __init__(self, processes: int, machines: int) -> None:
        self.free, self.idle, self.until = (np.zeros((processes, machines)) for _ in range(3))

    def begin(self, of: Ints, since: Floats, busy: Floats) -> Floats:
        """When messages begin that are ready in the order of their processes, each of another one (s)."""
        begin = np.maximum(since, self.free[of])
        self.free[of] = begin + busy
        return begin

    def begin_among(self, of: Ints, since: Floats, busy: Floats, now: Floats) -> Floats:
        """The same where later ones may have begun; ``now`` is the clock of each process."""
        begin = np.empty_like(since)
        for some in _by_turns(of, since[:, 0]):
            begin[some] = self._begin_once(of[some], since[some], busy[some], now[some])
        return begin

    def _begin_once(self, of: Ints, since: Floats, busy: Floats, now: Floats) -> Floats:
        free, idle, until = self.free[of], self.idle[of], self.until[of]
        early = np.maximum(since, idle)
        fits = early + busy <= until
        begin = np.where(fits, early, np.maximum(since, free))
        # The idle time gives way to a later one where it is over, or too short for a message like this.
        later = ~fits & (begin > free) & ((until <= now) | (until - idle < busy))
        self.idle[of] = np.where(fits, begin + busy, np.where(later, free, idle))
        self.until[of] = np.where(later, begin, until)
        self.free[of] = np.where(fits, free, begin + busy)
        return begin


class _Rounds:
    """The state of all processes, messages and links, and what each kind of operation does to it.

    Attributes
    ----------
    at : array of shape (processes,): the next operation of each process.
    clock, into : arrays of shape (processes, machines): the clock of each process, and when its link is free to receive
        (s).
    out : the links to send.
    sent, asked : arrays of shape (messages, machines): when each was posted and its receiver asked for it (s); NaN
        before.
    departed, there_at : arrays of shape (messages,) and (messages, machines): whether each is on its way or there, and
        when it arrives (s).
    spent, counted : arrays of shape (2, processes, phases, machines): seconds of work, and of calls; those since the
        last collective operation where some count several times, and those before as often as they count.
    """

    def __init__(
        self,
        trace: Trace,
        found: Exchanges,
        phases: Ints,
        costs: Sequence[Costs],
        pace: Floats | None,
        times: Floats | None,
    ) -> None:
        self.count, self.table, self.found = len(trace.processes), trace.table, found
        self.takes, self.busy = (
            np.stack(each, axis=1) for each in zip(*(one.messages(found) for one in costs), strict=True)
        )
        self.eager = found.size < RENDEZVOUS
        self.prompt = bool(self.eager.all())
        actions = range(len(trace.table.shape))
        self.work = np.array([trace.table.instructions(each) for each in actions])
        # Who takes part in an operation of some processes is not known: each spends its time as if all came at once.
        self.apart = _apart(trace.table, costs)
        number_of_phases = int(phases.max(initial=0)) + 1
        by_entry = np.stack([one.work() for one in costs], axis=1)
        self.pace = np.repeat(by_entry[:, None], number_of_phases, axis=1)
        if pace is not None:
            measured = pace[..., None]
            self.pace = np.where(measured > 0.0, [one.stretch for one in costs] * measured, self.pace)
        self.meetings = [_Collectives(trace.table, one) for one in costs]

        self.at, self.last = found.first[:-1].copy(), found.first[1:]
        self.clock, self.into = (np.zeros((self.count, len(costs))) for _ in range(2))
        self.out = _Links(self.count, len(costs))
        self.sent, self.asked = (np.full(self.takes.shape, np.nan) for _ in range(2))
        # Nobody waits for what has one end only.
        self.departed, self.there_at = found.half.copy(), np.zeros(self.takes.shape)
        #: Requests that are complete as soon as they are posted.
        self.instant = found.sending & self.eager[found.message]
        self.receiving = ~found.sending
        self.counted, self.spent = (np.zeros((2, self.count, number_of_phases, len(costs))) for _ in range(2))
        self.worked, self.called = self.spent
        self.phase = phases[found.event]
        self.times = times
        self.target = np.where(found.half, found.source, found.target)
        self.resting, self.gathered = np.zeros(self.count, dtype=bool), 0
        #: Both ends of the messages that have departed in this round.
        self.ends_of: list[Ints] = []

    def clocks(self) -> list[Clocks]:
        """The clocks of each machine once all operations are done; InputError when processes wait for each other."""
        active = np.flatnonzero(self.at < self.last)
        while active.size:
            kinds = self.found.kind[self.at[active]]
            # In most rounds all processes do the same, or few do anything.
            many = np.bincount(kinds, minlength=len(KINDS)).tolist()
            advanced = [
                do(active if many[kind] == active.size else active[kinds == kind])
                for kind, do in ((WORK, self._work), (SEND, self._post), (RECEIVE, self._ask), (WAIT, self._wait))
                if many[kind] or kind == WAIT
            ]
            self.gathered += many[COLLECTIVE]
            if self.gathered == self.count:
                advanced = [self._meet()]
            active = advanced[0] if len(advanced) == 1 else np.concatenate(advanced)
            self.at[active] += 1
            active = active[self.at[active] < self.last[active]]
        behind = self.at < self.last
        if behind.any():
            stuck = int(np.argmax(behind))
            name = self.table.shapes[self.table.shape[int(self.found.action[self.at[stuck]])]].name
            raise InputError(f"the processes wait for each other: process {stuck} in {name}")
        machines = range(len(self.meetings))
        return [Clocks(*(self.counted + self.spent)[..., one]) for one in machines]

    def _work(self, working: Ints) -> Ints:
        step = self.at[working]
        action, phase = self.found.action[step], self.phase[step]
        took, alone = self.work[action, None] * self.pace[working, phase], self.apart[action]
        self.clock[working] += took + alone
        self.worked[working, phase] += took
        self.called[working, phase] += alone
        return working

    def _post(self, posting: Ints) -> Ints:
        """Sends: a small message departs at once, a large one when its receiver has asked for it."""
        messages = self.found.message[self.found.request[self.at[posting]]]
        now, eager, asked = self.clock[posting], self.eager[messages], self.asked[messages]
        self.sent[messages] = now
        since = now if eager.all() else np.where(eager[:, None], now, np.fmax(now, asked))
        self._depart(messages, since, eager | ~np.isnan(asked[:, 0]))
        return posting

    def _ask(self, asking: Ints) -> Ints:
        """Receives: a large message departs when it has been posted."""
        messages = self.found.message[self.found.request[self.at[asking]]]
        now = self.clock[asking]
        self.asked[messages] = now
        eager = self.eager[messages]
        if not eager.all():
            sent = self.sent[messages]
            self._depart(messages, np.fmax(now, sent), ~eager & ~np.isnan(sent[:, 0]))
        return asking

    def _depart(self, messages: Ints, since: Floats, ready: Flags) -> None:
        """The departure of those messages that are ready, as soon as their links are (s)."""
        messages = messages[ready]
        if not messages.size:
            return
        since, source, busy = since[ready], self.found.source[messages], self.busy[messages]
        if self.prompt:
            begin = self.out.begin(source, since, busy)
        else:
            begin = self.out.begin_among(source, since, busy, self.clock[source])
        self.there_at[messages] = begin + self.takes[messages]
        self.departed[messages] = True
        self.ends_of.extend((source, self.target[messages]))

    def _wait(self, waiting: Ints) -> Ints:
        """Those that begin to wait, and those resting of whom a message has departed: which of them go on."""
        if self.ends_of:
            again = np.concatenate(self.ends_of)
            again = again[self.resting[again]]
            if again.size:
                waiting = np.concatenate([waiting, np.unique(again)])
            self.ends_of.clear()
        if not waiting.size:
            return waiting
        self.resting[waiting] = True
        resumed = self._resumed(waiting)
        self.resting[resumed] = False
        return resumed

    def _resumed(self, waiting: Ints) -> Ints:
        """Those of whom all requests are complete; their clocks are set to when they are."""
        found, step = self.found, self.at[waiting]
        first = found.request[step]
        many = found.end[step] - first
        complete, turns = np.ones(waiting.size, dtype=bool), _one_by_one(first, many)
        for some, requests in turns:
            complete[some] &= self.instant[requests] | self.departed[found.message[requests]]
        if not complete.all():
            waiting, step = waiting[complete], step[complete]
            turns = _one_by_one(first[complete], many[complete])
        if not waiting.size:
            return waiting
        began = self.clock[waiting]
        until = began.copy()
        for some, requests in turns:
            messages, receiver, gets = found.message[requests], waiting[some], self.receiving[requests][:, None]
            arrived, free = self.there_at[messages], self.into[receiver]
            arrived = np.where(gets, np.maximum(arrived, free + self.busy[messages]), arrived)
            self.into[receiver] = np.where(gets, arrived, free)
            until[some] = np.maximum(until[some], np.where(self.instant[requests][:, None], 0.0, arrived))
            # A later wait for all, which is for whatever was posted before, finds it complete.
            self.instant[requests], self.receiving[requests] = True, False
        self.called[waiting, self.phase[step]] += until - began
        self.clock[waiting] = until
        return waiting

    def _meet(self) -> Ints:
        """The collective operation in which all processes are."""
        everybody = np.arange(self.count)
        actions, free = self.found.action[self.at], self.out.free
        ends = np.stack(
            [each.ends(actions, self.clock[:, one], free[:, one]) for one, each in enumerate(self.meetings)], axis=1
        )
        self.called[everybody, self.phase[self.at]] += ends - self.clock
        self.clock[:] = ends
        np.maximum(free, self.clock, out=free, where=ends > 0)
        self.gathered = 0
        if self.times is not None:
            # What was done since the operation before counts as often as this one.
            self.counted += self.times[self.at[0]] * self.spent
            self.spent[:] = 0.0
        return everybody


def _by_turns(of: Ints, when: Floats) -> list[slice | Ints]:
    """The places of the first of each kind by time, then those of the second, and so on."""
    if of.size < 2 or np.bincount(of).max() < 2:
        return [slice(None)]
    order = np.lexsort((when, of))
    starts = np.flatnonzero(np.diff(of[order], prepend=-1))
    turn = np.arange(of.size) - np.repeat(starts, np.diff([*starts, of.size]))
    return [order[turn == each] for each in range(int(turn.max()) + 1)]


def _one_by_one(first: Ints, many: Ints) -> list[tuple[Ints | slice, Ints]]:
    """The first request of each wait, then the second of those that have two, and so on: of which, and the requests."""
    turns: list[tuple[Ints | slice, Ints]] = []
    left = many.size
    for place, with_as_many in enumerate(np.bincount(many).tolist()):
        left -= with_as_many
        if left:
            some = slice(None) if left == many.size else np.flatnonzero(place < many)
            turns.append((some, first[some] + place))
    return turns


def _apart(table: ActionTable, costs: Sequence[Costs]) -> Floats:
    """Seconds of each action that is an operation of some of the processes, else 0; shape (actions, machines)."""
    apart = np.zeros((len(table.shape), len(costs)))
    among_some = np.array([shape.name.lower().endswith(AMONG_SOME) for shape in table.shapes], dtype=bool)
    for action in np.flatnonzero(among_some[table.shape]).tolist():
        some = some_of(table.shapes[table.shape[action]].name, table.numbers[action])
        if some is not None:
            name, volume = some[0].removeprefix("i"), table.together(action, some[1])
            apart[action] = [one.among(name, volume, some[1]) for one in costs]
    return apart


class _Collectives:
    """The times at which processes leave a collective operation, from those at which they enter it."""

    def __init__(self, table: ActionTable, costs: Costs) -> None:
        self.table, self.costs, self.count = table, costs, costs.count
        self.known: dict[tuple[str, float], float] = {}

    def ends(self, actions: Ints, clock: Floats, out: Floats) -> Floats:
        """Times when each leaves, an array of shape (processes,); ``out`` is when the link of each is free, updated."""
        action = int(actions[0])
        shape = self.table.shapes[self.table.shape[action]]
        name = shape.name.lower().removeprefix("i") if shape.name.lower() != "init" else ""
        if self.count == 1:
            return clock
        different, often = np.unique(actions, return_counts=True)
        volumes = [self.table.volume(each) for each in different.tolist()]
        size = float(np.dot(volumes, often)) if self.table.parted(action) else max(volumes)
        if name == "bcast":
            return self._broadcast(clock, out, self._root(name, action), size)
        if name == "reduce":
            return reduction(clock, self._root(name, action), size, self.costs.branch("reduce", size))
        took = self._time(name, size)
        if name in ("scatter", "scatterv"):
            return np.asarray(np.maximum(clock, clock[self._root(name, action)] + took))
        if name in ("gather", "gatherv"):
            root = self._root(name, action)
            ends = clock.copy()
            ends[root] = float(clock.max()) + took
            return np.asarray(ends)
        return np.full(clock.size, float(clock.max()) + took)

    def _broadcast(self, clock: Floats, out: Floats, root: int, size: float) -> Floats:
        """A broadcast; the links of those who send small messages and go on are free when they would have left."""
        busy = self.costs.shared(size)
        ends = broadcast(clock, root, size, self.costs.branch("bcast", size) - busy, busy)
        if size < RENDEZVOUS:
            sends = messages_sent(self.count, root)
            out[:] = np.where(sends > 0, np.maximum(ends, out) + sends * busy, out)
        return ends

    def _root(self, name: str, action: int) -> int:
        numbers = self.table.numbers[action]
        place = 1 if name in ("bcast", "gatherv", "scatterv") else 2
        root = int(numbers[place]) if place < len(numbers) else 0
        return root if 0 <= root < self.count else 0

    def _time(self, name: str, size: float) -> float:
        if (name, size) not in self.known:
            self.known[name, size] = self.costs.together(name, size)
        return self.known[name, size]
