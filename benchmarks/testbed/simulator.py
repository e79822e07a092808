"""Builds the driver with SimGrid's libraries and runs jobs on it.

The driver is compiled once for each state of its sources, into the user's cache folder. A simulation is a process of
its own, so that many can run at once, and its answer is the same to the last digit wherever and whenever it runs.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.testbed.clusters import ClusterModel, write_platform
from benchmarks.testbed.timeline import Timeline
from metasched.records import InputError

HERE = Path(__file__).resolve().parent
INCLUDE = Path("/usr/include/smpi")
RETRIES = 5
RETRY_LATER = 0.1  # seconds


class SimulationError(RuntimeError):
    """The simulator gave up on a job; SimGrid 3.32 now and then reports a deadlock where there is none."""


@dataclass(frozen=True)
class Job:
    """An MPI program on processors, one for each rank, from a moment on."""

    application: str
    problem_size: int
    start_time: float
    processors: tuple[str, ...]


@dataclass(frozen=True)
class PhaseTime:
    """When one process began a phase of its job, and when it had done its own part (s)."""

    phase: int
    process: int
    begin: float
    end: float


@dataclass(frozen=True)
class Outcome:
    """What became of a job: its times (s) and the phases it marked.

    Where power was given, ``energy`` is what its processors consumed meanwhile (J), and ``stalled`` how long they
    waited for memory at full speed, summed over all (s).
    """

    start_time: float
    end_time: float
    phases: tuple[PhaseTime, ...]
    energy: float = math.nan
    stalled: float = math.nan

    @property
    def execution_time(self) -> float:
        """Seconds from start to end."""
        return self.end_time - self.start_time


Group = tuple[Job, ...]
Outcomes = Iterable[list[Outcome]]
Progress = Callable[[Outcomes, int], Outcomes]


def silent(items: Outcomes, total: int) -> Outcomes:
    """A progress display that shows nothing."""
    return items


def available() -> bool:
    """Whether SimGrid with SMPI and the compilers are installed here."""
    return (INCLUDE / "mpi.h").exists() and all(shutil.which(tool) for tool in ("gcc", "g++"))


def driver() -> Path:
    """Path of the driver for the present sources, built if need be."""
    if not available():
        raise InputError(
            "SimGrid with SMPI, gcc and g++ are not installed; on Debian: apt-get install libsimgrid-dev g++"
        )
    programs = sorted((HERE / "apps").glob("*.c"))
    sources = [HERE / "driver.cpp", HERE / "apps" / "testbed.h", *programs]
    state = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "metasched-testbed"
    target = cache / f"driver-{state}"
    if target.exists():
        return target
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        objects = []
        for program in programs:
            objects.append(f"{folder}/{program.stem}.o")
            main = f"-Dmain={program.stem}_main"
            _compile("gcc", "-std=gnu11", "-O2", f"-I{INCLUDE}", main, "-c", str(program), "-o", objects[-1])
        built = f"{folder}/driver"
        _compile("g++", "-std=c++17", "-O2", f"-I{INCLUDE}", str(sources[0]), *objects, "-lsimgrid", "-lm", "-o", built)
        Path(built).replace(target)
    return target


def _compile(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SimulationError(f"{command[0]} failed: {done.stderr.strip()}")


def simulate(program: Path, platform: Path, jobs: Sequence[Job], metered: bool = False) -> list[Outcome]:
    """Run jobs, all in one simulation.

    Parameters
    ----------
    program : from :func:`driver`.
    platform : from :func:`benchmarks.testbed.clusters.write_platform`.
    jobs : to run; those whose times overlap compete for processors and links.
    metered : whether the platform tells power.
    """
    lines = [f"{job.application} {job.start_time:.6f} {job.problem_size} {' '.join(job.processors)}" for job in jobs]
    with tempfile.NamedTemporaryFile("w", suffix=".jobs") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        command = [str(program), str(platform), file.name, *["energy"] * metered, "--log=root.thres:critical"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SimulationError(f"{lines} ended with status {done.returncode}: {done.stderr.strip()[:500]}")
    times: dict[int, tuple[float, float]] = {}
    phases: dict[int, list[PhaseTime]] = {index: [] for index in range(len(jobs))}
    energies = [(math.nan, math.nan)] * len(jobs)
    for line in done.stdout.splitlines():
        kind, index, *rest = line.split()
        if kind == "job":
            times[int(index)] = (float(rest[0]), float(rest[1]))
        elif kind == "energy":
            energies[int(index)] = (float(rest[0]), float(rest[1]))
        elif kind == "phase":
            phases[int(index)].append(PhaseTime(int(rest[0]), int(rest[1]), float(rest[2]), float(rest[3])))
    return [Outcome(*times[index], tuple(phases[index]), *energies[index]) for index in range(len(jobs))]


def simulate_group(program: Path, platform: Path, group: Group, metered: bool = False) -> list[Outcome]:
    """Run jobs together; where the simulator reports its false deadlock, start all of them a little later."""
    for attempt in range(RETRIES):
        later = [replace(job, start_time=job.start_time + RETRY_LATER * attempt) for job in group]
        try:
            return simulate(program, platform, later, metered)
        except SimulationError:
            if attempt == RETRIES - 1:
                raise
    raise AssertionError("unreachable")


def simulate_all(
    cluster: ClusterModel,
    timeline: Timeline | None,
    groups: Sequence[Group],
    workers: int,
    progress: Progress,
    watts: tuple[float, float] | None = None,
) -> list[list[Outcome]]:
    """Run groups of jobs on the cluster under its loads, each group in a simulation of its own, several at a time.

    ``watts`` as :func:`benchmarks.testbed.clusters.write_platform` takes them.
    """
    program = driver()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        platform = write_platform(cluster, timeline, Path(folder), watts)
        found = pool.map(lambda group: simulate_group(program, platform, group, watts is not None), groups)
        return list(progress(found, len(groups)))
