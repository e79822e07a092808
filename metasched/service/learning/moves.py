"""Moves running jobs where that is allowed, and judges each move when its job has ended.

A move is a placement of its own: it is recorded like any other, the job's comment names it, and its outcome is what the
job did from then on. What staying would have taken is predicted with the loads that the old nodes really had since.
"""

from __future__ import annotations

import logging
import math
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from metasched.advised_placements import AdvisedPlacement, Answer, Ask, Move
from metasched.jobs import moved_comment
from metasched.node_names import fold, unfold
from metasched.predictors.abilities import under, understood
from metasched.records import InputError
from metasched.schedulers.contract import MovesJobs
from metasched.service.advice.moving import Moved, Observed, RunningAdvisor
from metasched.service.metrics import Metrics
from metasched.service.state.live_clusters import View
from metasched.service.state.models import Models
from metasched.service.state.write_queue import WriteQueue

_log = logging.getLogger(__name__)

#: Moves that are remembered.
REMEMBERED = 100


@dataclass(frozen=True, slots=True)
class Made:
    """A move that was made.

    Parameters
    ----------
    advice : the placement that it is, with the outcome of its job once that has ended.
    taken, staying : what the job did from then on took, and what it would have taken where it was by the loads that its
        old nodes had since (s); None until that can be said.
    """

    advice: AdvisedPlacement
    taken: float | None = None
    staying: float | None = None

    @property
    def paid(self) -> bool | None:
        """Whether the job was done no later than it would have been; None until that can be said."""
        return None if self.taken is None or self.staying is None else self.taken <= self.staying


class Moves:
    """Moves, and what became of them.

    Parameters
    ----------
    advisor : says which jobs should move.
    writes : where moves are recorded.
    observed : tells the loads that nodes had.
    models : predictors.
    metrics : that count.

    Attributes
    ----------
    paid, regretted : moves whose jobs have ended, by whether they were done sooner than they would have been.
    """

    def __init__(
        self, advisor: RunningAdvisor, writes: WriteQueue, observed: Observed, models: Models, metrics: Metrics
    ) -> None:
        self._advisor, self._writes, self._observed = advisor, writes, observed
        self._models, self._metrics = models, metrics
        self.paid = self.regretted = 0
        self._made: OrderedDict[str, Made] = OrderedDict()
        self._lock = Lock()

    @property
    def made(self) -> list[Made]:
        """The moves that are remembered, the newest first."""
        with self._lock:
            return sorted(self._made.values(), key=lambda each: each.advice.made_at, reverse=True)

    def look(self, source: MovesJobs, view: View, now: float) -> int:
        """Move the job of a scheduler that gains most, of those that should move and allow it; return how many moved.

        One at a time: where it goes the others cannot, and what it leaves may suit one of them.
        """
        found: list[Moved] = []
        for job in self._advisor.movable(view, source.name):
            try:
                moved = self._advisor.about(job, view, now, within=source.name)
            except InputError as error:
                _log.info("job %s of %s is not considered: %s", job.number, source.name, error)
                continue
            if moved.advice.decision.move and moved.advice.decision.gain is not None:
                found.append(moved)
        if not found:
            return 0
        best = max(found, key=lambda each: each.advice.decision.gain or 0.0)
        return int(self._move(source, best, view, now))

    def _move(self, source: MovesJobs, moved: Moved, view: View, now: float) -> bool:
        placement, decision, job = moved.advice.placement, moved.advice.decision, moved.job
        if placement is None:
            return False
        chosen = view.named(placement.resource_set.cluster)
        if chosen is None:
            return False
        uid = secrets.token_hex(16)
        comment = moved_comment(job.comment, uid, decision.done)
        try:
            source.move(job.number, placement.resource_set.nodes, chosen.name, comment)
        except RuntimeError as error:
            self._metrics.moves.labels("failed").inc()
            _log.warning("job %s of %s could not be moved: %s", job.number, source.name, error)
            return False
        nodes = fold(placement.resource_set.nodes)
        answer = Answer(
            id=uid, mode="act", steer="nodes", placed=True,
            message=f"moved to {chosen.name} ({nodes}): {decision.why}",
            scheduler=source.name, partition=chosen.name, nodes=nodes, node_count=len(placement.resource_set.nodes),
            processors=placement.resource_set.processors, placement=placement,
            move=Move(
                cluster=moved.partition.state.name, nodes=fold(job.nodes), processors=placement.resource_set.processors,
                left=1.0 - decision.done, stay=decision.stay, available_cpu=moved.advice.available_cpu,
                available_bandwidth=moved.advice.available_bandwidth, platform=moved.partition.platform,
            ),
        )  # fmt: skip
        settings = moved.mark.settings
        ask = Ask(
            application=moved.mark.application, problem_size=moved.mark.problem_size, scheduler=source.name,
            user=job.user_number, job=job.number, time_limit=job.time_limit,
            processes_per_node=settings.processes_per_node, threads=settings.threads,
            parameters=dict(settings.parameters), frequency=settings.frequency,
        )  # fmt: skip
        advised = AdvisedPlacement(now, ask, answer)
        self._writes.placements([advised])
        self._remember(Made(advised))
        self._metrics.moves.labels("moved").inc()
        _log.info("job %s of %s is moved from %s to %s: %s", job.number, source.name, fold(job.nodes), nodes,
                  decision.why)  # fmt: skip
        return True

    def judge(self, advised: Sequence[AdvisedPlacement]) -> None:
        """Count which moves have paid, as far as that can be said.

        Parameters
        ----------
        advised : placements whose jobs have ended, the oldest first; those that are no moves are passed over.

        Raises
        ------
        StoreError
            When the loads that came cannot be read; then none is counted.
        """
        for made in [self._judged(each, each.answer.move) for each in advised if each.answer.move is not None]:
            self._remember(made)
            if made.paid is None:
                continue
            if made.paid:
                self.paid += 1
            else:
                self.regretted += 1
            self._metrics.moves.labels("paid" if made.paid else "regretted").inc()

    def _remember(self, made: Made) -> None:
        with self._lock:
            self._made[made.advice.uid] = made
            while len(self._made) > REMEMBERED:
                self._made.popitem(last=False)

    def _judged(self, advice: AdvisedPlacement, move: Move) -> Made:
        """A move with what it saved, where its job has ended well and a model tells of its old place."""
        outcome = advice.outcome
        if outcome is None or outcome.exit_status != 0 or outcome.start is None:
            return Made(advice)
        predictor = self._models.predictor(advice.application, move.platform, advice.question.user)
        if predictor is None:
            return Made(advice)
        taken = outcome.start + outcome.execution_time - advice.made_at
        nodes = tuple(unfold(move.nodes, where="nodes"))
        cpu, bandwidth = self._observed(outcome.scheduler, nodes, advice.made_at, advice.made_at + max(taken, 1.0))
        cpu = move.available_cpu if math.isnan(cpu) else cpu
        bandwidth = move.available_bandwidth if math.isnan(bandwidth) else bandwidth
        settings, _ = understood(advice.question.settings, [predictor])
        predictor = under(predictor, settings)
        whole = predictor.expect_many(advice.question.problem_size, move.processors, cpu, bandwidth)
        return Made(advice, taken, move.left * float(whole[0]))
