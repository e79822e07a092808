"""Running jobs on the dashboard, whether they should move, and the moves that were made."""

from __future__ import annotations

from dataclasses import dataclass

from metasched.jobs import read_mark
from metasched.node_names import fold
from metasched.placement.clusters.running_jobs import StartedJob
from metasched.plain_numbers import span
from metasched.records import InputError
from metasched.service.daemon import Daemon
from metasched.service.dashboard.formats import count
from metasched.service.dashboard.placements import MOST_NAMED
from metasched.service.learning.moves import Made


@dataclass(frozen=True, slots=True)
class Running:
    """A job that runs, as the page shows it: ``running_for`` in seconds, ``moves`` whether it should."""

    job: str
    application: str
    problem_size: float
    where: str
    running_for: float
    moves: bool
    advice: str
    why: str


@dataclass(frozen=True, slots=True)
class Moved:
    """A move as the page shows it: ``mark`` is a sign that says the same as ``came``, in one character."""

    made_at: float
    job: str
    application: str
    problem_size: float
    went: str
    why: str
    mark: str
    came: str


def running(job: StartedJob, daemon: Daemon, now: float) -> Running:
    """A running job with its advice, or the reason why there is none.

    Parameters
    ----------
    job : of the view.
    daemon : that advises.
    now : the time (s).
    """
    mark = read_mark(job.comment)
    application, size = (job.application, job.problem_size) if mark is None else (mark.application, mark.problem_size)
    where = _place(job.partition, job.nodes)
    try:
        found = daemon.running_advisor.about(job, daemon.clusters.view, now)
    except InputError as error:
        return Running(job.number, application, size, where, job.running_for, False, "no advice", str(error))
    decision, placement = found.advice.decision, found.advice.placement
    if not decision.move or placement is None:
        return Running(job.number, application, size, where, job.running_for, False, "stay", decision.why)
    chosen = placement.resource_set
    to = _place(chosen.cluster, chosen.nodes)
    return Running(job.number, application, size, where, job.running_for, True, f"move to {to}", decision.why)


def moved(made: Made) -> Moved:
    """A move of a job, with its outcome."""
    advice, answer = made.advice, made.advice.answer
    move = answer.move
    went = "" if move is None else f"{move.cluster}: {move.nodes} → {answer.partition}: {answer.nodes}"
    why = answer.message.partition(": ")[2] or answer.message
    mark, came = _came(made)
    return Moved(
        advice.made_at, advice.question.job, advice.application, advice.question.problem_size, went, why, mark, came
    )


def _came(made: Made) -> tuple[str, str]:
    outcome = made.advice.outcome
    if outcome is None:
        return "…", "not finished, or not reported"
    if made.paid is None or made.taken is None or made.staying is None:
        return "✕", "failed, or the time without the move is unknown"
    saved, took = made.staying - made.taken, f"done {span(made.taken)} after the move"
    if made.paid:
        return "✓", f"worthwhile: {took}, {span(saved)} sooner"
    return "≠", f"not worthwhile: {took}, {span(-saved)} later"


def _place(name: str, nodes: tuple[str, ...]) -> str:
    return f"{name}: {fold(nodes) if len(nodes) <= MOST_NAMED else count(len(nodes), 'node')}"
