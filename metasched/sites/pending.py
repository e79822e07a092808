"""Jobs that were sent to a site and that its answers do not show yet: they count, so that not all go to one site.

Whether an answer shows a job follows from durations alone, the age of what the site knows and the time since the job
was submitted: clocks of sites may be hours apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metasched.placement.clusters.queue_wait import earliest_start
from metasched.sites.offer import Offer

#: For how long a job counts that was not reported as submitted (s), in addition to its data transfer.
RESERVED = 120.0
#: For how long a job counts if a site does not state the age of its answer (s).
UNSEEN = 300.0
#: How much later than a submission a site must have heard of its jobs (s): a scheduler lists a job a moment later.
MARGIN = 1.0


@dataclass(frozen=True, slots=True)
class PendingJob:
    """A job that was sent to a site.

    Parameters
    ----------
    cluster : where in the site.
    processors, execution_time : what it has there, as predicted (s).
    transfer : time that its data was to take (s).
    sent : how long ago the site was chosen for it (s).
    submitted : how long ago it was submitted there (s), None where it was not yet.
    """

    cluster: str
    processors: int
    execution_time: float
    transfer: float
    sent: float
    submitted: float | None = None

    def hidden(self, age: float | None) -> bool:
        """Whether an answer of this age does not show the job yet.

        Parameters
        ----------
        age : how long ago the site heard of its jobs (s), None where it does not say.
        """
        if self.submitted is None:
            return self.sent <= RESERVED + self.transfer
        if age is None:
            return self.submitted <= UNSEEN
        return self.submitted <= age + MARGIN


def pending_wait(offer: Offer, sent: Sequence[PendingJob]) -> float:
    """Additional wait of a job for those that were sent to the same cluster and are not reported yet (s).

    Notes
    -----
    On a cluster without a wait they start on its free processors, first come first served. On one with a wait they are
    ahead in the queue, which all its processors work off.

    Examples
    --------
    >>> offer = Offer("east", "c", 4, 0.0, 60.0, 50.0, 70.0, free=8, capacity=16, age=10.0)
    >>> job = PendingJob("c", 4, 100.0, 0.0, sent=5.0, submitted=5.0)
    >>> pending_wait(offer, [job]), pending_wait(offer, [job, job]), pending_wait(offer, 3 * [job])
    (0.0, 95.0, 95.0)
    """
    hidden = [job for job in sent if job.cluster == offer.cluster and job.hidden(offer.age)]
    if not hidden:
        return 0.0
    left = [(min(job.processors, offer.capacity), _left(job)) for job in hidden]
    if offer.wait > 0.0:
        return sum(processors * seconds for processors, seconds in left) / offer.capacity
    running: list[tuple[int, float]] = []
    waiting: list[tuple[int, float]] = []
    free = offer.free
    for processors, seconds in left:
        if not waiting and processors <= free:
            running.append((processors, seconds))
            free -= processors
        else:
            waiting.append((processors, seconds))
    taken = offer.capacity - offer.free
    # What runs there already is not known one by one: a job wider than what is free would wait for all of it.
    if taken:
        running.append((taken, max(seconds for _, seconds in left)))
    return float(earliest_start(free, running, waiting).at(min(offer.processors, offer.capacity)))


def _left(job: PendingJob) -> float:
    """For how long a job still uses its processors (s)."""
    return max(job.execution_time - (job.submitted or 0.0), 1.0)
