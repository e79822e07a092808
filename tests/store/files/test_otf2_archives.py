"""Archives of Score-P: written with the library that Score-P writes them with, as it does, and read back."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import status_of

from metasched.records import InputError
from metasched.store.files.otf2_archives import _COLLECTIVES, read_otf2

otf2 = pytest.importorskip("otf2", reason="the package otf2 is not installed")
from otf2.enums import CollectiveOp, GroupFlag, GroupType, LocationType, Paradigm  # noqa: E402

MICROSECONDS = 1_000_000


class Writer:
    """One process of an archive: calls with what Score-P writes in them."""

    def __init__(self, events: Any, regions: dict[str, Any]) -> None:
        self.events, self.regions, self.time = events, regions, 0

    def call(self, name: str, *inside: tuple[Any, ...]) -> None:
        self.time += 5
        self.events.enter(self.time, self.regions[name])
        for write, *values in inside:
            self.time += 1
            write(self.time, *values)
        self.time += 1
        self.events.leave(self.time, self.regions[name])

    def work(self, microseconds: int) -> None:
        self.time += microseconds


def written(folder: Path, n: int, steps: int = 6, finalize: bool = True) -> Path:
    """A ring of n processes with a sum, a broadcast among those of even rank, and a thread that only computes."""
    with otf2.writer.open(str(folder), timer_resolution=MICROSECONDS) as archive:
        definitions = archive.definitions
        node = definitions.system_tree_node("node")
        names = ("Init", "Isend", "Irecv", "Waitall", "Wait", "Allreduce", "Bcast", "Sendrecv", "Send", "Recv",
                 "Finalize")  # fmt: skip
        regions = {name: definitions.region(f"MPI_{name}", paradigm=Paradigm.MPI) for name in names}
        loop = definitions.region("solve")
        locations, threads = [], []
        for rank in range(n):
            group = definitions.location_group(f"MPI Rank {rank}", system_tree_parent=node)
            threads.append(definitions.location("OMP thread 1", group=group))
            locations.append(definitions.location("Master thread", group=group, type=LocationType.CPU_THREAD))
        make = definitions.group
        make("", GroupType.COMM_LOCATIONS, Paradigm.MPI, GroupFlag.NONE, locations)
        every = definitions.comm("MPI_COMM_WORLD", make("", GroupType.COMM_GROUP, Paradigm.MPI, members=locations))
        even = definitions.comm("even", make("", GroupType.COMM_GROUP, Paradigm.MPI, members=locations[::2]))
        for location, thread in zip(locations, threads, strict=True):
            beside = archive.event_writer_from_location(thread)
            beside.enter(1, loop)
            beside.leave(2, loop)
            events = archive.event_writer_from_location(location)
            _ring(Writer(events, regions), locations.index(location), n, steps, finalize, (every, even))
    return folder / "traces.otf2"


def _ring(one: Writer, rank: int, n: int, steps: int, finalize: bool, communicators: tuple[Any, Any]) -> None:
    every, even = communicators
    events = one.events
    one.call("Init")
    after, before, size = (rank + 1) % n, (rank - 1) % n, 8000 // n
    for step in range(steps):
        one.work(4000 // n)
        first, second = 2 * step, 2 * step + 1
        one.call("Irecv", (events.mpi_irecv_request, first))
        one.call("Isend", (events.mpi_isend, after, every, 7, size, second))
        received = (events.mpi_irecv, before, every, 7, size, first)
        one.call("Waitall", received, (events.mpi_isend_complete, second))
        one.call("Allreduce", *_collective(events, CollectiveOp.ALLREDUCE, every, (1 << 32) - 1, 8 * n, 8 * n))
    if rank % 2 == 0:
        sent = 40 * (n // 2) if rank == 2 else 0
        one.call("Bcast", *_collective(events, CollectiveOp.BCAST, even, 1, sent, 40))
    one.call("Sendrecv", (events.mpi_send, after, every, 1, 24), (events.mpi_recv, before, every, 1, 24))
    if finalize:
        one.call("Finalize")


def _collective(events: Any, operation: Any, of: Any, root: int, sent: int, got: int) -> tuple[Any, Any]:
    return (events.mpi_collective_begin,), (events.mpi_collective_end, operation, of, root, sent, got)


def test_an_archive_holds_the_calls_that_were_written(tmp_path: Path) -> None:
    found = read_otf2(written(tmp_path / "run", 4))
    assert len(found.trace.processes) == 4
    texts = [found.trace.table.text(action) for action in found.trace.processes[2].tolist()]
    calls = [text for text in texts if not text.startswith("compute")]
    step = ["irecv 1 7 2000 6", "isend 3 7 2000 6", "waitall 2", "allreduce 8 0 6"]
    assert calls == ["init 0", *(6 * step), "bcast_on 2 40 2 6", "sendRecv 24 3 24 1 6 6", "finalize 0"]
    # 1 ms of work and 5 us up to the call, in nanoseconds; the thread beside it is no process.
    assert texts[1] == "compute 1.005e+06"
    assert found.cut == ()
    assert found.duration == pytest.approx(6 * 1e-3, rel=0.1)


def test_a_process_that_was_cut_short_is_named(tmp_path: Path) -> None:
    assert read_otf2(written(tmp_path / "run", 2, finalize=False)).cut == (0, 1)


def test_from_archives_to_a_larger_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    signatures = []
    for n in (4, 8, 16):
        signatures.append(str(tmp_path / f"{n}.json"))
        _done("extract", str(written(tmp_path / str(n), n)), "-o", signatures[-1])
    _done("fit", *signatures, "-o", str(tmp_path / "app.json"))
    _done("expand", str(tmp_path / "app.json"), "--processes", "32", "-o", str(tmp_path / "32.ti"))
    lines = (tmp_path / "32.ti_files" / "0_rank-4.txt").read_text().splitlines()
    assert [line for line in lines if "irecv" in line] == 6 * ["3 irecv 2 7 250 6"]
    capsys.readouterr()
    _done("extract", str(tmp_path / "16" / "traces.otf2"), "-o", signatures[-1], "--json")
    document = json.loads(capsys.readouterr().out)
    assert document["processes"] == 16
    assert [each["weight"] for each in document["phases"]] == [1, 6, 1]


def _done(*words: str) -> None:
    assert status_of("signature", *words) == 0


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "traces.otf2").write_text("no archive")
    with pytest.raises(InputError, match=r"traces\.otf2.*is no OTF2 archive that can be read"):
        read_otf2(tmp_path / "traces.otf2")
    with pytest.raises(InputError, match="no such file"):
        read_otf2(tmp_path / "none.otf2")


def test_an_archive_with_two_definitions_of_one_number_is_refused_in_a_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # As EZTrace 2.0 writes them: each process defines the group of all anew.
    with otf2.writer.open(str(tmp_path / "run"), timer_resolution=MICROSECONDS) as archive:
        first, second = (archive.definitions.region(name) for name in ("solve", "exchange"))
        second._ref = first._ref
    with pytest.raises(InputError, match=r"no OTF2 archive that can be read: Semantic error.*Duplicate definition"):
        read_otf2(tmp_path / "run" / "traces.otf2")
    assert capfd.readouterr().err == ""


def test_a_missing_file_of_the_archive_is_refused(tmp_path: Path) -> None:
    anchor = written(tmp_path / "run", 2)
    (anchor.parent / "traces" / "1.evt").unlink()
    with pytest.raises(InputError, match=r"traces\.otf2"):
        read_otf2(anchor)


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = builtins.__import__

    def missing(name: str, *rest: Any, **named: Any) -> Any:
        if name == "otf2":
            raise ImportError(name)
        return there(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(InputError, match=r"metasched\[otf2\]"):
        read_otf2(tmp_path / "traces.otf2")


@pytest.mark.parametrize(
    ("operation", "counted", "numbers"),
    [
        ("BARRIER", (0, 0, 4, 1), ()),
        ("BCAST", (0, 40, 4, 1), (40,)),
        ("REDUCE", (40, 0, 4, 1), (40, 0)),
        ("ALLREDUCE", (160, 160, 4, 1), (40, 0)),
        ("GATHER", (40, 160, 4, 0), (40, 40)),
        ("SCATTER", (160, 40, 4, 0), (40, 40)),
        ("ALLGATHER", (160, 160, 4, 1), (40, 40)),
        ("ALLTOALL", (160, 160, 4, 1), (40, 40)),
        ("SCAN", (80, 120, 4, 2), (40, 0)),
        ("EXSCAN", (80, 80, 4, 2), (40, 0)),
        ("EXSCAN", (120, 0, 4, 0), (40, 0)),
        ("EXSCAN", (0, 0, 1, 0), (0, 0)),
    ],
)
def test_bytes_of_all_partners_together_become_those_of_each(
    operation: str, counted: tuple[int, int, int, int], numbers: tuple[int, ...]
) -> None:
    assert _COLLECTIVES[operation][1](*counted) == numbers
