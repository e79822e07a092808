"""Traces: the actions of each process of one run, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasched.records import InputError
from metasched.signature.traces.actions import ActionTable, Shape

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Trace:
    """What each process did.

    Parameters
    ----------
    table : the different actions.
    processes : of each rank an array of shape (events,), actions by their numbers in the table.
    """

    table: ActionTable
    processes: tuple[Ints, ...]

    @property
    def events(self) -> int:
        """The number of actions of all processes together."""
        return sum(each.size for each in self.processes)

    @property
    def instructions(self) -> float:
        """The number of instructions that all processes execute together."""
        each = np.array([self.table.instructions(action) for action in range(len(self.table.shape))])
        return float(sum(each[actions].sum() for actions in self.processes))

    @property
    def shapes(self) -> Ints:
        """The shape of each action of the table, an array of shape (actions,)."""
        return np.array(self.table.shape, dtype=np.int32)

    def compact(self) -> Trace:
        """The trace without actions that no process does."""
        used, numbers = np.unique(np.concatenate(self.processes), return_inverse=True)
        table = ActionTable()
        for action in used.tolist():
            copied(table, self.table, action)
        ends = np.cumsum([each.size for each in self.processes])[:-1]
        return Trace(table, tuple(np.split(numbers.reshape(-1).astype(np.int32), ends)))

    def checked(self) -> Trace:
        """The trace itself, if all its processes end and all its messages have both ends.

        Raises
        ------
        InputError : when a process does not end with ``finalize`` while others do, a rank is none of the run, an amount
            is below 0, or messages are sent that nobody receives (or the other way round).
        """
        count = len(self.processes)
        names = [self.table.shapes[shape].name for shape in self.table.shape]
        last = [names[each[-1]] if each.size else "" for each in self.processes]
        if not any(each.size for each in self.processes):
            raise InputError("has no events, expected what processes did")
        if "finalize" in last:
            for rank, name in enumerate(last):
                if name != "finalize":
                    raise InputError(f"process {rank} is cut short: it ends with {name or 'nothing'}, not finalize")
        for action, shape in enumerate(self.table.shape):
            for place in self.table.shapes[shape].peers:
                peer = self.table.numbers[action][place]
                # Negative ones are MPI_PROC_NULL, MPI_ANY_SOURCE and the like.
                if peer >= count or peer != int(peer):
                    text = self.table.text(action)[:80]
                    raise InputError(f"{text!r} names rank {peer:g}, expected one of {count} processes")
            if self.table.least(action) < 0:
                raise InputError(f"{self.table.text(action)[:80]!r} has an amount below 0, expected none or more")
        self._matched()
        return self

    def _matched(self) -> None:
        """Refuse messages between two processes of which more are sent than received, or the other way round."""
        ends, anywhere = ends_of(self.table)
        balance: dict[tuple[int, int], int] = {}
        # What is received from anywhere may be what is sent and received by nobody else.
        open_ = [0] * len(self.processes)
        for rank, actions in enumerate(self.processes):
            numbers_of, times = np.unique(actions, return_counts=True)
            for action, many in zip(numbers_of.tolist(), times.tolist(), strict=True):
                open_[rank] += many * (action in anywhere)
                for peer, sign in ends.get(action, ()):
                    pair = (rank, peer) if sign > 0 else (peer, rank)
                    balance[pair] = balance.get(pair, 0) + sign * many
        for (source, to), left in balance.items():
            open_[to] -= max(left, 0)
            if left < 0 or open_[to] < 0:
                more, other = ("sent", "received") if left > 0 else ("received", "sent")
                raise InputError(f"{abs(left)} more messages from {source} to {to} are {more} than {other}")

    def steadied(self) -> Trace:
        """The trace with measured computations, which vary randomly, replaced by their mean.

        Programs whose computation was measured, not stated, have another amount at every turn, and nothing in them
        repeats. Where more than a quarter of the computations of a trace are of an amount of their own, each has the
        mean of those of its process between the same two actions.
        """
        compute = [place for place, shape in enumerate(self.table.shapes) if shape.name == "compute"]
        shapes = self.shapes
        is_compute = np.isin(shapes, compute)
        computing = sum(int(is_compute[each].sum()) for each in self.processes)
        if computing < 100 or int(is_compute.sum()) <= 0.25 * computing:
            return self
        amounts = np.array([numbers[0] if numbers else 0.0 for numbers in self.table.numbers])
        table, renumbered = ActionTable(), np.full(len(self.table.shape), -1, dtype=np.int64)
        for action in np.flatnonzero(~is_compute).tolist():
            renumbered[action] = copied(table, self.table, action)
        means: dict[float, int] = {}
        processes = []
        for actions in self.processes:
            found = renumbered[actions]
            at = np.flatnonzero(found < 0)
            ended = np.pad(found, 1, constant_values=-2)
            _, which = np.unique(np.stack([ended[at], ended[at + 2]]), axis=1, return_inverse=True)
            which = which.reshape(-1)
            mean = np.bincount(which, amounts[actions[at]]) / np.bincount(which)
            numbers = []
            for amount in (float(f"{each:.6g}") for each in mean.tolist()):
                if amount not in means:
                    means[amount] = table.add("compute", (amount,))
                numbers.append(means[amount])
            found[at] = np.array(numbers, dtype=np.int64)[which]
            processes.append(found.astype(np.int32))
        return Trace(table, tuple(processes))


#: Calls that send one message.
SENDS = ("send", "isend", "ssend", "issend", "bsend", "ibsend", "rsend")


def places_of_ends(shape: Shape) -> tuple[tuple[int, int], ...]:
    """Which numbers of an action are partners of its messages: 1 where it sends to them, -1 where it receives.

    >>> places_of_ends(Shape("isend", 4)), places_of_ends(Shape("bcast", 3))
    (((0, 1),), ())
    """
    name = shape.name.lower()
    if name in SENDS and shape.numbers:
        return ((0, 1),)
    if name in ("recv", "irecv") and shape.numbers:
        return ((0, -1),)
    return ((1, 1), (3, -1)) if name == "sendrecv" and len(shape.peers) == 2 else ()


def ends_of(table: ActionTable) -> tuple[dict[int, list[tuple[int, int]]], set[int]]:
    """The ends of messages by action: their partners, with 1 where it sends, -1 where it receives.

    Returns
    -------
    The ends, without those of no partner; and the actions that receive, perhaps, from any source.
    """
    ends: dict[int, list[tuple[int, int]]] = {}
    anywhere: set[int] = set()
    places = [places_of_ends(shape) for shape in table.shapes]
    for action, shape in enumerate(table.shape):
        found = [(int(table.numbers[action][place]), sign) for place, sign in places[shape]]
        # SimGrid writes MPI_ANY_SOURCE as it does MPI_PROC_NULL.
        if any(peer < 0 and sign < 0 for peer, sign in found):
            anywhere.add(action)
        ends[action] = [each for each in found if each[0] >= 0]
    return ends, anywhere


def copied(to: ActionTable, table: ActionTable, action: int) -> int:
    """Put an action of one table into another one; its number there."""
    shape = table.shapes[table.shape[action]]
    single, lists = iter(table.numbers[action]), iter(table.lists.get(action, ()))
    numbers: list[float] = []
    for letter in shape.pattern:
        if letter == "V":
            numbers += next(lists).tolist()
        else:
            numbers.append(next(single))
    return to.add(shape.name, numbers, shape.tail)


def trace_of(actions: Mapping[int, list[tuple[str, tuple[float, ...]]]]) -> Trace:
    """A trace from actions by rank, each a name and numbers.

    >>> trace_of({0: [("send", (1, 0, 10, 0))], 1: [("recv", (0, 0, 10, 0))]}).events
    2
    """
    table = ActionTable()
    known: dict[tuple[str, tuple[float, ...]], int] = {}
    processes = []
    for rank in range(len(actions)):
        numbers = []
        for name, values in actions[rank]:
            if (name, values) not in known:
                known[name, values] = table.add(name, values)
            numbers.append(known[name, values])
        processes.append(np.array(numbers, dtype=np.int32))
    return Trace(table, tuple(processes))
