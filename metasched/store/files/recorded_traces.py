"""Reads what the recorder of ``metasched signature record`` writes: a folder with a file for each process.

A file holds different actions by number (``a``), computation between two of them (``t``: how often, nanoseconds, and
instructions if they were counted), bodies of loops (``b``) and the program (``p``), whose words are actions or
``BODYxTIMES``, and the calls that no action tells (``unrecorded``: how often, by name). Its last line is ``end``, or
``cut`` where the process did not end by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from metasched.arrays import Flags, Floats, Ints
from metasched.records import InputError
from metasched.signature.traces.actions import ActionTable, in_bytes
from metasched.signature.traces.common_beginning import common_beginning
from metasched.signature.traces.folding import Loop, Node, unfolded
from metasched.signature.traces.trace import Trace
from metasched.signature.traces.unrecorded import lacking
from metasched.store.files.ti_traces import LARGEST, LONGEST, MOST_EVENTS, MOST_PROCESSES
from metasched.store.files.whole_files import refusal
from metasched.validation import Located

HEADER = "metasched-trace 1"
#: What ends a receive that was begun by the same words, without a message.
CANCEL = "cancel"
#: How computation is known: by processor time alone, by a counter beside it, or counted by valgrind, which is slow.
TIME, PERF, VALGRIND = WAYS = ("time", "perf", "valgrind")
#: That of traces that state instructions.
STATED = "counted"
#: Most names of calls that are not recorded.
MOST_UNRECORDED = 1000
#: Most lines of a file, and bytes of one that holds a program.
MOST_LINES, LONGEST_PROGRAM = 5_000_000, 256 * LONGEST
#: Names of calls.
CALLS = re.compile(r"[A-Za-z][A-Za-z0-9_ -]{0,79}")
_WORD = re.compile(r"(\d{1,9})x(\d{1,10})|(\d{1,9})")
#: Earlier recorders wrote no number.
_UNRECORDED = re.compile(rf"(?:(\d{{1,18}}) )?({CALLS.pattern})")
_ACTION = re.compile(r"[A-Za-z_]{1,40}(?: -?\d{1,18})*")


@dataclass(frozen=True)
class Recorded:
    """A recorded run.

    Parameters
    ----------
    trace : what each process did, up to where all have done it if some did not end by themselves; a nanosecond of
        computing time counts as an instruction where instructions were not counted.
    durations : of each process, from the end of MPI_Init to the start of MPI_Finalize (s).
    cut : processes that did not end by themselves.
    left_out : how many actions stand in the files, but not in the trace.
    instructions : how they are known: "time", "perf", "valgrind" or "counted".
    timed : the same actions with nanoseconds in place of instructions, where both are known.
    unrecorded : how often processes made calls that the trace does not hold, by their names.
    """

    trace: Trace
    durations: tuple[float, ...]
    cut: tuple[int, ...]
    left_out: int = 0
    instructions: str = TIME
    timed: Trace | None = None
    unrecorded: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        whole: Trace,
        durations: tuple[float, ...],
        cut: tuple[int, ...],
        instructions: str = TIME,
        timed: Trace | None = None,
        unrecorded: Mapping[str, int] | None = None,
    ) -> Recorded:
        """The run of a whole trace, checked.

        Raises
        ------
        InputError : when messages lack an end, though nothing is cut, or ranks are none of the run; with the calls that
            are not recorded, which may be the reason.
        """
        missing = dict(unrecorded or {})
        try:
            trace = common_beginning(whole) if cut else whole
            timed = common_beginning(timed) if cut and timed is not None else timed
            trace.checked()
        except InputError as error:
            raise InputError("; ".join([str(error), *lacking(missing)])) from None
        return cls(trace, durations, cut, whole.events - trace.events, instructions, timed, missing)

    @property
    def duration(self) -> float:
        """That of the process that took longest (s)."""
        return max(self.durations)

    @property
    def execution_time(self) -> float | None:
        """Of the whole run (s), unless it is not known, ended early or took longer because it was observed."""
        return None if self.cut or self.instructions == VALGRIND else self.duration or None

    @property
    def in_nanoseconds(self) -> Trace | None:
        """The trace with nanoseconds in place of instructions, where times are known."""
        return self.trace if self.instructions == TIME else self.timed

    @property
    def warnings(self) -> list[str]:
        """What the trace lacks, each as a clause."""
        found = lacking(self.unrecorded)
        if self.cut:
            found.append(
                f"{len(self.cut)} of {len(self.durations)} processes did not end normally, process {self.cut[0]} "
                f"first: the trace is what all did before, without {self.left_out} later actions"
            )
        return found


@dataclass
class _Process:
    """What the file of one process holds: its events and what was lost of them."""

    rank: int = -1
    count: int = 0
    duration: float = 0.0
    actions: list[str] = field(default_factory=list)
    way: str = TIME
    between: dict[tuple[int, int], tuple[float, ...]] = field(default_factory=dict)
    bodies: list[tuple[Node, ...]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    program: tuple[Node, ...] = ()
    size: int = 0
    unrecorded: Counter[str] = field(default_factory=Counter)
    how: str = ""


def read_recorded(folder: Path) -> Recorded:
    """Read the files of all processes.

    Raises
    ------
    InputError : with the file, the row and what was expected, or the process that is missing.
    """
    # Any file tells how many processes there are, also where the first was killed before it wrote one.
    place = folder / "rank-0"
    first = _read(place if place.is_file() else min(folder.glob("rank-*"), default=place))
    if not 1 <= first.count <= MOST_PROCESSES:
        raise InputError(f"has {first.count} processes, expected from 1 to {MOST_PROCESSES}", where=str(folder))
    processes: list[_Process] = []
    events = 0
    for rank in range(first.count):
        path = folder / f"rank-{rank}"
        if not path.is_file():
            raise InputError(
                f"process {rank} of {first.count} is missing, expected one that ran a second, on a node that has the "
                "folder and the launcher's environment",
                where=str(folder),
            )
        one = first if rank == first.rank == 0 else _read(path)
        if (one.rank, one.count) != (rank, first.count):
            raise InputError(
                f"is of process {one.rank} of {one.count}, expected {rank} of {first.count}", where=str(path)
            )
        events += one.size
        if events > MOST_EVENTS:
            raise InputError(f"holds more than {MOST_EVENTS} actions", where=str(folder))
        processes.append(one)
    if odd := sorted({path.name for path in folder.glob("rank-*")} - {f"rank-{each}" for each in range(first.count)}):
        raise InputError(f"holds {odd[0][:40]}, and rank-0 is of {first.count} processes", where=str(folder))
    ways = {one.way for one in processes}
    if len(ways) > 1 and VALGRIND in ways:
        rank = next(rank for rank, one in enumerate(processes) if one.way != VALGRIND)
        raise InputError(f"process {rank} was not counted by valgrind to its end, as others were", where=str(folder))
    # Where some processes have no counter, times are what all have.
    way = ways.pop() if len(ways) == 1 else TIME
    with Located(str(folder)):
        return Recorded.of(
            _trace(processes, 0 if way == TIME else 1),
            tuple(one.duration for one in processes),
            tuple(rank for rank, one in enumerate(processes) if one.how != "end"),
            way,
            _trace(processes, 0) if way == PERF else None,
            sum((one.unrecorded for one in processes), Counter()),
        )


def _trace(processes: Sequence[_Process], column: int) -> Trace:
    """What all processes did, with one of the columns that tell their computation: nanoseconds, instructions."""
    table = ActionTable()
    known: dict[str, int] = {}
    works: dict[float, int] = {}
    return Trace(table, tuple(_actions(one, column, table, known, works) for one in processes))


def _actions(
    one: _Process, column: int, table: ActionTable, known: dict[str, int], works: dict[float, int]
) -> NDArray[np.int32]:
    """A process's actions by their numbers in the table, with the computation between them."""
    numbers = []
    for text in one.actions:
        name, *words = text.split()
        if name != CANCEL and text not in known:
            known[text] = table.add(name, in_bytes(name, tuple(int(word) for word in words)))
        numbers.append(known.get(text, -1))
    sequence = unfolded(one.program)
    pairs = np.stack([np.concatenate([[-1], sequence[:-1]]), sequence]) if sequence.size else np.zeros((2, 0), np.int64)
    codes, which = np.unique(pairs[0] * len(one.actions) + pairs[1], return_inverse=True)
    amounts = np.zeros(codes.size)
    for place, code in enumerate(codes.tolist()):
        last, after = divmod(code, len(one.actions))
        # Between any two calls there is some, so that runs that differ by a tick of the clock have one program.
        if last >= 0:
            amounts[place] = max(one.between.get((last, after), (0.0, 0.0))[column], 1.0)
    amount, kept = amounts[which.reshape(-1)], ~_cancelled(one.actions, sequence)
    if not kept.all():
        # What was computed before a call that is left out is done before the next one.
        places = np.flatnonzero(kept)
        amount = np.add.reduceat(amount, np.concatenate([[0], places + 1])[: places.size])
        sequence = sequence[kept]
    before, which = _numbered(amount, table, works)
    both = np.stack([before[which], np.array(numbers, dtype=np.int64)[sequence]], axis=1).ravel()
    return both[both >= 0].astype(np.int32)


