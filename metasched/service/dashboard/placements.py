"""What the dashboard says of the recent placements: where, why, and what became of the job."""

from __future__ import annotations

from dataclasses import dataclass

from metasched.advised_placements import AdvisedPlacement, Outcome
from metasched.node_names import fold
from metasched.placement.explaining.energy_words import energy_words
from metasched.plain_numbers import span
from metasched.records import Placement
from metasched.service.dashboard.formats import count

#: More nodes than this are counted, not named.
MOST_NAMED = 64


@dataclass(frozen=True, slots=True)
class Shown:
    """A placement as the page shows it: ``mark`` is a sign that says the same as ``came``, in one character."""

    made_at: float
    application: str
    problem_size: float
    where: str
    predicted: str
    reason: str
    mark: str
    came: str


def shown(advised: AdvisedPlacement) -> Shown:
    """One placement as the page shows it, with what became of its job."""
    answer, size = advised.answer, advised.question.problem_size
    if answer.placement is None:
        return Shown(
            advised.made_at, advised.application, size, "nowhere", "", answer.message, "·", "no advice"
        )  # fmt: skip
    placement, prediction = answer.placement, answer.placement.prediction
    nodes, wait = placement.resource_set.nodes, placement.queue_wait
    mark, came = _came(placement, advised.outcome, same_clock=advised.same_clock)
    return Shown(
        advised.made_at,
        advised.application,
        size,
        f"{answer.partition or placement.resource_set.cluster}: "
        f"{count(placement.resource_set.processors, 'processor')} on "
        f"{answer.nodes if len(nodes) <= MOST_NAMED else count(len(nodes), 'node')}",
        f"{span(prediction.execution_time)} "
        f"({span(prediction.interval.low)} to {span(prediction.interval.high)})"
        + (f" after {span(wait)} in the queue" if wait > 0 else "")
        + "".join(f"; {words}" for words in filter(None, [energy_words(placement)])),
        placement.reason,
        mark,
        came,
    )


def _came(placement: Placement, outcome: Outcome | None, *, same_clock: bool) -> tuple[str, str]:
    if outcome is None:
        return "…", "not finished, or not reported"
    took = span(outcome.execution_time)
    if outcome.exit_status != 0:
        return "✕", f"failed after {took} (exit status {outcome.exit_status})"
    if not placement.resource_set.same_place(outcome.nodes, outcome.processors):
        names = outcome.nodes
        where = fold(names) if len(names) <= MOST_NAMED else count(len(names), "node")
        return "↷", f"{took} elsewhere, on {where or 'unknown nodes'}"
    if not same_clock:
        return "↷", f"{took} at another clock"
    off = 100.0 * (placement.prediction.execution_time / outcome.execution_time - 1.0)
    mark, side = ("✓", "inside") if placement.prediction.interval.holds(outcome.execution_time) else ("≠", "outside")
    return mark, f"{took}, {side} the interval; predicted {off:+.0f} %"
