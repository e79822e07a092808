"""Advises whether running jobs should move, from the live view: jobs of schedulers, or described ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from metasched.jobs import LONGEST_COMMENT, Mark, moved_comment, read_mark
from metasched.json_numbers import finite
from metasched.node_names import fold
from metasched.placement.clusters.constraints import unfold_names
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.running_jobs import RunningJob, StartedJob
from metasched.placement.moving.decision import Costs
from metasched.placement.moving.elsewhere import Mover, RunningAdvice, advise_running
from metasched.predictors.abilities import all_under, with_usual_threads
from metasched.predictors.contract import Predictor
from metasched.records import DEFAULT_SETTINGS, InputError, Settings
from metasched.service.advice.advisor import Placer
from metasched.service.configuration import Moving
from metasched.service.schemas import RunningIn
from metasched.service.state.live_clusters import View, runner_of
from metasched.service.state.models import Models


class Observed(Protocol):
    """Knows the loads of some time."""

    def __call__(
        self, scheduler: str, nodes: tuple[str, ...], start: float, end: float, own: float = 0.0
    ) -> tuple[float, float]:
        """The least averages of CPU (a fraction) and bandwidth (Mbit/s) of nodes in a time, NaN where not known.

        Parameters
        ----------
        scheduler : whose nodes they are.
        nodes : their names.
        start, end : of the time (s since 1970).
        own : processes, by the processors of a node, of the job whose load is none to itself.
        """


@dataclass(frozen=True, slots=True)
class Moved:
    """The advice for a running job, with the job.

    Parameters
    ----------
    job : as its scheduler tells of it, or the question.
    mark : what it is a run of.
    partition : where it runs.
    advice : whether it should move.
    """

    job: StartedJob
    mark: Mark
    partition: Partition
    advice: RunningAdvice

    def as_dict(self) -> dict[str, Any]:
        """The advice as the answer to a question about the job shows it, times in s."""
        decision, placement = self.advice.decision, self.advice.placement
        document: dict[str, Any] = {
            "job": self.job.number,
            "scheduler": self.partition.scheduler,
            "application": self.mark.application,
            "problem_size": self.mark.problem_size,
            "cluster": self.partition.state.name,
            "nodes": fold(self.job.nodes),
            "processors": sum(self.job.processors),
            "running_for": self.job.running_for,
            "available_cpu": self.advice.available_cpu,
            "available_bandwidth": self.advice.available_bandwidth,
            "move": decision.move,
            "done": decision.done,
            "stay": decision.stay,
            "leave": decision.leave,
            "gain": decision.gain,
            "doubt": decision.doubt,
            "costs": {name: getattr(decision.costs, name) for name in ("checkpoint", "transfer", "restart")},
            "why": decision.why,
            "placement": None if placement is None else placement.as_dict(),
            "warnings": list(self.advice.warnings),
        }
        written: dict[str, Any] = finite(document)
        return written


class RunningAdvisor:
    """Advises running jobs.

    Parameters
    ----------
    placer : knows the loads to come and who shares with whom.
    models : predictors.
    observed : tells the loads that nodes had.
    moving : what moves cost where a job does not say.
    """

    def __init__(self, placer: Placer, models: Models, observed: Observed, moving: Moving) -> None:
        self._placer, self._models, self._observed, self._moving = placer, models, observed, moving

    def asked(self, asked: RunningIn, view: View, now: float, sees: Callable[[str], bool]) -> Moved | None:
        """The answer to a question; None if no such job of a user that the client may see is known.

        Raises
        ------
        InputError
            When it contradicts itself, or names what is not known here.
        """
        if asked.job and asked.settings != DEFAULT_SETTINGS:
            raise InputError(f"{asked.settings.text} is given with a job, whose scheduler tells its settings")
        if asked.job:
            found = next(
                (each for each in view.started(asked.scheduler) if each.number == asked.job and sees(each.user)), None
            )
            return None if found is None else self.about(found, view, now, asked=asked)
        return self.about(_described(asked, view), view, now, asked=asked)

    def about(
        self, job: StartedJob, view: View, now: float, *, asked: RunningIn | None = None, within: str = ""
    ) -> Moved:
        """The advice for a running job; if a scheduler is named, the job stays ``within`` its partition.

        Raises
        ------
        InputError
            When it says not what it is a run of, or nothing is known of its application or its nodes; and where nobody
        ``asked``, so that the advice may move the job, when what one of its parameters changes is not known.
        """
        unasked, asked = asked is None, asked or RunningIn(job=job.number)
        mark = read_mark(job.comment) or Mark(job.application, job.problem_size)
        if not mark.application:
            raise InputError(
                f"job {job.number} names no application, expected metasched:app=NAME,n=SIZE in its comment"
            )
        if job.devices:
            has = Settings.of(parameters=dict(job.devices)).text
            raise InputError(f"job {job.number} has {has}, expected one that needs processors alone")
        partition = _partition_of(job, view)
        usable = [
            each
            for each in view.partitions
            if (not asked.partitions or each.name in asked.partitions)
            and (not within or (each.scheduler, each.name) == (within, job.partition))
        ]
        usable = usable if partition in usable else [*usable, partition]
        every = self._models.on(mark.application, usable, job.user)
        if partition.state.name not in every:
            raise InputError(f"no model of {mark.application} on {partition.state.name} yet")
        settings = job.settings
        if not job.number and "threads" not in asked.model_fields_set:
            settings = with_usual_threads(settings, every[partition.state.name])
        known, settings, refused = all_under(every, settings)
        if refused and unasked:
            raise InputError(refused[0])
        own = partition.load_of(max(job.processors, default=0))
        cpu, bandwidth = self._observed(partition.scheduler, job.nodes, now - job.running_for, now, own)
        same = frozenset(each.state.name for each in view.partitions if runner_of(each) == runner_of(partition))
        moved_ago = asked.moved_ago if asked.moved_ago is not None else job.running_for if job.restarted else None
        mover = Mover(
            mark.problem_size, partition.state.name, job.nodes, job.processors, job.running_for,
            max(asked.done, mark.done), moved_ago, None if math.isnan(cpu) else cpu,
            None if math.isnan(bandwidth) else bandwidth, same, job.dedicated, settings,
        )  # fmt: skip
        advice = self._advised(mover, usable, known, mark, self._costs(asked, mark, partition, usable), now)
        return Moved(job, mark, partition, replace(advice, warnings=(*refused, *advice.warnings)))

    def identified(self, view: View, sees: Callable[[str], bool]) -> list[StartedJob]:
        """The running jobs of all schedulers with a known application, of users that a client may see."""
        return [each for each in view.started() if sees(each.user) and (each.application or read_mark(each.comment))]

    def movable(self, view: View, scheduler: str) -> Sequence[StartedJob]:
        """The running jobs of a scheduler whose comment allows to move them, and has room for the note of a move."""
        jobs = [each for each in view.started(scheduler) if each.number and each.comment and not each.devices]
        return [
            each
            for each in jobs
            if (mark := read_mark(each.comment)) and mark.checkpoint is not None and _has_room(each.comment)
        ]

    def _advised(
        self,
        mover: Mover,
        usable: list[Partition],
        known: Mapping[str, Predictor],
        mark: Mark,
        costs: Callable[[str], Costs],
        now: float,
    ) -> RunningAdvice:
        able = [each for each in usable if each.state.name in known]
        running, notes = self._placer.running(able)
        gone = {name: _without(jobs, mover) for name, jobs in running.items()}
        loads = self._placer.loads(now)
        contention = self._placer.contention(able, gone, known, mark.problem_size, notes, loads) if running else None
        return advise_running(
            mover, [each.state for each in able], known, costs, loads=loads, contention=contention,
            constraints=self._placer.demands.get(mark.application),
        )  # fmt: skip

    def _costs(
        self, asked: RunningIn, mark: Mark, home: Partition, usable: Sequence[Partition]
    ) -> Callable[[str], Costs]:
        runners = {each.state.name: runner_of(each) for each in usable}
        checkpoint = asked.checkpoint if asked.checkpoint is not None else mark.checkpoint or 0.0
        restart = self._moving.restart if asked.restart is None else asked.restart

        def costs(name: str) -> Costs:
            # Partitions of one scheduler share their files.
            far = runners[name] != runner_of(home)
            return Costs(checkpoint, 8.0 * asked.data / asked.bandwidth if far else 0.0, restart)

        return costs


def _without(jobs: tuple[RunningJob, ...], mover: Mover) -> tuple[RunningJob, ...]:
    """The jobs but the one that would move: of those on its nodes the one that is most like it."""
    alike = [place for place, each in enumerate(jobs) if set(each.nodes) == set(mover.nodes)]
    if not alike:
        return jobs
    away = [(jobs[place].processors != mover.processors, abs(jobs[place].running_for - mover.elapsed))
            for place in alike]  # fmt: skip
    itself = alike[away.index(min(away))]
    return (*jobs[:itself], *jobs[itself + 1 :])


def _described(asked: RunningIn, view: View) -> StartedJob:
    """The job that a question describes."""
    if not (asked.application and asked.problem_size and asked.nodes and asked.running_for is not None):
        raise InputError("expected a job, or its application, problem_size, nodes and running_for")
    nodes = tuple(sorted(unfold_names(asked.nodes, "nodes")))
    if asked.processors is not None and asked.processors < len(nodes):
        raise InputError(f"processors is {asked.processors}, expected at least one on each of {len(nodes)} nodes")
    each, more = divmod(asked.processors or len(nodes), len(nodes))
    taken = tuple(each + (index < more) for index in range(len(nodes)))
    home = next((each for each in view.partitions if set(nodes) <= set(each.state.nodes)), None)
    mine = next((job for job in (view.running_on(home) if home else ()) if set(job.nodes) == set(nodes)), None)
    dedicated = bool(home and home.scheduler) or (mine is not None and mine.dedicated)
    return StartedJob(
        nodes, taken, asked.running_for, asked.application, asked.problem_size, dedicated, settings=asked.settings
    )


def _partition_of(job: StartedJob, view: View) -> Partition:
    """Where a job runs: its own partition, else the first that holds its nodes."""
    holding = [each for each in view.partitions if set(job.nodes) <= set(each.state.nodes)]
    if not holding:
        raise InputError(f"no known partition contains the nodes {fold(job.nodes)}")
    return next((each for each in holding if each.name == job.partition), holding[0])


def _has_room(comment: str) -> bool:
    """Whether the comment of a job can note a move, so that it is understood afterwards."""
    noted = moved_comment(comment, "0" * 32, 0.0)
    return len(noted.encode()) <= LONGEST_COMMENT and read_mark(noted) is not None