def _numbered(amounts: Floats, table: ActionTable, works: dict[float, int]) -> tuple[Ints, Ints]:
    """Distinct amounts of computation by their numbers in the table (-1 for none), and which of them each amount is."""
    distinct, which = np.unique(amounts, return_inverse=True)
    numbers = []
    for amount in (float(f"{each:.6g}") for each in distinct.tolist()):
        if amount and amount not in works:
            works[amount] = table.add("compute", (amount,))
        numbers.append(works[amount] if amount else -1)
    return np.array(numbers, dtype=np.int64), which.reshape(-1)


def _cancelled(actions: Sequence[str], sequence: Ints) -> Flags:
    """Which actions of a sequence are receives that were cancelled, the last of those like it, or cancel one."""
    found = np.zeros(sequence.size, dtype=np.bool_)
    parts = [action.partition(" ") for action in actions]
    given_up = {what for name, _, what in parts if name == CANCEL}
    alike = {at: what for at, (name, _, what) in enumerate(parts) if what in given_up and name in ("irecv", CANCEL)}
    begun: dict[str, list[int]] = {what: [] for what in given_up}
    for place in np.flatnonzero(np.isin(sequence, [*alike])).tolist():
        number = int(sequence[place])
        same = begun[alike[number]]
        if parts[number][0] == CANCEL:
            found[[place, *same[-1:]]] = True
            del same[-1:]
        else:
            same.append(place)
    return found


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="ascii") as file:
            for row in range(1, MOST_LINES + 2):
                line = file.readline(LONGEST_PROGRAM + 1)
                if not line:
                    return
                if row > MOST_LINES or len(line) > LONGEST_PROGRAM:
                    raise InputError("is longer than a recorder writes", where=f"{path}, row {row}")
                yield line.rstrip("\n")
    except OSError as error:
        raise InputError(refusal(error), where=str(path)) from None
    except UnicodeDecodeError:
        raise InputError("is not plain text, expected what the recorder writes", where=str(path)) from None


