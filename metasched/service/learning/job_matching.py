"""Which placement a job was advised, where its comment does not say: in shadow mode nothing about a job is changed.

The hook is asked while the job is being submitted, before it has a number. What it saw then is kept with the placement,
and the job is known by it when it has ended: scheduler, user and job name, what stated the problem size, which is its
comment, a number, or the digests of its script and of its command line, the number of processes, and the moment of
submission, which schedulers tell to the second; and its number, where its scheduler gave it one before it asked. The
order in which jobs end says nothing. Where several placements fit, as when a loop submits the same job many times,
which of them was the job's stays open; what the job was is known if they all say the same, and else nothing is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from metasched.advised_placements import AdvisedPlacement, Ask
from metasched.jobs import EndedJob, Mark, read_mark
from metasched.records import Settings

#: A job's time of submission lies at most so long after its placement was made, and at most a second, which
#: schedulers cut off, before (s).
AFTER, BEFORE = 2.5, 1.0
#: Problem sizes differ by no more, in proportion, where they are written with as few digits as hooks write.
ROUNDED = 1e-9
#: Askers that are remembered at most.
MOST_ASKERS = 100_000


class Askers:
    """Users and names of the jobs that placements were asked for: jobs of others need not be searched."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], None] = {}

    def note(self, question: Ask) -> None:
        """Remember for which user and job name a placement was asked for."""
        asker = (question.scheduler, question.user, question.name)
        self._known.pop(asker, None)
        self._known[asker] = None
        if len(self._known) > MOST_ASKERS:
            del self._known[next(iter(self._known))]

    def know(self, job: EndedJob) -> bool:
        """Whether a placement was ever asked for a job of this user and name."""
        return (job.scheduler, job.user, job.name) in self._known


def match(job: EndedJob, mark: Mark | None, advised: Iterable[AdvisedPlacement]) -> Mark | None:
    """What a job was, with its placement where that is certain; None where it is not known.

    Parameters
    ----------
    job : an ended job.
    mark : what its comment says, or else the numbers that it states; None where these say nothing.
    advised : placements made about the time when it was submitted.

    Examples
    --------
    >>> from metasched.advised_placements import Answer
    >>> ask = Ask(application="cg", problem_size=900, processors=[4], scheduler="c8", user="7", name="cg.sh")
    >>> answers = [Answer(id=uid, mode="shadow", steer="nodes", placed=False, message="") for uid in ("0a", "0b")]
    >>> early, late = (AdvisedPlacement(at, ask, each) for at, each in zip((90.2, 100.4), answers))
    >>> job = EndedJob("c8", "12", "", "p", ("n0",), 4, 130.0, 140.0, 0, user="7", name="cg.sh", submitted=100.0)
    >>> match(job, None, [early, late]).placement
    '0b'
    >>> match(job, None, [late, late]).placement is None
    True
    """
    found = [mark_of(each) for each in advised if _fits(each, job, mark)]
    if len(found) == 1:
        return found[0]
    alike = {replace(each, placement=None) for each in found}
    return alike.pop() if len(alike) == 1 else mark


def owns(job: EndedJob, mark: Mark, advised: AdvisedPlacement) -> bool:
    """Whether a placement that a job's comment names was made for a job of its user, scheduler, application and size.

    Examples
    --------
    >>> from metasched.advised_placements import Answer
    >>> ask = Ask(application="cg", problem_size=900, scheduler="c8", user="7")
    >>> advised = AdvisedPlacement(90.2, ask, Answer(id="0a", mode="act", steer="nodes", placed=False, message=""))
    >>> job = EndedJob("c8", "12", "", "p", ("n0",), 4, 130.0, 140.0, 0, user="8")
    >>> owns(job, Mark("cg", 900.0, 4, "0a"), advised)
    False
    """
    asked = advised.question
    return (
        advised.outcome is None
        and (asked.scheduler or advised.answer.scheduler or job.scheduler) == job.scheduler
        and asked.user in ("", job.user)
        and asked.application == mark.application
        and _alike(asked.problem_size, mark.problem_size)
    )


def mark_of(advised: AdvisedPlacement) -> Mark:
    """What the comment of a job would have said, had it been marked."""
    asked = advised.question
    processors = asked.processors[0] if len(asked.processors) == 1 else None
    settings = Settings.of(parameters=asked.parameters)
    return Mark(asked.application, asked.problem_size, processors, advised.uid, settings)


def _fits(advised: AdvisedPlacement, job: EndedJob, mark: Mark | None) -> bool:
    asked, theirs = advised.question, mark_of(advised)
    return (
        job.submitted is not None
        and job.submitted - AFTER <= advised.made_at < job.submitted + BEFORE
        and (asked.scheduler, asked.user, asked.name) == (job.scheduler, job.user, job.name)
        and asked.job in ("", job.job)
        and asked.script in ("", job.script)
        and asked.command in ("", job.command)
        and not (asked.annotated and read_mark(job.comment) is None)
        and not (asked.stated and mark is None)
        and (job.processors is None or theirs.processors in (None, job.processors))
        and (
            mark is None or (theirs.application == mark.application and _alike(theirs.problem_size, mark.problem_size))
        )
    )


def _alike(size: float, other: float) -> bool:
    """Whether two problem sizes are one, of which hooks write ten digits or more."""
    return math.isclose(size, other, rel_tol=ROUNDED)
