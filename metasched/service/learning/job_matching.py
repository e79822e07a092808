"""Which placement a job was advised, where its comment does not say: in shadow mode nothing about a job is changed.

The hook is asked while the job is being submitted, before it has a number. What it saw then is kept with the placement,
and the job is known by it when it has ended: scheduler, user and job name, what stated the problem size, which is its
comment, a number, or the digests of its script and of its command line, the number of processes, and the moment of
submission, which schedulers tell to the second, by their own clock; and its number, where its scheduler gave it one
before it asked. The order in which jobs end says nothing. Where several placements fit, as when a loop submits the same
job many times, which of them was the job's stays open; what the job was is known if they all say the same, and else
nothing is.
"""

from __future__ import annotations

import math
from collections import deque
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
#: By so many of its last questions the clock of a scheduler's hooks is known: some of them come late.
TOLD_BY = 8


class Askers:
    """Users and names of the jobs that placements were asked for: jobs of others need not be searched."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], None] = {}
        self._offsets: dict[str, deque[float]] = {}

    def note(self, question: Ask, made_at: float) -> None:
        """Remember for which user and job name a placement was asked for, and made at a time (s)."""
        if question.asked_at is not None and len(self._offsets) <= MOST_ASKERS:
            offsets = self._offsets.setdefault(question.scheduler, deque(maxlen=TOLD_BY))
            offsets.append(question.asked_at - made_at)
        asker = (question.scheduler, question.user, question.name)
        self._known.pop(asker, None)
        self._known[asker] = None
        if len(self._known) > MOST_ASKERS:
            del self._known[next(iter(self._known))]

    def know(self, job: EndedJob) -> bool:
        """Whether a placement was ever asked for a job of this user and name."""
        return (job.scheduler, job.user, job.name) in self._known

    def clock_offset(self, scheduler: str) -> float:
        """By how much the clock of a scheduler's hooks is ahead of the daemon's (s); 0 where they do not tell."""
        return max(tuple(self._offsets.get(scheduler, ())), default=0.0)


def match(job: EndedJob, mark: Mark | None, advised: Iterable[AdvisedPlacement]) -> Mark | None:
    """What a job was, with its placement where that is certain; None where it is not known.

    Parameters
    ----------
    job : an ended job.
    mark : what its comment says, or else the numbers that it states; None where these say nothing.
    advised : placements made about the time when it was submitted, or its siblings were.

    Examples
    --------
    >>> from metasched.advised_placements import Answer
    >>> ask = Ask(application="cg", problem_size=900, processors=[4], scheduler="c8", user="7", name="cg.sh")
    >>> answers = [Answer(id=uid, mode="shadow", steer="nodes", placed=False, message="") for uid in ("0a", "0b", "0c")]
    >>> early, late, last = (AdvisedPlacement(at, ask, each) for at, each in zip((90.2, 100.4, 100.8), answers))
    >>> job = EndedJob("c8", "12", "", "p", ("n0",), 4, 130.0, 140.0, 0, user="7", name="cg.sh", submitted=100.0)
    >>> match(job, None, [early, late]).placement
    '0b'
    >>> match(job, None, [late, last]).placement is None
    True
    """
    made = {each.uid: each for each in advised}
    fitting = [each for each in made.values() if _fits(each, job, mark)]
    found = [mark_of(each) for each in fitting]
    if len(found) == 1 and _its_own(fitting[0], job, made.values()):
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


def _its_own(advised: AdvisedPlacement, job: EndedJob, made: Iterable[AdvisedPlacement]) -> bool:
    """Whether the one placement that fits a job is no other's: each of its siblings that it fits has another one.

    Of two equal jobs the hook of one may have got no answer in time.
    """
    rivals = []
    for each in job.siblings:
        rival = replace(job, job=each.job, comment=each.comment, processors=each.processors, submitted=each.submitted,
                        command=each.command)  # fmt: skip
        mark = read_mark(rival.comment)
        if _fits(advised, rival, mark, script_known=False):
            rivals.append((rival, mark))
    others = (each for each in made if each is not advised)
    return not rivals or len(rivals) <= sum(
        any(_fits(each, rival, mark, script_known=False) for rival, mark in rivals) for each in others
    )


def _fits(advised: AdvisedPlacement, job: EndedJob, mark: Mark | None, *, script_known: bool = True) -> bool:
    asked, theirs = advised.question, mark_of(advised)
    asked_at = asked.asked_at or advised.made_at
    return (
        job.submitted is not None
        and job.submitted - AFTER <= asked_at < job.submitted + BEFORE
        and (asked.scheduler, asked.user, asked.name) == (job.scheduler, job.user, job.name)
        and asked.job in ("", job.job)
        and (not script_known or asked.script in ("", job.script))
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
