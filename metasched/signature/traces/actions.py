"""The actions of processes, as in SimGrid's time-independent traces.

An action is a name and numbers. Which numbers are ranks, and where lists as long as a communicator stand, is the same
for all actions of a name; shapes tell actions apart that a program cannot have written in the same place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np

from metasched.arrays import Floats

#: How SimGrid writes MPI_PROC_NULL.
NULL = -333
#: Numbers that are ranks, by the name of the action in lower case.
PEERS = {
    **dict.fromkeys(("send", "isend", "ssend", "issend", "bsend", "ibsend", "rsend", "recv", "irecv", "start"), (0,)),
    "sendrecv": (1, 3),
    "wait": (0, 1),
    "test": (0, 1),
}
#: Where lists as long as the communicator stand: ``V`` a list, ``s`` a number; a leading ``i`` changes nothing.
LISTS = {"alltoallv": "sVsVss", "gatherv": "sVsss", "scatterv": "Vssss", "allgatherv": "sVss", "reducescatter": "Vss"}
#: Operations with a list whose first number is the part of the process itself.
PARTED = ("gatherv", "scatterv", "allgatherv")
#: What ends the names of operations among some of the processes, how many of which comes first.
AMONG_SOME = "_on"
LISTS |= {f"{name}{AMONG_SOME}": f"s{pattern}" for name, pattern in LISTS.items()}
#: Marks of a program in parts: where a part stands, and where one of its turns ends. No process does anything there.
PART, TURN = "part", "turn"
#: Where operations among some of the processes have the rank of their root.
ROOTS = {f"{name}{AMONG_SOME}": place for name, place in (("bcast", 2), ("reduce", 3), ("gather", 3), ("scatter", 3))}
#: Actions that are no calls.
NO_CALLS = ("compute", "init", "finalize", PART, TURN)
#: Actions whose numbers tell no bytes.
WITHOUT_DATA = (*NO_CALLS, "sleep", "wait", "waitall", "waitany", "test", "testany", "barrier")
#: Actions whose number is an amount, not a count.
AMOUNTS = ("compute", "sleep")
#: The type MPI_BYTE, as SimGrid numbers it.
BYTE = 6
#: Bytes of the types that SimGrid 3.32 numbers. Those that a program defines are all -1, whatever their size.
TYPE_BYTES = {
    -1: 1,
    **dict(enumerate((
        *(8, 4, 1, 2, 8, 4, 1, 8, 1, 1, 2, 4, 8, 8, 16, 4, 1),  # MPI_DOUBLE, INT, CHAR, SHORT, ..., C_BOOL
        *(1, 2, 4, 8, 1, 2, 4, 8, 8, 16, 32, 8, 8),  # INT8_T, ..., UINT64_T, complex numbers, AINT, OFFSET
        *(8, 16, 16, 8, 8, 8, 16, 16),  # pairs: FLOAT_INT, LONG_INT, DOUBLE_INT, SHORT_INT, 2INT, ..., 2LONG
        *(4, 4, 8, 16, 8, 16, 16, 4, 2, 4, 8, 16, 32),  # REAL, ..., COMPLEX32, INTEGER1, ..., LONG_DOUBLE_INT
    ))),
    59: 8,  # COUNT
}  # fmt: skip


def in_bytes(name: str, numbers: tuple[float, ...]) -> tuple[float, ...]:
    """The numbers of an action whose data are counted in bytes, with MPI_BYTE in place of a type without a number.

    Earlier recorders wrote -1, which is what SimGrid writes for types that a program defines, and sends nothing for.

    >>> in_bytes("gather", (8, 8, 0, -1, -1)), in_bytes("recv", (1, 5, 80, -1)), in_bytes("wait", (0, 1, -1))
    ((8, 8, 0, 6, 6), (1, 5, 80, 6), (0, 1, -1))
    """
    if name.lower() in WITHOUT_DATA:
        return numbers
    # An action has one type, or one for what is sent and one for what is received, at its end.
    before, types = numbers[:-2], numbers[-2:]
    if types[-1:] == (-1,):
        types = (*((BYTE if each == -1 else each) for each in types[:-1]), BYTE)
    return (*before, *types)


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of an action: what actions at the same place of a program have in common.

    Parameters
    ----------
    name : as SimGrid writes it.
    numbers : how many numbers outside lists.
    lists : how many lists.
    nulls : which ranks are MPI_PROC_NULL.
    tail : whether a space ends the line.
    """

    name: str
    numbers: int
    lists: int = 0
    nulls: tuple[int, ...] = ()
    tail: bool = False

    @property
    def pattern(self) -> str:
        """One letter for each number (s) or list (V), in the order of the line."""
        return LISTS[_plain(self.name)] if self.lists else "s" * self.numbers

    @property
    def peers(self) -> tuple[int, ...]:
        """The places of ranks among the numbers."""
        return tuple(place for place in PEERS.get(self.name.lower(), ()) if place < self.numbers)

    @property
    def root(self) -> int:
        """The place of the root's rank among the numbers of an operation among some of the processes, else -1."""
        return ROOTS.get(self.name.lower().removeprefix("i"), -1)


