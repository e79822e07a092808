"""Real programs under Open MPI: recorded on a few processes, explained by rules, and compared with larger recordings.

LAMMPS, HPCC and Meep, as Debian has them: ``apt-get install openmpi-bin libopenmpi-dev lammps hpcc meep-mpi-default``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from metasched.records import InputError
from metasched.signature.expanding import expanded
from metasched.signature.fitting import fit
from metasched.signature.phases import Machine, located, phases_of
from metasched.signature.traces import Trace
from metasched.store.files.recorded_traces import read_recorded
from metasched.tracing.recording import record

LEARNED, TRACED = (4, 8, 16), (32, 64)
LAUNCHER = ("mpirun", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-np")
#: Seconds that one run and finding the rules may take; share of its calls that a regular phase gives back where it was
#: learned.
RUN_SECONDS, PATIENCE, REGULAR = 300, 600, 0.999

ATOMS = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 {long} 0 {wide} 0 {wide}
processors {layout}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 10 check no
fix 1 all nve
thermo 10
run 40
"""
WAVES = """(set! geometry-lattice (make lattice (size 128 4 no-size)))
(set! sources (list (make source (src (make continuous-src (frequency 0.15))) (component Ez) (center -50 0))))
(set! pml-layers (list (make pml (thickness 1.0))))
(set! resolution 4)
(run-until 2)
"""
#: The first lines of HPCC's input; what is not there has its default.
SYSTEM = """HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
256          Ns
1            # of NBs
16           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{rows}            Ps
{columns}            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"""


@dataclass(frozen=True)
class Program:
    """A program: its name, its command, the file that it reads, and what that holds on so many processes."""

    name: str
    command: tuple[str, ...]
    file: str
    text: Callable[[int], str]


def _system(n: int) -> str:
    rows = 1 << (n.bit_length() - 1) // 2
    return SYSTEM.format(rows=rows, columns=n // rows)


LMP = ("lmp", "-in", "in.lj", "-log", "none")
PROGRAMS = (
    Program("lammps", LMP, "in.lj", lambda _: ATOMS.format(long=12, wide=12, layout="* * *")),
    Program("lammps, slabs", LMP, "in.lj", lambda _: ATOMS.format(long=192, wide=4, layout="* 1 1")),
    Program("meep", ("meep", "waves.ctl"), "waves.ctl", lambda _: WAVES),
    Program("hpcc", ("hpcc",), "hpccinf.txt", _system),
)


def _recorded(program: Program, count: int, folder: Path) -> Trace:
    """What each process did; a run that the folder has already is not run again."""
    place = folder / f"{program.name.replace(', ', '-')}-{count}"
    if not (place / "trace").is_dir():
        if shutil.which(program.command[0]) is None:
            raise InputError(f"{program.command[0]} is not installed")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        (place / program.file).write_text(program.text(count), encoding="utf-8")
        limit = f"timeout --kill-after=10 {RUN_SECONDS}"
        started = " ".join([*LAUNCHER, str(count), *program.command])
        status = record(["sh", "-c", f"cd {place} && exec {limit} {started} > output 2>&1"], place / "part")
        if status:
            why = f"did not end within {RUN_SECONDS} s" if status == 124 else f"ended with status {status}"
            raise InputError(f"{program.name} {why}, see {place / 'output'}")
        (place / "part").rename(place / "trace")
    return read_recorded(place / "trace").trace


@contextlib.contextmanager
def _patience(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise InputError(f"no rules within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _by_phase(made: Trace, true: Trace) -> tuple[np.ndarray, np.ndarray]:
    """Of each phase of the true trace, how many calls it has, and how many of them are right."""
    weights, places = located([true.shapes[process] for process in true.processes])
    calls, good = np.zeros(weights.size), np.zeros(weights.size)
    for rank, process in enumerate(true.processes):
        mine = made.processes[rank]
        for at, action in enumerate(process.tolist()):
            text = true.table.text(action)
            if not text.startswith("compute"):
                calls[places[rank][at]] += 1
                good[places[rank][at]] += at < mine.size and made.table.text(int(mine[at])) == text
    return calls, good


def _named(trace: Trace, phase: int) -> str:
    """The calls of a phase."""
    _, places = located([trace.shapes[process] for process in trace.processes])
    inside = {action for process, of in zip(trace.processes, places, strict=True) for action in process[of == phase]}
    return "/".join(sorted({trace.table.shapes[trace.table.shape[each]].name for each in inside} - {"compute"}))


def judged(only: str, folder: Path) -> Iterator[str]:
    """What is found of each program, line by line, whatever becomes of the others.

    Parameters
    ----------
    only : name of a program; empty for all.
    folder : for the runs; those that it has are not run again.
    """
    os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    chosen = [each for each in PROGRAMS if only in ("", each.name)]
    if not chosen:
        raise InputError(f"--program is {only}, expected one of {'; '.join(each.name for each in PROGRAMS)}")
    for program in chosen:
        yield from _judged(program, folder.resolve())


def _judged(program: Program, folder: Path) -> Iterator[str]:
    traces = {}
    for count in (*LEARNED, *TRACED):
        try:
            traces[count] = _recorded(program, count, folder)
        except InputError as error:
            yield f"{program.name} on {count}: {error}"
            continue
        found = phases_of(traces[count], Machine())
        relevant = sum(each.relevant for each in found.phases)
        yield (
            f"{program.name} on {count}: {traces[count].events:,} actions, {relevant} of {len(found.phases)} phases "
            f"cover {100.0 * found.coverage:.1f} % of the time"
        )
    try:
        with _patience(PATIENCE):
            application = fit([traces[n] for n in LEARNED if n in traces], timed=True).application
        regular: np.ndarray | None = None
        for count in (each for each in LEARNED if each in traces):
            calls, good = _by_phase(expanded(application, count), traces[count])
            same = good >= REGULAR * calls
            regular = same if regular is None else regular & same if regular.size == same.size else regular[:0]
        if regular is None or not regular.size:
            raise InputError("the runs have different numbers of phases")
        for count in (each for each in TRACED if each in traces):
            calls, good = _by_phase(expanded(application, count), traces[count])
            if calls.size != regular.size:
                yield f"{program.name} on {count}: {calls.size} phases, learned with {regular.size}"
                continue
            ruled, inside = calls[regular].sum(), good[regular].sum()
            yield (
                f"{program.name} on {count}: {100.0 * inside / max(ruled, 1.0):.2f} % of the calls of "
                f"{regular.sum()} regular phases right, {100.0 * good.sum() / calls.sum():.2f} % of all; these phases "
                f"have {100.0 * ruled / calls.sum():.1f} % of the calls"
            )
        odd = [f"{phase} ({_named(traces[LEARNED[-1]], phase)})" for phase in np.flatnonzero(~regular).tolist()]
        yield f"{program.name}: irregular phases: {', '.join(odd) or 'none'}"
    except InputError as error:
        yield f"{program.name}: no rules: {error}"
