"""How long a job would wait in each partition of a Slurm cluster, and what is known of a job before it is submitted."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from metasched.placement.waits import QueueWait, earliest_start
from metasched.schedulers.slurm.commands import Commands
from metasched.schedulers.slurm.source import SlurmSource, seconds_of
from metasched.store.jobs import Mark, read_mark

#: A time limit that is none (s).
NO_LIMIT = 365 * 86_400.0
#: Script text beyond this is not looked at (bytes).
MOST_SCRIPT = 65_536


def queue_waits(source: SlurmSource, commands: Commands) -> Mapping[str, QueueWait]:
    """For each partition of a cluster how long a job waits by the processors it asks for.

    Jobs are taken to run until their time limits and to start in the order of their priorities. The true wait is
    shorter as a rule: others are filled in behind, and jobs end before their limits.

    Raises
    ------
    RuntimeError
        When Slurm does not answer.
    """
    free = {each.name: int(each.state.processors[each.state.up].sum()) for each in source.partitions()}
    running: dict[str, list[tuple[int, float]]] = {name: [] for name in free}
    queued: dict[str, list[tuple[int, float]]] = {name: [] for name in free}
    rows = commands.rows(
        "squeue", "--noheader", "--states=PENDING,RUNNING,COMPLETING", "--sort=-p,i", "--format=%P|%C|%t|%L|%l"
    )
    for partitions, processors, state, left, limit in rows:
        for name in partitions.split(","):
            if name not in free:
                continue
            if state == "PD":
                queued[name].append((int(processors), seconds_of(limit) or NO_LIMIT))
            else:
                running[name].append((int(processors), seconds_of(left) or 0.0))
    return {name: earliest_start(count, running[name], queued[name]) for name, count in free.items()}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a job asks for: its mark, the number of processors, and the partitions, none where it does not say."""

    mark: Mark | None
    processors: int
    partitions: tuple[str, ...]


def asked_for(words: Sequence[str]) -> Asked:
    """What the words of an sbatch command ask for, and the ``#SBATCH`` lines of its script, over which words go.

    Examples
    --------
    >>> asked_for(["-n", "4", "--comment=metasched:app=cg,n=900", "-pfast,slow", "no-such-script"])
    Asked(mark=Mark(application='cg', problem_size=900.0, processors=None, placement=None), processors=4, \
partitions=('fast', 'slow'))
    """
    inside = []
    for word in words:
        path = Path(word)
        if not word.startswith("-") and path.is_file():
            with path.open("rb") as script:
                head = script.read(MOST_SCRIPT).decode(errors="replace")
            if head.startswith("#!"):
                for line in head.splitlines():
                    if line.startswith("#SBATCH"):
                        inside += _words(line.removeprefix("#SBATCH"))
                break
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("-n", "--ntasks", type=int)
    parser.add_argument("-N", "--nodes", default="1")
    parser.add_argument("--ntasks-per-node", type=int, default=1)
    parser.add_argument("-p", "--partition", default="")
    parser.add_argument("--comment", default="")
    try:
        told, _ = parser.parse_known_args([*inside, *words])
    except argparse.ArgumentError:
        told = parser.parse_args([])
    nodes = told.nodes.partition("-")[0]
    processors = told.ntasks or told.ntasks_per_node * (int(nodes) if nodes.isdecimal() else 1)
    partitions = tuple(name for name in told.partition.split(",") if name)
    return Asked(read_mark(told.comment), max(1, processors), partitions)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []
