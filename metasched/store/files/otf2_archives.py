"""Reads archives in the Open Trace Format 2 (OTF2), which Score-P writes: one event after another of each process.

The library comes with the extra ``otf2`` (``pip install 'metasched[otf2]'``). Between two calls the time that passed
is the computation; what threads beside the one that calls MPI do is part of it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from metasched.records import InputError
from metasched.signature.traces.actions import BYTE, NULL, ActionTable
from metasched.signature.traces.trace import Trace
from metasched.store.files.recorded_traces import Recorded
from metasched.store.files.ti_traces import MOST_EVENTS, MOST_PROCESSES
from metasched.store.files.whole_files import refusal
from metasched.validation import Located

#: Whose name ends so is taken for an archive: the file that names the others of it.
ANCHOR = ".otf2"
#: Calls that complete one request at a time; of the others all that complete in one call are waited for together.
_ONE_BY_ONE = ("WAIT", "WAITANY", "WAITSOME", "TEST", "TESTANY", "TESTSOME", "TESTALL")
#: The action of each way to send.
_SENDS = {"SSEND": "ssend", "BSEND": "bsend", "RSEND": "rsend", "ISSEND": "issend"}
#: Numbers of a collective operation by the bytes that Score-P counts for the process in it: ``sent`` and ``got``, of
#: all its partners together; ``size`` processes take part, of which it is number ``rank``. Gatherings and scatterings
#: say what each partner sends and gets.
_Collective = Callable[[int, int, int, int], tuple[int, ...]]
_COLLECTIVES: dict[str, tuple[str, _Collective, bool]] = {
    "BARRIER": ("barrier", lambda sent, got, size, rank: (), False),
    "BCAST": ("bcast", lambda sent, got, size, rank: (got,), True),
    "REDUCE": ("reduce", lambda sent, got, size, rank: (sent, 0), True),
    "ALLREDUCE": ("allreduce", lambda sent, got, size, rank: (sent // size, 0), False),
    "GATHER": ("gather", lambda sent, got, size, rank: (sent, got // size), True),
    "SCATTER": ("scatter", lambda sent, got, size, rank: (sent // size, got), True),
    "ALLGATHER": ("allgather", lambda sent, got, size, rank: (got // size, got // size), False),
    "ALLTOALL": ("alltoall", lambda sent, got, size, rank: (got // size, got // size), False),
    "SCAN": ("scan", lambda sent, got, size, rank: (got // (rank + 1), 0), False),
    "EXSCAN": ("exscan", lambda sent, got, size, rank: (got // rank if rank else sent // max(size - 1, 1), 0), False),
}
#: Operations of which the archive has only the bytes of all partners together.
_IN_TOTAL = {
    **{name.upper(): name for name in ("gatherv", "scatterv", "allgatherv", "alltoallv")},
    "ALLTOALLW": "alltoallv",
    "REDUCE_SCATTER": "reducescatter",
    "REDUCE_SCATTER_BLOCK": "reducescatter",
}
#: How many types end each of them, all of bytes.
_TYPES = {"barrier": 0, "gather": 2, "scatter": 2, "allgather": 2, "alltoall": 2}


@dataclass
class _Process:
    """What was read of one process: its actions, the last one perhaps still open."""

    rank: int
    actions: list[tuple[str, tuple[float, ...]]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    left: int = -1
    first: int = -1
    last: int = -1
    ended: bool = False
    completed: int = 0
    requests: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    posted: dict[int, int] = field(default_factory=dict)


def read_otf2(path: Path) -> Recorded:
    """Read an archive by its anchor file, ``traces.otf2``.

    Raises
    ------
    InputError : when the library is not installed, the archive cannot be read, holds no MPI program or more than a
        trace may, or messages in it have one end only.
    """
    try:
        import otf2
    except ImportError:
        raise InputError(
            "reading OTF2 archives needs the package otf2, expected pip install 'metasched[otf2]'", where=str(path)
        ) from None
    try:
        path.stat()
    except OSError as error:
        raise InputError(refusal(error), where=str(path)) from None
    printed = io.StringIO()
    try:
        # What a callback of the library fails on is printed by it, and is more than the error says.
        with redirect_stderr(printed), otf2.reader.open(str(path)) as archive, Located(str(path)):
            return _read(archive)
    except InputError:
        raise
    except Exception as error:  # the library raises errors of many classes
        reasons = re.findall(r"^otf2\.error\.\w+: (.+)$", printed.getvalue(), re.MULTILINE)
        said = [*reasons[-1:], *str(error).splitlines(), type(error).__name__][0][:120]
        raise InputError(f"is no OTF2 archive that can be read: {said}", where=str(path)) from None


def _read(archive: Any) -> Recorded:
    world = _world(archive.definitions)
    known = {location: rank for rank, location in enumerate(world)}
    if not 1 <= len(world) <= MOST_PROCESSES:
        raise InputError(f"has {len(world)} processes of MPI, expected from 1 to {MOST_PROCESSES}")
    if sum(int(location.number_of_events) for location in world) > 4 * MOST_EVENTS:
        raise InputError(f"holds more than {4 * MOST_EVENTS} events")
    processes = [_Process(rank) for rank in range(len(world))]
    ticks = 1e9 / float(archive.timer_resolution)
    reader = _Events(known, ticks)
    for location, event in archive.events(list(world)):
        reader.take(processes[known[location]], event)
    return reader.recorded(processes)


def _world(definitions: Any) -> list[Any]:
    """The locations that call MPI, by their ranks in the world."""
    for group in definitions.groups:
        if _named(group.group_type) == "COMM_LOCATIONS" and _named(group.paradigm) == "MPI":
            return list(group.members)
    raise InputError("names no processes of MPI, expected the archive of an MPI program")


def _named(value: Any) -> str:
    """The name of one of the library's enumerated values."""
    return str(value).rpartition(".")[2]


