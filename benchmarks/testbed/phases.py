"""Times of each process in each phase of a run, for models by phase and process (section 5, Eq. 4).

A process's time in a phase goes from the phase's beginning to the moment when it would only wait for others; the phase
takes as long as its slowest process. phases.csv names the run by its place in runs.csv, counted from 0.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from benchmarks.testbed.clusters import node_of
from benchmarks.testbed.monitoring import Samples
from benchmarks.testbed.simulator import Outcome
from metasched.store.files.whole_files import write_text_atomically


@dataclass(frozen=True)
class ProcessPhase:
    """What one process of one run did in one phase: time of its own work (s), and the loads where it ran meanwhile."""

    run: int
    phase: int
    process: int
    node: str
    avg_avail_cpu: float
    avg_avail_bw: float
    execution_time: float


def measure_phases(
    run: int, processors: tuple[str, ...], outcome: Outcome, samples: Samples, noise: float
) -> Iterable[ProcessPhase]:
    """The phases that a run marked, as they are recorded; its error is that of the run's own time."""
    for mark in outcome.phases:
        name = processors[mark.process]
        yield ProcessPhase(
            run,
            mark.phase,
            mark.process,
            name,
            round(samples.average(samples.cpu[name], mark.begin, mark.end), 4),
            round(samples.average(samples.bandwidth[node_of(name)], mark.begin, mark.end), 3),
            round((mark.end - mark.begin) * noise, 4),
        )


def write_phases(path: Path, phases: Iterable[ProcessPhase]) -> None:
    """Write phases.csv."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(ProcessPhase))
    writer.writerows(astuple(phase) for phase in phases)
    write_text_atomically(path, text.getvalue())
