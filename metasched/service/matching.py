"""Which placement a job was advised, where its comment does not say: in shadow mode nothing about a job is changed.

The hook is asked while the job is being submitted, before it has a number. So a placement and a job belong together
when their scheduler, user and job name are the same and the job was submitted at the moment the placement was made,
which schedulers tell to the second. Of several that fit, as when a loop submits many, the earliest is taken whose
processors fit too, so that each is taken once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from metasched.store.jobs import EndedJob, Mark, read_mark
from metasched.store.placements import Advice

#: A job's time of submission lies at most so long after its placement was made, and at most a second, which
#: schedulers cut off, before (s).
AFTER, BEFORE = 2.5, 1.0
#: Askers that are remembered at most.
MOST_ASKERS = 100_000


class Askers:
    """Users and names of the jobs that placements were asked for: jobs of others need not be looked into."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], None] = {}

    def note(self, question: Any) -> None:
        """Remember who asked; a question is a mapping as it is kept with a placement."""
        asker = (question.get("scheduler", ""), question.get("user", ""), question.get("name", ""))
        self._known.pop(asker, None)
        self._known[asker] = None
        if len(self._known) > MOST_ASKERS:
            del self._known[next(iter(self._known))]

    def know(self, job: EndedJob) -> bool:
        """Whether a placement was ever asked for a job of this user and name."""
        return (job.scheduler, job.user, job.name) in self._known or (not job.name and bool(self._known))


def match(job: EndedJob, advised: Iterable[Advice]) -> Advice | None:
    """The placement that was advised for a job, among those whose job is not known yet.

    Examples
    --------
    >>> asked = {"scheduler": "c8", "user": "7", "name": "cg.sh", "problem_size": 900.0, "processors": [4]}
    >>> early, late = (Advice(uid, at, "cg", asked, {}) for uid, at in (("0a", 90.2), ("0b", 100.4)))
    >>> job = EndedJob("c8", "12", "", "p", ("n0",), 4, 130.0, 140.0, 0, user="7", name="cg.sh", submitted=100.0)
    >>> match(job, [early, late]).uid
    '0b'
    """
    if job.submitted is None:
        return None
    mark = read_mark(job.comment)
    fitting = [each for each in advised if _fits(each, job, job.submitted, mark)]
    return min(fitting, key=lambda each: (_processors(each) not in (None, job.processors), each.made_at), default=None)


def mark_of(advice: Advice) -> Mark:
    """What the comment of a job would have said, had it been marked."""
    return Mark(advice.application, float(advice.question["problem_size"]), _processors(advice), advice.uid)


def _fits(advice: Advice, job: EndedJob, submitted: float, mark: Mark | None) -> bool:
    asked = advice.question
    return (
        advice.outcome is None
        and submitted - AFTER <= advice.made_at < submitted + BEFORE
        and (asked.get("scheduler"), asked.get("user")) == (job.scheduler, job.user)
        and (not job.name or asked.get("name") == job.name)
        and (mark is None or (advice.application, asked.get("problem_size")) == (mark.application, mark.problem_size))
    )


def _processors(advice: Advice) -> int | None:
    asked = list(advice.question.get("processors") or [])
    return int(asked[0]) if len(asked) == 1 else None
