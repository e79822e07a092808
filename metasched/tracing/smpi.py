"""Replays traces on simulated platforms by SimGrid's smpirun: seconds of every action."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import Sample, sampled, sound
from metasched.signature.times.clocked_runs import phases_of_sample
from metasched.signature.times.timed import Engine, Timed, phases_in_last
from metasched.signature.traces.actions import AMONG_SOME, ActionTable, in_bytes
from metasched.store.files.ti_traces import write_ti_trace

#: What smpirun prints of an action: rank, the action's own line, seconds. Those of these names are not printed.
_ACTION = re.compile(rb"(\d+) ([A-Za-z_]+)(?: [-+.\deEinfa]+)* (\d+\.\d+)\s*$")
_SILENT = ("init", "finalize")
_HOSTS = 1_000_000


def by_replay(application: Application, platform: Path, hosts: Path, relevant: bool) -> Engine:
    """An engine that replays the application's trace on a simulated platform.

    Parameters
    ----------
    platform : of SimGrid (XML), with its options.
    hosts : names of hosts, one a line; the first of them take the processes.
    relevant : whether loops are run a few times only and their times multiplied by what was left out.

    Raises
    ------
    InputError : when smpirun is not installed, a file is missing, or the hosts are fewer than the processes.
    """
    if shutil.which("smpirun") is None:
        raise InputError("smpirun of SimGrid is not installed; on Debian: apt-get install libsimgrid-dev")
    if not platform.is_file():
        raise InputError("is no file, expected a platform of SimGrid", where=str(platform))
    names = _hosts(hosts)

    def engine(count: int) -> Timed:
        if count > len(names):
            raise InputError(f"names {len(names)} hosts, {count} processes need {count}", where=str(hosts))
        sound(application, count)
        sample = sampled(application, count, FEW if relevant else 0)
        weights, executed, phases, _ = phases_of_sample(sample)
        computing, waiting = _spent(sample, phases, weights.size, platform, hosts)
        return Timed(
            phases_in_last(computing, waiting, executed, weights),
            warnings=("measurable points are not replayed: the platform's speed is used",) if application.paces else (),
        )

    return engine


#: Turns of a loop that are replayed where not all are.
FEW = 8


def _hosts(path: Path) -> list[str]:
    try:
        with path.open(encoding="utf-8") as file:
            names = [line.strip() for _, line in zip(range(_HOSTS), file, strict=False)]
    except (OSError, UnicodeDecodeError):
        raise InputError("cannot be read, expected names of hosts, one a line", where=str(path)) from None
    return [name for name in names if name]


def _spent(sample: Sample, phases: Ints, many: int, platform: Path, hosts: Path) -> tuple[Floats, Floats]:
    """Seconds of work and of calls, arrays of shape (processes, phases)."""
    trace = sample.trace
    count = len(trace.processes)
    names = [shape.name.lower() for shape in trace.table.shapes]
    texts = [_replayable(trace.table, action) for action in range(len(trace.table.shape))]
    kept = np.array([text is not None for text in texts])
    shown = kept & [names[shape] not in _SILENT for shape in trace.table.shape]
    works = np.array([names[shape] in ("compute", "sleep") for shape in trace.table.shape], dtype=bool)
    first = np.concatenate([[0], np.cumsum([each.size for each in trace.processes])])
    places = [np.flatnonzero(shown[actions]) for actions in trace.processes]
    done = [0] * count
    spent = np.zeros((2, count, many))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.ti"
        write_ti_trace(path, ([str(texts[action]) for action in each[kept[each]]] for each in trace.processes))
        for rank, seconds in _replayed(path, count, platform, hosts):
            if rank >= count or done[rank] >= places[rank].size:
                raise InputError(f"smpirun reported more actions of process {rank} than the trace has")
            event = int(places[rank][done[rank]])
            done[rank] += 1
            spent[0 if works[trace.processes[rank][event]] else 1, rank, phases[first[rank] + event]] += seconds
    if any(each < wanted.size for each, wanted in zip(done, places, strict=True)):
        raise InputError("smpirun ended before the trace did", where=str(platform))
    return spent[0], spent[1]


def _replayable(table: ActionTable, action: int) -> str | None:
    """An action as smpirun replays it, which knows no MPI_PROC_NULL; None for one that does nothing.

    Types of a program's own, for which smpirun would send nothing, have a byte as they have in phases and rules.
    """
    shape = table.shapes[table.shape[action]]
    if shape.name.endswith(AMONG_SOME):
        name = shape.name.removesuffix(AMONG_SOME)
        raise InputError(f"{name} among some of the processes cannot be replayed, expected --hardware or --synthetic")
    numbers = in_bytes(shape.name, table.numbers[action])
    if not shape.nulls:
        return table.text(action, numbers)
    if len(shape.nulls) > 1 or shape.name.lower() != "sendrecv":
        return None
    # The other half; smpirun gives both halves of a sendRecv the tag 0.
    half = ActionTable()
    if 1 in shape.nulls:
        half.add("recv", (numbers[3], 0, numbers[2], *numbers[5:6]))
    else:
        half.add("send", (numbers[1], 0, numbers[0], *numbers[4:5]))
    return half.text(0)


def _replayed(path: Path, count: int, platform: Path, hosts: Path) -> Iterator[tuple[int, float]]:
    """Rank and seconds of each action, as smpirun reports them."""
    command = ["smpirun", "-np", str(count), "-platform", str(platform.resolve()), "-hostfile", str(hosts.resolve())]
    command += ["-replay", str(path), "--log=smpi_replay.thres:verbose", "--log=smpi_replay.fmt:%m%n"]
    error = b""
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(  # noqa: S603
            command, cwd=path.parent, stdout=errors, stderr=subprocess.PIPE
        ) as program,
    ):
        if program.stderr is None:
            raise TypeError("a pipe was asked for")
        for line in program.stderr:
            found = _ACTION.match(line)
            if found:
                yield int(found[1]), float(found[3])
            elif b"CRITICAL" in line or b"rror" in line or b"eadlock" in line:
                error = error or line.strip()
        status = program.wait()
    if status or error:
        said = error.decode(errors="replace")[-300:] or f"status {status}"
        raise InputError(f"smpirun failed: {said}", where=str(platform))
