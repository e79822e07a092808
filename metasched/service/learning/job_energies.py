"""What each job took of what its nodes drew, which it may have shared with others."""

from __future__ import annotations

import logging
import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from metasched.energy_share import Coverage, Occupant, shares
from metasched.jobs import SAME_MOMENT, EndedJob, same_run
from metasched.placement.clusters.running_jobs import RunningJob, StartedJob
from metasched.schedulers.contract import KnowsProcessorTime, Source
from metasched.service.state.live_clusters import LiveClusters
from monitors.sources.power_history import PowerHistory

_log = logging.getLogger(__name__)

#: Finished jobs that are remembered, since they may have shared the nodes of others.
MOST_ENDED = 2000


class JobEnergies:
    """The energies of jobs that have ended, from the power of their nodes.

    Parameters
    ----------
    board : the partitions and the jobs that run there.
    sources : schedulers, some of which record processor times.
    now : tells the time (s since 1970).

    Attributes
    ----------
    meters : what remembers the power of nodes.
    """

    def __init__(self, board: LiveClusters, sources: Sequence[Source], now: Callable[[], float]) -> None:
        self._board, self._sources, self._now = board, sources, now
        self.meters: tuple[PowerHistory, ...] = ()
        self._ended: deque[EndedJob] = deque(maxlen=MOST_ENDED)

    def note(self, *jobs: EndedJob) -> None:
        """Remember that jobs have ended, each once however often and by whomever it is reported."""
        known = defaultdict[tuple[str, str], list[EndedJob]](list)
        for other in tuple(self._ended):
            known[other.scheduler, other.job].append(other)
        for job in jobs:
            runs = known[job.scheduler, job.job]
            if not any(same_run(run.span, job.span) for run in runs):
                self._ended.append(job)
                runs.append(job)

    def of(self, job: EndedJob) -> EndedJob:
        """A job with its share of what its nodes drew, where that is known and it does not tell its energy itself."""
        if job.energy is not None or not job.nodes:
            return job
        partition = self._board.view.find(job.scheduler, job.partition)
        per_node, hardware = 1.0, None
        if partition is not None:
            hardware, per_node = partition.state.hardware, partition.processors_per_node
        names = self._board.view.names.of(job.scheduler, job.nodes)
        used: Mapping[str, float] | None = None
        for meter in self.meters:
            drawn, fault = meter.drawn(job.start, job.end)
            known = [drawn[name] for name in names if name in drawn]
            if len(known) < len(job.nodes):
                if fault:
                    _log.warning("job %s of %s: its power is unknown: %s", job.job, job.scheduler, fault)
                continue
            coverages = [Coverage.of(each.covers, hardware) for each in known]
            if len({each.covers for each in coverages}) > 1:
                continue
            joules, used = 0.0, self._used(job) if used is None else used
            for node, each, coverage in zip(job.nodes, known, coverages, strict=True):
                jobs = [_occupant(job, used), *self._others(job, node, used)]
                taken, _ = shares(coverage.drawn(each), jobs, per_node, coverage.idle_watts, job.start, job.end)
                joules += taken[0]
            if joules > 0.0:
                return replace(job, energy=joules, energy_covers=coverages[0].covers)
        return job

    def _used(self, job: EndedJob) -> Mapping[str, float]:
        """Processor times (s) of a job and of those that ended beside it, by number, if its scheduler records them."""
        source = next((each for each in self._sources if each.name == job.scheduler), None)
        if not isinstance(source, KnowsProcessorTime):
            return {}
        beside = {other.job for node in job.nodes for other in self._ended_beside(job, node)}
        try:
            return source.processor_times([job.job, *sorted(beside)])
        except RuntimeError as error:
            _log.info("%s reports no processor times: %s", source.name, error)
            return {}

    def _ended_beside(self, job: EndedJob, node: str) -> list[EndedJob]:
        """The ended jobs that were on a node at the same time as a job."""
        return [
            other
            for other in tuple(self._ended)
            if other.scheduler == job.scheduler
            and not (other.job == job.job and same_run(other.span, job.span))
            and node in other.nodes
            and other.start < job.end
            and job.start < other.end
        ]

    def _others(self, job: EndedJob, node: str, used: Mapping[str, float]) -> Iterator[Occupant]:
        """The other jobs that were on a node of a job's meanwhile, ended or not."""
        beside = self._ended_beside(job, node)
        for other in beside:
            yield _occupant(other, used)
        view, now = self._board.view, self._now()
        for running in view.running.get(job.scheduler, ()):
            begun = now - running.running_for
            if node in running.nodes and not any(_is(running, begun, each) for each in (job, *beside)):
                yield Occupant(begun, math.inf, running.processors[running.nodes.index(node)])


def _is(running: RunningJob | StartedJob, begun: float, ended: EndedJob) -> bool:
    """Whether a job that was listed as running, and began at a time (s), is one that has ended since."""
    if isinstance(running, StartedJob) and running.number:
        return running.number == ended.job and begun < ended.end
    return abs(begun - ended.start) < SAME_MOMENT and set(running.nodes) == set(ended.nodes)


def _occupant(job: EndedJob, used: Mapping[str, float]) -> Occupant:
    """A job on each of its nodes, with its processor time (s) by its number if that is known."""
    count, whole = len(job.nodes), used.get(job.job)
    return Occupant(job.start, job.end, (job.processors or count) / count, None if whole is None else whole / count)