class _Events:
    """What each kind of event adds to the actions of its process, with ranks of the world in place of members."""

    def __init__(self, known: dict[Any, int], ticks: float) -> None:
        self.known, self.ticks = known, ticks
        self.members: dict[Any, tuple[list[int], bool]] = {}

    def _ranks(self, communicator: Any) -> tuple[list[int], bool]:
        """Ranks of the world in a communicator, and whether it has them all."""
        if communicator not in self.members:
            group = getattr(communicator, "group", None)
            if group is None:
                raise InputError("has a communicator between two groups, expected communicators of one group")
            alone = _named(group.group_type) == "COMM_SELF"
            ranks = [] if alone else [self.known[each] for each in group.members]
            self.members[communicator] = ranks, len(ranks) == len(self.known)
        return self.members[communicator]

    def _peer(self, process: _Process, communicator: Any, rank: int) -> int:
        ranks, _ = self._ranks(communicator)
        if not ranks:
            return process.rank
        return ranks[rank] if 0 <= rank < len(ranks) else NULL

    def take(self, process: _Process, event: Any) -> None:
        """Take in the next event of a process."""
        kind, time = type(event).__name__, int(event.time)
        if process.first < 0:
            process.first = time
        if kind in ("Enter", "Leave"):
            self._region(process, event, kind == "Enter", time)
        elif kind in _MESSAGES and not process.ended:
            getattr(self, _MESSAGES[kind])(process, event)
        if not process.ended:
            process.last = time

    def _region(self, process: _Process, event: Any, entered: bool, time: int) -> None:
        name = event.region.name
        if not name.upper().startswith("MPI_"):
            return
        call = name[4:].upper()
        if not entered:
            if process.calls:
                process.calls.pop()
            if call == "WAITALL" and process.completed:
                self._add(process, "waitall", process.completed)
            if call in ("INIT", "INIT_THREAD"):
                process.first = time
                self._add(process, "init", 0)
            process.completed = 0
            process.left = time
            return
        if not process.calls and process.left >= 0 and not process.ended:
            process.actions.append(("compute", (float(f"{max((time - process.left) * self.ticks, 1.0):.6g}"),)))
        process.calls.append(call)
        if call == "FINALIZE" and not process.ended:
            self._add(process, "finalize", 0)
            process.ended, process.last = True, time

    @staticmethod
    def _add(process: _Process, name: str, *numbers: float) -> int:
        process.actions.append((name, tuple(float(each) for each in numbers)))
        return len(process.actions) - 1

    def send(self, process: _Process, event: Any) -> None:
        """A message that is sent; the one of MPI_Sendrecv waits for its other half."""
        peer = self._peer(process, event.communicator, int(event.receiver))
        call = process.calls[-1] if process.calls else "SEND"
        if call.startswith("SENDRECV"):
            self._add(process, "sendRecv", int(event.msg_length), peer, 0, NULL, BYTE, BYTE)
        else:
            self._add(process, _SENDS.get(call, "send"), peer, int(event.msg_tag), int(event.msg_length), BYTE)

    def receive(self, process: _Process, event: Any) -> None:
        """A message that is received; that of MPI_Sendrecv completes what was sent there."""
        peer = self._peer(process, event.communicator, int(event.sender))
        call = process.calls[-1] if process.calls else "RECV"
        if call.startswith("SENDRECV"):
            sent = (0.0, float(NULL))
            if process.actions and process.actions[-1][0] == "sendRecv":
                sent = process.actions.pop()[1][:2]  # type: ignore[assignment]
            self._add(process, "sendRecv", *sent, int(event.msg_length), peer, BYTE, BYTE)
        else:
            self._add(process, "recv", peer, int(event.msg_tag), int(event.msg_length), BYTE)

    def post_send(self, process: _Process, event: Any) -> None:
        """A message that is sent without waiting."""
        peer = self._peer(process, event.communicator, int(event.receiver))
        call = process.calls[-1] if process.calls else "ISEND"
        self._add(process, _SENDS.get(call, "isend"), peer, int(event.msg_tag), int(event.msg_length), BYTE)
        process.requests[int(event.request_id)] = process.rank, peer, int(event.msg_tag)

    def post_receive(self, process: _Process, event: Any) -> None:
        """A message that will be received; from where, its completion tells."""
        process.posted[int(event.request_id)] = self._add(process, "irecv", NULL, 0, 0, BYTE)

    def received(self, process: _Process, event: Any) -> None:
        """A posted receive that is complete."""
        peer, tag = self._peer(process, event.communicator, int(event.sender)), int(event.msg_tag)
        place = process.posted.pop(int(event.request_id), None)
        if place is not None:
            numbers = (float(peer), float(tag), float(event.msg_length), float(BYTE))
            process.actions[place] = "irecv", numbers
        self._waited(process, peer, process.rank, tag)

    def sent(self, process: _Process, event: Any) -> None:
        """A posted send that is complete."""
        request = process.requests.pop(int(event.request_id), None)
        if request is not None:
            self._waited(process, *request)

    def _waited(self, process: _Process, source: int, to: int, tag: int) -> None:
        if process.calls and process.calls[-1] not in _ONE_BY_ONE:
            process.completed += 1
        else:
            self._add(process, "wait", source, to, tag)

    def collective(self, process: _Process, event: Any) -> None:
        """A collective operation, in the numbers that the recorder gives it."""
        operation = _named(event.collective_op)
        if operation not in _COLLECTIVES and operation not in _IN_TOTAL:
            return  # a communicator or a file, which moves no data of the program
        ranks, all_of_them = self._ranks(event.communicator)
        size, place = max(len(ranks), 1), ranks.index(process.rank) if ranks else 0
        sent, got = int(event.size_sent), int(event.size_received)
        numbers: tuple[int, ...]
        if operation not in _COLLECTIVES:
            # How much goes to each is not in the archive.
            name, numbers, rooted = _IN_TOTAL[operation], (max(sent, got),), False
        else:
            name, counted, rooted = _COLLECTIVES[operation]
            numbers = counted(sent, got, size, place)
        if rooted:
            root = int(getattr(event.root, "value", event.root))
            numbers = (*numbers, self._peer(process, event.communicator, root))
        types = (BYTE,) * _TYPES.get(name, 1)
        if not all_of_them:
            name, numbers = f"{name}_on", (size, *numbers)
        self._add(process, name, *numbers, *types)

    def recorded(self, processes: list[_Process]) -> Recorded:
        """The run that the actions of all processes make; what was posted and never completed has no partner."""
        if sum(len(each.actions) for each in processes) > MOST_EVENTS:
            raise InputError(f"holds more than {MOST_EVENTS} actions")
        table, numbered = ActionTable(), {}
        found, durations = [], []
        for process in processes:
            for name, numbers in process.actions:
                if (name, numbers) not in numbered:
                    numbered[name, numbers] = table.add(name, numbers)
            found.append(np.array([numbered[each] for each in process.actions], dtype=np.int32))
            durations.append(1e-9 * self.ticks * max(process.last - process.first, 0))
        cut = tuple(process.rank for process in processes if not process.ended)
        return Recorded.of(Trace(table, tuple(found)).steadied(), tuple(durations), cut)


_MESSAGES = {
    "MpiSend": "send",
    "MpiRecv": "receive",
    "MpiIsend": "post_send",
    "MpiIrecvRequest": "post_receive",
    "MpiIrecv": "received",
    "MpiIsendComplete": "sent",
    "MpiCollectiveEnd": "collective",
}
