"""What the dashboard says of the recent placements: where, why, and what became of the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metasched.placement.names import fold
from metasched.service.dashboard.words import count, seconds
from metasched.store.placements import Advice

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


def shown(advice: Advice) -> Shown:
    """One placement."""
    answer, size = advice.answer, float(advice.question.get("problem_size", 0.0))
    if not answer.get("placed"):
        why = str(answer.get("message", ""))
        return Shown(advice.made_at, advice.application, size, "nowhere", "", why, "·", "nothing advised")
    placement = answer["placement"]
    interval = placement["interval"]
    wait = placement.get("queue_wait", 0.0)
    mark, came = _came(answer, advice.outcome)
    return Shown(
        advice.made_at,
        advice.application,
        size,
        f"{answer['partition'] or placement['cluster']}: {count(placement['processors'], 'processor')} on "
        f"{answer['nodes'] if len(placement['nodes']) <= MOST_NAMED else count(len(placement['nodes']), 'node')}",
        f"{seconds(placement['execution_time'])} ({seconds(interval['low'])} to {seconds(interval['high'])})"
        + (f" after {seconds(wait)} in the queue" if wait > 0 else ""),
        str(placement["reason"]),
        mark,
        came,
    )


def _came(answer: Any, outcome: Any) -> tuple[str, str]:
    if outcome is None:
        return "…", "not ended yet, or not heard of"
    took = seconds(outcome["execution_time"])
    if outcome["exit_status"] != 0:
        return "✕", f"failed after {took} (exit status {outcome['exit_status']})"
    placement, actual = answer["placement"], outcome["execution_time"]
    same = set(placement["nodes"]) == set(outcome["nodes"]) and placement["processors"] == outcome["processors"]
    if not same:
        names = outcome["nodes"]
        where = fold(names) if len(names) <= MOST_NAMED else count(len(names), "node")
        return "↷", f"{took} elsewhere, on {where or 'unknown nodes'}"
    off = 100.0 * (placement["execution_time"] / actual - 1.0)
    inside = placement["interval"]["low"] <= actual <= placement["interval"]["high"]
    return (
        ("✓", f"{took}, inside the interval; predicted {off:+.0f} %")
        if inside
        else ("≠", f"{took}, outside the interval; predicted {off:+.0f} %")
    )
