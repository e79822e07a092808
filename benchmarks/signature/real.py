"""Real programs under Open MPI: recorded on a few processes, explained by rules, and compared with larger recordings.

LAMMPS, HPCC and Meep, as Debian has them: ``apt-get install openmpi-bin libopenmpi-dev lammps hpcc meep-mpi-default``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np

from metasched.records import InputError
from metasched.signature.equations.expressions import GUARDS
from metasched.signature.rules.application import Application, Rule
from metasched.signature.rules.attributes import Attribute
from metasched.signature.rules.expanding import expanded, positions
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.roles import cells
from metasched.signature.traces.actions import PART, TURN, Shape
from metasched.signature.traces.matching import Leaf, Part
from metasched.signature.traces.message_order import in_order
from metasched.signature.traces.parts import cut
from metasched.signature.traces.phases import Machine, phases_of
from metasched.signature.traces.trace import Trace
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


def _phases(program: Part | tuple[Part, ...], counts: tuple[Attribute, ...], found: list[int]) -> list[int]:
    """The phase of each action of a program: calls in a row without a loop between.

    Guards and calls that are repeated by themselves are no such loops.
    """
    opened = -1
    for part in program if isinstance(program, tuple) else (program,):
        if isinstance(part, Leaf):
            opened = _opened(opened, found)
            found.append(opened)
            continue
        expression = counts[part.number].expression
        guard = expression is not None and any(name in atom for _, atom in expression.terms for name in GUARDS)
        if guard or (len(part.body) == 1 and isinstance(part.body[0], Leaf)):
            opened = _opened(opened, found)
            found += [opened] * sum(1 for _ in _leaves(part))
        else:
            _phases(part.body, counts, found)
            opened = -1
    return found


def _opened(opened: int, found: list[int]) -> int:
    return opened if opened >= 0 else max(found, default=-1) + 1


def _leaves(part: Part) -> Iterator[Leaf]:
    if isinstance(part, Leaf):
        yield part
    else:
        for each in part.body:
            yield from _leaves(each)


@dataclass
class Phase:
    """Calls of one phase: all, those right in primitive and in every number that follows rules, and what does not.

    Parameters
    ----------
    calls, right : how many.
    names : of the calls.
    free : names of calls some of whose bytes follow no rule; with "peer" where a partner does not.
    """

    calls: int = 0
    right: int = 0
    names: set[str] = field(default_factory=set)
    free: set[str] = field(default_factory=set)

    @property
    def partners(self) -> bool:
        """Whether all partners follow rules."""
        return not any(each.endswith("peer") for each in self.free)


def compared(application: Application, true: Trace) -> dict[tuple[object, ...], Phase]:
    """What the rules say beside what was recorded, phase by phase; position by position of each process."""
    if application.parts:
        return _compared_in_parts(application, true)
    count = len(true.processes)
    made, first = expanded(application, count), application.first(count)
    members: dict[tuple[int, ...], list[int]] = {}
    for place, cell in enumerate(cells(application.features, application.topology, count)):
        members.setdefault(cell, []).append((place + first) % count)
    found: dict[tuple[object, ...], Phase] = {}
    for cell, ranks in members.items():
        role = application.roles[cell]
        places, length = positions(application, role, (ranks[0] - first) % count, count)
        leaf_at = np.zeros(length, dtype=np.int64)
        for number, rows in enumerate(places.leaves):
            leaf_at[[row[0] for row in rows]] = number
        phases = _phases(role.program.parts, role.counts, [])
        for rank in ranks:
            theirs = true.processes[rank]
            mine = np.concatenate([made.processes[rank], np.full(max(theirs.size - length, 0), -1)])[: theirs.size]
            leaf = np.concatenate([leaf_at, np.full(mine.size, leaf_at[-1] if length else -1)])[: theirs.size]
            together, many = np.unique(np.stack([leaf, mine, theirs]), axis=1, return_counts=True)
            for (number, one, other), times in zip(together.T.tolist(), many.tolist(), strict=True):
                shape = true.table.shapes[true.table.shape[other]]
                if shape.name in ("compute", TURN):
                    continue
                # Of what the rules do not know there is neither a phase nor a rule.
                phase = found.setdefault((cell, phases[number] if number >= 0 else -1), Phase())
                phase.calls += times
                phase.names.add(shape.name)
                if number >= 0:
                    phase.free |= _free(shape, role.rules[number])
                    phase.right += times * (one >= 0 and _right(made, one, true, other, role.rules[number]))
    return found


def _compared_in_parts(application: Application, true: Trace) -> dict[tuple[object, ...], Phase]:
    """The same of a program in parts: each part by itself, and the calls outside them, turn by turn of its loops."""
    count = len(true.processes)
    found: dict[tuple[object, ...], Phase] = {}
    whole, (role,) = cut(true), application.roles.values()
    if whole is None:
        raise InputError("the processes differ in their collective operations")
    outside, table = whole.outside, whole.outside.table
    shapes = np.array([application.shapes.index(each) if each in application.shapes else -1 for each in table.shapes])
    theirs = shapes[outside.shapes[outside.processes[0]]]
    made = expanded(replace(application, parts={}), count)
    places, length = positions(application, role, 0, count)
    leaf_at = np.zeros(length, dtype=np.int64)
    for number, rows in enumerate(places.leaves):
        leaf_at[[row[0] for row in rows]] = number
    # Loops may run less often, or more, than the rules say: calls in the same order are compared.
    of_leaf = [application.shapes.index(application.shapes[leaf.shape]) for leaf in role.program.leaves]
    mine = np.array(of_leaf)[leaf_at]
    here = np.full(theirs.size, -1)
    for block in SequenceMatcher(None, mine.tolist(), theirs.tolist(), autojunk=False).get_matching_blocks():
        here[block.b : block.b + block.size] = np.arange(block.a, block.a + block.size)
    marks = np.cumsum(theirs == application.shapes.index(Shape(PART, 1))) - 1
    phases = _phases(role.program.parts, role.counts, [])
    inside: dict[int, list[int]] = {}
    for at, place in enumerate(here.tolist()):
        number = int(leaf_at[place]) if place >= 0 else -1
        shape = table.shapes[table.shape[outside.processes[0][at]]]
        if number in application.parts:
            inside.setdefault(number, []).append(int(marks[at]))
        elif shape.name == PART:
            lost = found.setdefault(("outside", -2), Phase())
            lost.calls += sum(each.size for each in whole.inside[int(marks[at])])
        elif shape.name != "compute":
            phase = found.setdefault(("outside", phases[number] if number >= 0 else -1), Phase())
            phase.calls += count
            phase.names.add(shape.name)
            if number >= 0:
                rule, both = role.rules[number], zip(made.processes, outside.processes, strict=True)
                phase.free |= _free(shape, rule)
                phase.right += sum(_right(made, int(one[place]), outside, int(other[at]), rule) for one, other in both)
    for number, those in inside.items():
        # Messages of a part stand as they were started, or in order of their partners.
        recorded = whole.together(those)
        ways = [compared(application.parts[number], each) for each in (recorded, in_order(recorded))]
        part = max(ways, key=lambda way: sum(phase.right for phase in way.values()))
        found |= {(number, *key): phase for key, phase in part.items()}
    return found


def _free(shape: Shape, rule: Rule) -> set[str]:
    """What of a call follows no rule."""
    unruled = {place for place, each in enumerate(rule.numbers) if not each.ruled}
    peers = {f"{shape.name} peer"} if unruled & {*shape.peers} else set()
    others = unruled - {*shape.peers} or any(not each.ruled for each in rule.lists)
    return peers | ({shape.name} if others else set())


def _right(made: Trace, one: int, true: Trace, other: int, rule: Rule) -> bool:
    """Whether an action is the recorded one, but for numbers that follow no rule."""
    shape, wanted = made.table.shapes[made.table.shape[one]], true.table.shapes[true.table.shape[other]]
    if shape != wanted or len(rule.numbers) != shape.numbers:
        return False
    numbers = zip(rule.numbers, made.table.numbers[one], true.table.numbers[other], strict=True)
    if any(each.ruled and mine != theirs for each, mine, theirs in numbers):
        return False
    lists = zip(rule.lists, made.table.lists.get(one, ()), true.table.lists.get(other, ()), strict=False)
    return all(not each.ruled or np.array_equal(mine, theirs) for each, mine, theirs in lists)


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
            learned = fit([traces[n] for n in LEARNED if n in traces], timed=True)
            application = learned.application
            if learned.in_order and not application.parts:
                traces = {count: in_order(trace) for count, trace in traces.items()}
        regular: set[tuple[object, ...]] | None = None
        for count in (each for each in LEARNED if each in traces):
            phases = compared(application, traces[count])
            same = {key for key, each in phases.items() if each.right >= REGULAR * each.calls and each.partners}
            regular = same if regular is None else regular & (same | (regular - {*phases}))
        names: dict[tuple[object, ...], Phase] = {}
        for count in (each for each in TRACED if each in traces):
            names |= (phases := compared(application, traces[count]))
            inside = [each for key, each in phases.items() if regular is not None and key in regular]
            calls, right, whole = sum(e.calls for e in inside), sum(e.right for e in inside), sum(
                e.calls for e in phases.values()
            )  # fmt: skip
            yield (
                f"{program.name} on {count}: {100.0 * right / max(calls, 1):.2f} % of the {calls:,} calls of "
                f"{len(inside)} regular phases right; these have {100.0 * calls / max(whole, 1):.1f} % of all calls"
            )
        free = sorted({name for each in names.values() for name in each.free})
        odd = sorted({name for key, each in names.items() if regular is not None and key not in regular for name in
                      each.names})  # fmt: skip
        yield f"{program.name}: bytes that follow no rule: {', '.join(free) or 'none'}"
        yield f"{program.name}: irregular phases: {', '.join(odd) or 'none'}"
        for each in learned.irregular:
            calls = ", ".join(name for name in each.calls if name != "compute")
            yield (
                f"{program.name}: no rule {each.where}: {calls}, {100.0 * each.events:.2f} % of the actions, "
                f"{100.0 * each.time:.2f} % of the time"
            )
    except InputError as error:
        yield f"{program.name}: no rules: {error}"
