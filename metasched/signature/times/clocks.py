"""Simulated clocks of all processes, from the operations of a trace and their costs.

As in :mod:`metasched.simulation.engine`, a message is under way as long as its block takes, and a link carries one
after another. Here calls may be non-blocking, so posting costs nothing; a blocking send of a small message goes on at
once, of a large one when it has arrived. All processes advance together, one operation a round, as arrays; those that
wait rest until a message of theirs departs, those in a collective operation until all are there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasched.records import InputError
from metasched.signature.times.costs import Costs
from metasched.signature.traces.actions import ActionTable, some_of
from metasched.signature.traces.exchanges import Exchanges, Operation
from metasched.signature.traces.trace import Trace

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: The operations as plain numbers, which are looked up in every round.
WORK, SEND, RECEIVE, WAIT, COLLECTIVE = (int(each) for each in Operation)
#: From how many bytes on a send waits for its receiver, as in SimGrid and near what MPI libraries do.
RENDEZVOUS = 65_536.0


@dataclass(frozen=True)
class Clocks:
    """The result of a simulated run: end, computation and communication times.

    Parameters
    ----------
    end : array of shape (processes,), when each has ended (s).
    computing, waiting : arrays of shape (processes, phases), seconds of work and of calls.
    """

    end: Floats
    computing: Floats
    waiting: Floats


def run(trace: Trace, found: Exchanges, phases: Ints, costs: Costs, pace: Floats | None = None) -> Clocks:
    """Run the operations of a trace.

    Parameters
    ----------
    trace, found : what is done, and the same as operations.
    phases : of each event of the trace, its phase.
    costs : of work, messages and collective operations.
    pace : seconds of an instruction where they were measured, an array of shape (processes, phases), else 0.

    Raises
    ------
    InputError
        When processes wait for each other.
    """
    count = len(trace.processes)
    takes, busy = costs.messages(found)
    eager = found.size < RENDEZVOUS
    work = np.array([trace.table.instructions(each) for each in range(len(trace.table.shape))])
    per = np.repeat(np.asarray(costs.work())[:, None], int(phases.max(initial=0)) + 1, axis=1)
    if pace is not None:
        per = np.where(pace > 0.0, costs.stretch * pace, per)
    meeting = _Collectives(trace.table, costs)
    # Who takes part in an operation of some processes is not known: each spends its time as if all came at once.
    apart = np.array([_apart(trace.table, each, costs) for each in range(len(trace.table.shape))])

    at, last = found.first[:-1].copy(), found.first[1:]
    clock, out, into = np.zeros(count), np.zeros(count), np.zeros(count)
    sent, asked, there_at = (np.full(found.size.size, np.nan) for _ in range(3))
    # Nobody waits for what has one end only.
    there_at[found.half] = 0.0
    spent = np.zeros((2, count, int(phases.max(initial=0)) + 1))
    phase = phases[found.event]
    target = np.where(found.half, found.source, found.target)
    active = np.flatnonzero(at < last)
    resting, gathered = np.zeros(count, dtype=bool), 0
    ends_of: list[Ints] = []  # of the messages that have departed in this round

    def depart(messages: Ints, since: Floats) -> None:
        """The departure of messages (s): when both they and their links are ready."""
        source = found.source[messages]
        begin = np.maximum(since, out[source])
        np.maximum.at(out, source, begin + busy[messages])
        there_at[messages] = begin + takes[messages]
        ends_of.extend((source, target[messages]))

    while active.size:
        now = at[active]
        kinds = found.kind[now]
        advanced: list[Ints] = []

        working = active[kinds == WORK]
        if working.size:
            step = at[working]
            took = work[found.action[step]] * per[working, phase[step]]
            alone = apart[found.action[step]]
            clock[working] += took + alone
            spent[0, working, phase[step]] += took
            spent[1, working, phase[step]] += alone
            advanced.append(working)

        posting = active[kinds == SEND]
        if posting.size:
            messages = found.message[found.request[at[posting]]]
            sent[messages] = clock[posting]
            ready = eager[messages] | ~np.isnan(asked[messages])
            since = np.where(eager[messages], clock[posting], np.fmax(clock[posting], asked[messages]))
            depart(messages[ready], since[ready])
            advanced.append(posting)

        asking = active[kinds == RECEIVE]
        if asking.size:
            messages = found.message[found.request[at[asking]]]
            asked[messages] = clock[asking]
            ready = ~eager[messages] & ~np.isnan(sent[messages])
            depart(messages[ready], np.fmax(clock[asking], sent[messages])[ready])
            advanced.append(asking)

        waiting = active[kinds == WAIT]
        if ends_of:
            again = np.concatenate(ends_of)
            waiting = np.concatenate([waiting, np.unique(again[resting[again]])])
            ends_of.clear()
        if waiting.size:
            resting[waiting] = True
            resumed = _resumed(waiting, at, clock, into, there_at, found, eager, busy, spent[1], phase)
            resting[resumed] = False
            advanced.append(resumed)

        gathered += int(np.count_nonzero(kinds == COLLECTIVE))
        if gathered == count:
            ends = meeting.ends(found.action[at], clock, out)
            spent[1, np.arange(count), phase[at]] += ends - clock
            clock[:] = ends
            np.maximum(out, clock, out=out, where=ends > 0)
            gathered, advanced = 0, [np.arange(count)]

        active = np.concatenate([np.zeros(0, dtype=np.int64), *advanced])
        at[active] += 1
        active = active[at[active] < last[active]]
    if (at < last).any():
        stuck = int(np.argmax(at < last))
        name = trace.table.shapes[trace.table.shape[int(found.action[at[stuck]])]].name
        raise InputError(f"the processes wait for each other: process {stuck} in {name}")
    return Clocks(clock, spent[0], spent[1])


def _apart(table: ActionTable, action: int, costs: Costs) -> float:
    """Seconds of an action that is an operation of some of the processes, else 0."""
    some = some_of(table.shapes[table.shape[action]].name, table.numbers[action])
    return costs.among(some[0].removeprefix("i"), table.volume(action), some[1]) if some is not None else 0.0


def _resumed(
    waiting: Ints, at: Ints, clock: Floats, into: Floats, there_at: Floats, found: Exchanges,
    eager: NDArray[np.bool_], busy: Floats, spent: Floats, phase: Ints,
) -> Ints:  # fmt: skip
    """Which processes resume, since all of their requests are complete; their clocks are set to when they do."""
    step = at[waiting]
    first, many = found.request[step], found.end[step] - found.request[step]
    most = int(many.max(initial=0))
    complete = np.ones(waiting.size, dtype=bool)
    for place in range(most):
        some = np.flatnonzero(complete & (place < many))
        requests = first[some] + place
        messages = found.message[requests]
        complete[some] &= (found.sending[requests] & eager[messages]) | ~np.isnan(there_at[messages])
    waiting, first, many = waiting[complete], first[complete], many[complete]
    if not waiting.size:
        return waiting
    until = clock[waiting].copy()
    for place in range(most):
        some = np.flatnonzero(place < many)
        requests = first[some] + place
        messages, receiver = found.message[requests], waiting[some]
        arrived = there_at[messages]
        gets = ~found.sending[requests]
        arrived = np.where(gets, np.maximum(arrived, into[receiver] + busy[messages]), arrived)
        into[receiver] = np.where(gets, arrived, into[receiver])
        arrived = np.where(gets | ~eager[messages], arrived, 0.0)
        until[some] = np.maximum(until[some], arrived)
    spent[waiting, phase[at[waiting]]] += until - clock[waiting]
    clock[waiting] = until
    return waiting


class _Collectives:
    """The times at which processes leave a collective operation, from those at which they enter it."""

    def __init__(self, table: ActionTable, costs: Costs) -> None:
        self.table, self.costs, self.count = table, costs, costs.count
        self.known: dict[tuple[str, float], float] = {}
        self.rounds = math.ceil(math.log2(max(self.count, 2)))

    def ends(self, actions: Ints, clock: Floats, out: Floats) -> Floats:
        """Times when each leaves, an array of shape (processes,); ``out`` is when the link of each is free, updated."""
        action = int(actions[0])
        shape = self.table.shapes[self.table.shape[action]]
        name = shape.name.lower().removeprefix("i") if shape.name.lower() != "init" else ""
        if self.count == 1:
            return clock
        size = max(self.table.volume(int(each)) for each in np.unique(actions).tolist())
        if name == "bcast":
            return self._down(clock, out, self._root(name, action), size)
        if name == "reduce":
            return self._up(clock, self._root(name, action), size)
        took = self._time(name, size)
        if name in ("scatter", "scatterv"):
            return np.asarray(np.maximum(clock, clock[self._root(name, action)] + took))
        if name in ("gather", "gatherv"):
            root = self._root(name, action)
            ends = clock.copy()
            ends[root] = float(clock.max()) + took
            return np.asarray(ends)
        return np.full(clock.size, float(clock.max()) + took)

    def _depth(self, root: int) -> Ints:
        """Of each process in a binomial tree, how many messages it is from the root."""
        place = (np.arange(self.count) - root) % self.count
        return np.asarray(np.sum([place >> bit & 1 for bit in range(self.rounds)], axis=0))

    def _down(self, clock: Floats, out: Floats, root: int, size: float) -> Floats:
        """A broadcast: each process sends to the larger half of its subtree first, once it has entered and received.

        Small messages leave at once and share the link, so that all are there when the last one is; of large ones each
        waits for the one before, and so does the process.
        """
        late = self.costs.branch("bcast", 0.0)
        busy = max(self.costs.branch("bcast", size) - late, 0.0)
        eager = size < RENDEZVOUS
        rank = (np.arange(self.count) + root) % self.count
        # By places from the root on: when each can go on, when its link is free, and how many messages it sends.
        free, link, sends = clock[rank].copy(), out[rank].copy(), np.zeros(self.count)
        bits = range(self.rounds - 1, -1, -1)
        for bit in bits:
            sends[0 : self.count - (1 << bit) : 2 << bit] += 1
        for bit in bits:
            parents = np.arange(0, self.count - (1 << bit), 2 << bit)
            gone = np.maximum(free[parents], link[parents]) + busy * (sends[parents] if eager else 1)
            if not eager:
                free[parents] = gone
            children = parents + (1 << bit)
            free[children] = np.maximum(free[children], gone + late)
        if eager:
            out[rank] = np.where(sends > 0, np.maximum(free, link) + sends * busy, link)
        ends = np.empty(self.count)
        ends[rank] = free
        return ends

    def _up(self, clock: Floats, root: int, size: float) -> Floats:
        """A reduction: it ends at the root when the slowest path to it has been traversed."""
        depth = self._depth(root)
        ends = clock.copy()
        ends[root] = float(np.max(clock + depth * self.costs.branch("reduce", size)))
        return ends

    def _root(self, name: str, action: int) -> int:
        numbers = self.table.numbers[action]
        place = 1 if name == "bcast" else 2
        root = int(numbers[place]) if place < len(numbers) else 0
        return root if 0 <= root < self.count else 0

    def _time(self, name: str, size: float) -> float:
        if (name, size) not in self.known:
            self.known[name, size] = self.costs.together(name, size)
        return self.known[name, size]