def _read(path: Path) -> _Process:
    one = _Process()
    row = 0
    for row, line in enumerate(_lines(path), 1):
        if row == 1 and line != HEADER:
            raise InputError(f"begins with {line[:40]!r}, expected {HEADER!r}", where=str(path))
        try:
            _take(one, line)
        except InputError as error:
            raise InputError(str(error), where=f"{path}, row {row}") from None
        except (ValueError, IndexError, OverflowError):
            raise InputError(f"{line[:60]!r} is not a line of the recorder", where=f"{path}, row {row}") from None
    if one.how not in ("end", "cut"):
        raise InputError("has no last line, expected a whole file of the recorder", where=str(path))
    return one


def _take(one: _Process, line: str) -> None:
    """One line of a file; ValueError, IndexError or OverflowError where it is of another form."""
    kind, _, rest = line.partition(" ")
    if one.how:
        raise ValueError
    if kind == "process":
        one.rank, one.count = (int(word) for word in rest.split())
    elif kind == "duration":
        one.duration = float(rest)
        if not 0.0 <= one.duration < LARGEST:
            raise ValueError
    elif kind == "a":
        if not _ACTION.fullmatch(rest):
            raise ValueError
        one.actions.append(rest)
    elif kind == "t":
        last, after, times, *totals = (int(word) for word in rest.split())
        if not (-1 <= last < len(one.actions) and 0 <= after < len(one.actions) and times > 0 and min(totals) >= 0):
            raise ValueError
        if len(totals) != (1 if one.way == TIME else 2):
            raise ValueError
        one.between[last, after] = tuple(min(total / times, LARGEST) for total in totals)
    elif kind in ("b", "p"):
        nodes, size = _nodes(one, rest)
        if kind == "b":
            one.bodies.append(nodes)
            one.sizes.append(size)
        else:
            one.program, one.size = nodes, size
    elif line in ("end", "cut"):
        one.how = line
    elif kind == "instructions" and rest in WAYS:
        one.way = rest
    elif kind == "unrecorded" and (match := _UNRECORDED.fullmatch(rest)) and len(one.unrecorded) < MOST_UNRECORDED:
        one.unrecorded[match[2]] += int(match[1] or 1)
    elif line != HEADER:
        raise ValueError


def _nodes(one: _Process, text: str) -> tuple[tuple[Node, ...], int]:
    """Nodes from their words, and how many actions they come to, which is bounded before any is made."""
    nodes: list[Node] = []
    total = 0
    for word in text.split():
        match = _WORD.fullmatch(word)
        if match is None:
            raise ValueError
        if match[3] is not None:
            if int(match[3]) >= len(one.actions):
                raise ValueError
            nodes.append(int(match[3]))
            total += 1
        else:
            body, times = int(match[1]), int(match[2])
            # Each loop at least doubles its body, so that they are nested only as deeply as their actions are many.
            if times < 2 or not one.sizes[body]:
                raise ValueError
            nodes.append(Loop(times, one.bodies[body]))
            total += times * one.sizes[body]
        if total > MOST_EVENTS:
            raise InputError(f"comes to more than {MOST_EVENTS} actions")
    return tuple(nodes), total