def some_of(name: str, numbers: Sequence[float]) -> tuple[str, int] | None:
    """An operation among some of the processes: its name in lower case, and how many they are; else None.

    >>> some_of("allreduce_on", (4, 8, 0, -1)), some_of("allreduce", (8, 0, -1))
    (('allreduce', 4), None)
    """
    low = name.lower()
    if not low.endswith(AMONG_SOME) or len(numbers) < (1 if low == f"barrier{AMONG_SOME}" else 2):
        return None
    return low.removesuffix(AMONG_SOME), max(int(numbers[0]), 1)


def _plain(name: str) -> str:
    low = name.lower()
    return low[1:] if low[:1] == "i" and low[1:] in LISTS else low


def shape_of(name: str, numbers: Sequence[float], tail: bool) -> tuple[Shape, int]:
    """The shape of an action, and the length of its lists.

    >>> shape, length = shape_of("alltoallv", [3, 1, 2, 3, 1, 2, 0, 0], False)
    >>> shape.numbers, shape.lists, length
    (4, 2, 2)
    """
    pattern = LISTS.get(_plain(name), "")
    lists = pattern.count("V")
    single = len(pattern) - lists
    if lists and len(numbers) > single and (len(numbers) - single) % lists == 0:
        return Shape(name, single, lists, (), tail), (len(numbers) - single) // lists
    places = PEERS.get(name.lower(), ())
    nulls = tuple(place for place in places if place < len(numbers) and numbers[place] == NULL)
    return Shape(name, len(numbers), 0, nulls, tail), 0


