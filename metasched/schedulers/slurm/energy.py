"""The energy of jobs by Slurm's accounting: that of their nodes, and each job's part if several shared them.

Slurm gives each step all that its nodes took meanwhile, whoever else ran there. Steps of one job overlap, so they are
not added: the largest counts. Jobs that share nodes share what those took by the rule of
:mod:`metasched.energy_share`, with the processor time that the accounting tells.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from metasched.energy_share import Coverage, Measured, Occupant, shares, steadiest
from metasched.schedulers.slurm.cells import nodes_in, number_in, seconds_in
from metasched.slurm_times import span
from monitors.sensors.power.ipmi import MOST_WATTS
from monitors.sources.power_history import Drawn

#: What sacct is asked for.
COLUMNS = ("JobIDRaw", "AllocCPUS", "NodeList", "Start", "End", "TotalCPU", "ConsumedEnergyRaw")


@dataclass(frozen=True, slots=True)
class MeteredJob:
    """A job with its energy by the accounting.

    Parameters
    ----------
    nodes : names of its nodes.
    processors : on all of them together.
    start, end : when it ran (s); the end of one that runs is infinite.
    processor_time : that it used on all nodes (s); None if unknown.
    joules : what its nodes took while it ran; 0 where that was not measured.
    """

    nodes: tuple[str, ...]
    processors: float
    start: float
    end: float
    processor_time: float | None
    joules: float = 0.0

    def with_at_least(self, joules: float) -> MeteredJob:
        """The job whose nodes took no less than this; itself where they cannot have: Slurm writes 2^64 - 2 for none."""
        most = MOST_WATTS * len(self.nodes) * (self.end - self.start)
        return replace(self, joules=joules) if self.joules < joules <= most else self

    @property
    def on_a_node(self) -> Occupant:
        """The job on each of its nodes, which are taken to do the same."""
        count = len(self.nodes)
        used = None if self.processor_time is None else self.processor_time / count
        return Occupant(self.start, self.end, self.processors / count, used)

    def taken(self, coverage: Coverage) -> Measured:
        """What each of its nodes took while it ran, by a meter of some coverage."""
        joules = coverage.joules(self.joules / len(self.nodes), self.end - self.start)
        return Measured(self.start, self.end, joules)

    def has(self, processors: Mapping[str, int]) -> bool:
        """Whether it has all processors of its nodes, by those of each node."""
        return self.processors >= sum(processors.get(node, math.inf) for node in self.nodes)


def accounted(rows: Sequence[Mapping[str, str]]) -> dict[str, MeteredJob]:
    """Jobs by their numbers, from rows of :data:`COLUMNS` of jobs and their steps; what did not run is left out.

    >>> job = {"JobIDRaw": "3", "AllocCPUS": "2", "NodeList": "n1", "Start": "100", "End": "200",
    ...        "TotalCPU": "01:30.500", "ConsumedEnergyRaw": "0"}
    >>> accounted([job, job | {"JobIDRaw": "3.batch", "ConsumedEnergyRaw": "5000"}])["3"]
    MeteredJob(nodes=('n1',), processors=2.0, start=100.0, end=200.0, processor_time=90.5, joules=5000.0)
    """
    found: dict[str, MeteredJob] = {}
    for row in rows:
        job, _, step = row["JobIDRaw"].partition(".")
        if not step:
            nodes, processors = nodes_in(row["NodeList"]), number_in(row["AllocCPUS"])
            start, end = seconds_in(row["Start"]) or 0.0, seconds_in(row["End"]) or math.inf
            if not (nodes and processors and 0.0 < start < end):
                continue
            # While a job runs the accounting does not know what it used.
            used = None if end == math.inf else span(row["TotalCPU"]) or None
            found[job] = MeteredJob(nodes, processors, start, end, used)
        if job in found:
            found[job] = found[job].with_at_least(number_in(row["ConsumedEnergyRaw"]) or 0.0)
    return found


def energies(
    wanted: Collection[str], jobs: Mapping[str, MeteredJob], processors: Mapping[str, int], coverage: Coverage
) -> dict[str, float]:
    """The energy of jobs (J) whose nodes were metered.

    Parameters
    ----------
    wanted : numbers of the jobs that are asked about.
    jobs : these and all others that were on their nodes meanwhile.
    processors : of each node.
    coverage : what the meters of the nodes see.

    Examples
    --------
    >>> jobs = {name: MeteredJob(("n1",), 2, 0.0, 10.0, used, 1000.0) for name, used in (("1", 15.0), ("2", 5.0))}
    >>> {name: round(joules) for name, joules in energies(["1", "2"], jobs, {"n1": 4}, Coverage("node")).items()}
    {'1': 750, '2': 250}
    """
    found: dict[str, float] = {}
    drawn: dict[str, Drawn] = {}
    for number in wanted:
        job = jobs.get(number)
        if job is None or not job.joules or not math.isfinite(job.end):
            continue
        if job.has(processors):
            found[number] = len(job.nodes) * job.taken(coverage).joules
            continue
        if not all(node in processors for node in job.nodes):
            continue
        for node in job.nodes:
            there = [each for each in jobs.values() if node in each.nodes]
            if node not in drawn:
                # All that was measured there counts, so that all jobs are given parts of the same power.
                ended = [each for each in there if each.joules and math.isfinite(each.end)]
                measured = [each.taken(coverage) for each in ended]
                drawn[node] = steadiest(coverage.covers, measured, coverage.idle_watts)
            occupants = [job.on_a_node, *(each.on_a_node for each in there if each is not job)]
            part, *_ = shares(drawn[node], occupants, processors[node], coverage.idle_watts, job.start, job.end)[0]
            found[number] = found.get(number, 0.0) + part
    return {number: own for number, own in found.items() if own > 0.0}
