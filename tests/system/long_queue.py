"""Jobs on a real Slurm that run to their time limits, and others that wait for them, with what was estimated of each.

Time limits are whole minutes, so it takes two. Nobody needs to look on: the jobs are submitted, and looked at later.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from metasched.placement.clusters.partition_queues import queue_waits
from metasched.schedulers.slurm.source import SlurmSource
from tests.system import real_slurm
from tests.system.real_slurm import Slurm

#: A job that runs for a second less than its limit: the controller itself ends one up to half a minute late.
MINUTES = {1: b"#!/bin/sh\nsleep 59\n", 2: b"#!/bin/sh\nsleep 119\n"}


@dataclass(frozen=True)
class Waiting:
    """A job that waits: its partition and processors, when it was submitted, and the wait that was estimated (s)."""

    job: int
    partition: str
    processors: int
    submitted: float
    estimated: float


class LongQueue:
    """A Slurm both of whose partitions are full, with a queue in front of each."""

    def __init__(self, slurm: Slurm) -> None:
        self._slurm = slurm
        held = ("old", 8, 1), ("old", 8, 1), ("new", 8, 2), ("new", 8, 1)
        running = [self._submit(*each) for each in held]
        slurm.wait(lambda: all(slurm.job(job)["JobState"] == "RUNNING" for job in running))
        self._source = SlurmSource("proof", configuration=str(slurm.folder / "slurm.conf"))
        # All of it must be free for the first in line of one partition, half of it for that of the other.
        wanted = ("old", 16, 1), ("old", 2, 1), ("new", 8, 1), ("new", 16, 1)
        self.waiting = [self._queued(*each) for each in wanted]

    def waited(self, each: Waiting) -> float:
        """How long a job really waited (s), to the whole seconds that Slurm keeps."""
        self._slurm.wait(lambda: self._slurm.job(each.job)["JobState"] not in ("PENDING", "CONFIGURING"), 150.0)
        start = datetime.fromisoformat(self._slurm.job(each.job)["StartTime"])
        return start.timestamp() - each.submitted

    def _queued(self, partition: str, processors: int, minutes: int) -> Waiting:
        waits = queue_waits(self._source.partitions(), self._source.queue())
        estimated = float(waits[partition].at(processors))
        return Waiting(self._submit(partition, processors, minutes), partition, processors, time.time(), estimated)

    def _submit(self, partition: str, processors: int, minutes: int) -> int:
        words = (f"--partition={partition}", f"--ntasks={processors}", f"--time={minutes}")
        submitted = self._slurm.sbatch(*words, script=MINUTES[minutes])
        assert submitted.job, submitted.said
        return submitted.job


@contextmanager
def queueing(folder: Path) -> Iterator[LongQueue]:
    """Slurm and its queue for the duration of a block."""
    # Other tests run meanwhile: jobs that started first must not be forgotten before they are asked for.
    with real_slurm.running(folder, hook=False, memory=3600) as slurm:
        yield LongQueue(slurm)