@dataclass
class ActionTable:
    """A table of distinct actions by number: the shape, the numbers and the lists of each.

    Attributes
    ----------
    shapes : the different shapes.
    shape : of each action, which shape.
    numbers : of each action, those outside lists, in order.
    lists : of each action that has any, its lists, in order.
    """

    shapes: list[Shape] = field(default_factory=list)
    shape: list[int] = field(default_factory=list)
    numbers: list[tuple[float, ...]] = field(default_factory=list)
    lists: dict[int, tuple[Floats, ...]] = field(default_factory=dict)
    _known: dict[Shape, int] = field(default_factory=dict)

    def add(self, name: str, numbers: Sequence[float], tail: bool = False) -> int:
        """Add an action, which must not be in the table, and return its number."""
        shape, length = shape_of(name, numbers, tail)
        place = self._known.setdefault(shape, len(self.shapes))
        if place == len(self.shapes):
            self.shapes.append(shape)
        self.shape.append(place)
        if not shape.lists:
            self.numbers.append(tuple(numbers))
            return len(self.shape) - 1
        single: list[float] = []
        lists: list[Floats] = []
        at = 0
        for letter in shape.pattern:
            if letter == "V":
                lists.append(np.array(numbers[at : at + length], dtype=np.float64))
                at += length
            else:
                single.append(numbers[at])
                at += 1
        self.numbers.append(tuple(single))
        self.lists[len(self.shape) - 1] = tuple(lists)
        return len(self.shape) - 1

    def extend(self, name: str, rows: Sequence[tuple[float, ...]], tail: bool = False) -> range:
        """Add actions of one name with as many numbers each, as :meth:`add` does, and return their numbers."""
        first = len(self.shape)
        if not rows or _plain(name) in LISTS:
            for row in rows:
                self.add(name, row, tail)
            return range(first, len(self.shape))
        # Their shapes differ by which of their ranks are null.
        peers = [place for place in PEERS.get(name.lower(), ()) if place < len(rows[0])]
        columns = (np.fromiter(map(itemgetter(place), rows), np.float64, len(rows)) for place in peers)
        nulls = sum((column == NULL) << bit for bit, column in enumerate(columns))
        _, examples, which = np.unique(np.broadcast_to(nulls, len(rows)), return_index=True, return_inverse=True)
        places = []
        for example in examples.tolist():
            shape, _ = shape_of(name, rows[example], tail)
            places.append(self._known.setdefault(shape, len(self.shapes)))
            if places[-1] == len(self.shapes):
                self.shapes.append(shape)
        self.shape += np.array(places)[which].tolist()
        self.numbers += rows
        return range(first, len(self.shape))

    def text(self, action: int, numbers: Sequence[float] | None = None) -> str:
        """The action as SimGrid writes it, without its rank.

        Parameters
        ----------
        action : its number.
        numbers : to write in place of its own outside lists.
        """
        shape = self.shapes[self.shape[action]]
        single, lists = iter(self.numbers[action] if numbers is None else numbers), iter(self.lists.get(action, ()))
        words = [shape.name]
        for letter in shape.pattern:
            if letter == "V":
                words += [_word(float(each)) for each in next(lists)]
            else:
                words.append(_word(next(single), shape.name not in AMOUNTS))
        return " ".join(words) + (" " if shape.tail else "")

    def volume(self, action: int) -> float:
        """The bytes that the process itself sends or receives in the action, as far as the trace records them.

        >>> table = ActionTable()
        >>> table.volume(table.add("send", [1, 0, 10, 0]))
        80.0
        """
        shape, numbers = self.shapes[self.shape[action]], self.numbers[action]
        low = shape.name.lower()
        if low == "start" and len(numbers) == 4:
            return numbers[2]
        if PEERS.get(low) == (0,) and len(numbers) == 4:
            return 0.0 if shape.nulls else float(numbers[2]) * TYPE_BYTES.get(int(numbers[3]), 1)
        if low == "sendrecv" and len(numbers) == 6:
            sent = 0.0 if 1 in shape.nulls else numbers[0] * TYPE_BYTES.get(int(numbers[4]), 1)
            got = 0.0 if 3 in shape.nulls else numbers[2] * TYPE_BYTES.get(int(numbers[5]), 1)
            return sent + got
        if _plain(low).removesuffix(AMONG_SOME) == "reducescatter" and shape.lists:
            # What each gets in the end, in a list; what is reduced is as long as all of them.
            return float(self.lists[action][0].sum()) * TYPE_BYTES.get(int(numbers[-1]), 1)
        some = some_of(low, numbers)
        name, first = (_plain(low), 0) if some is None else (some[0], 1)
        if name in WITHOUT_DATA or not numbers:
            return 0.0
        # Only the root of a scattering sends.
        own = max(map(abs, numbers[first : first + (2 if name.removeprefix("i") == "scatter" else 1)]))
        return own * TYPE_BYTES.get(int(numbers[-1]), 1)

    def parted(self, action: int) -> bool:
        """Whether an action is of a collective operation to which each process may give, or get of it, another part."""
        shape = self.shapes[self.shape[action]]
        return shape.lists > 0 and _plain(shape.name).removesuffix(AMONG_SOME) in PARTED

    def together(self, action: int, count: int) -> float:
        """The volume of a collective operation of ``count`` processes with parts like that of the action.

        >>> table = ActionTable()
        >>> table.together(table.add("gatherv", [10, 10, 10, 10, 0, -1, -1]), 3)
        30.0
        """
        return float(self.volume(action) * (count if self.parted(action) else 1))

    def least(self, action: int) -> float:
        """The smallest amount of data or computation in an action; 0 where it has none.

        >>> table = ActionTable()
        >>> table.least(table.add("send", [1, 0, -8, -1])), table.least(table.add("bcast_on", [4, 12, -333, -1]))
        (-8, 4)
        """
        shape, numbers = self.shapes[self.shape[action]], self.numbers[action]
        low = shape.name.lower()
        if low == "sendrecv":
            amounts = numbers[0:3:2]
        elif low in PEERS:
            amounts = numbers[2:3] if len(PEERS[low]) == 1 else ()
        else:
            some = some_of(low, numbers)
            amounts = numbers[: 1 if some is None or some[0] in WITHOUT_DATA else 2]
        return min((*amounts, *(float(each.min(initial=0.0)) for each in self.lists.get(action, ()))), default=0.0)

    def instructions(self, action: int) -> float:
        """The flops of a computation, which stand for instructions in these traces; 0 for calls."""
        shape = self.shapes[self.shape[action]]
        return self.numbers[action][0] if shape.name == "compute" and self.numbers[action] else 0.0


def _word(number: float, counted: bool = True) -> str:
    """A number in SimGrid's format: integers in full, amounts of computation to six digits."""
    return str(int(number)) if counted and number == int(number) else f"{number:g}"
