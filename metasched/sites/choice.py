"""One ranking of the offers of all sites: when the job would be done where, with the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metasched.plain_numbers import number_of, span
from metasched.sites.data import Transfer
from metasched.sites.offer import Offer
from metasched.sites.pending import PendingJob, pending_wait
from metasched.sites.trust import Trust

#: Sites whose completions differ by less than this share of the earliest are equal: jobs go to them in turn.
TIE = 0.02


@dataclass(frozen=True, slots=True)
class Known:
    """The known state of a site besides its offers.

    Parameters
    ----------
    trust : how far its forecasts are believed.
    sent : jobs that were sent there.
    last : how long ago the last one was (s), None where there was none.
    warnings : about its answer.
    """

    trust: Trust = field(default_factory=Trust)
    sent: Sequence[PendingJob] = ()
    last: float | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SitePlacement:
    """When a job would be done at a site (s from now).

    Parameters
    ----------
    offer : what the site says.
    pending : what jobs add that were sent there and that it does not know of yet (s).
    transfer : of the job's data.
    trust : what the site's forecast is multiplied by.
    warnings : about the site's answer.
    """

    offer: Offer
    pending: float
    transfer: Transfer
    trust: Trust
    warnings: tuple[str, ...] = ()

    @property
    def predicted(self) -> float:
        """Wait and execution time by the site's prediction, after the jobs that it does not know yet (s)."""
        return self.offer.wait + self.pending + self.offer.execution_time

    @property
    def completion(self) -> float:
        """When the job would be done, as far as the site is believed, its data brought first (s)."""
        return self.transfer.counted + self.trust.multiplier * self.predicted

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of an interval of the completion: the site's own, as wide as its misses (s).

        The completion is in it also where a few outcomes are so far off that their mean is above nearly all of them.
        """
        low, high = self.trust.low * (self.offer.low + self.pending), self.trust.high * (self.offer.high + self.pending)
        expected = self.trust.multiplier * self.predicted
        return self.transfer.counted + min(low, expected), self.transfer.counted + max(high, expected)

    @property
    def reason(self) -> str:
        """The parts of the completion, in one line."""
        parts = [
            f"runs {span(self.offer.execution_time)} on {number_of(self.offer.processors, 'processor')} "
            f"of {self.offer.cluster}"
        ]
        parts.append(f"after {span(self.offer.wait)} in the queue" if self.offer.wait else "starts at once")
        if self.pending:
            parts.append(f"{span(self.pending)} for jobs just sent there")
        if self.transfer.seconds:
            parts.append(f"{span(self.transfer.seconds)} to transfer {self.transfer.how}")
        elif self.transfer.how:
            parts.append(self.transfer.how)
        if self.offer.lenders:
            parts.append(f"predicted by runs at {', '.join(self.offer.lenders)}, since it has few of its own")
        if words := self.trust.words():
            parts.append(words)
        return ", ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """The placement as a JSON document."""
        low, high = self.interval
        return {
            "site": self.offer.site, "cluster": self.offer.cluster, "scheduler": self.offer.scheduler,
            "partition": self.offer.partition, "processors": self.offer.processors,
            "completion": self.completion, "interval": {"low": low, "high": high},
            "wait": self.offer.wait, "pending": self.pending, "execution_time": self.offer.execution_time,
            "transfer": self.transfer.seconds, "transfer_counted": self.transfer.counted,
            "trust": {"multiplier": self.trust.multiplier, "outcomes": self.trust.outcomes},
            "free": self.offer.free, "capacity": self.offer.capacity, "age": self.offer.age,
            "lenders": list(self.offer.lenders), "reason": self.reason, "warnings": list(self.warnings),
        }  # fmt: skip


def ranked_sites(
    offers: Iterable[Offer], known: Mapping[str, Known], transfers: Mapping[str, Transfer]
) -> list[SitePlacement]:
    """The best offer of each site, the soonest completion first; of equal ones the site that was chosen longest ago.

    Parameters
    ----------
    offers : of all sites that answered.
    known : what is known of each site.
    transfers : the time to bring the data to each site.

    Examples
    --------
    >>> offers = [
    ...     Offer("east", "e", 4, 0.0, 100.0, 90.0, 110.0, free=8, capacity=16),
    ...     Offer("west", "w", 4, 30.0, 50.0, 70.0, 90.0, free=0, capacity=16),
    ... ]
    >>> from metasched.sites.data import transfers
    >>> from metasched.sites.links import SiteLink
    >>> links = {"east": SiteLink(900.0), "west": SiteLink(600.0)}
    >>> near, far = (transfers(["east", "west"], size, links) for size in (0.0, 5.0))
    >>> [[each.offer.site for each in ranked_sites(offers, {}, there)] for there in (near, far)]
    [['west', 'east'], ['east', 'west']]
    """
    best: dict[str, SitePlacement] = {}
    for offer in offers:
        site = known.get(offer.site, Known())
        found = SitePlacement(offer, pending_wait(offer, site.sent), transfers[offer.site], site.trust, site.warnings)
        if offer.site not in best or found.completion < best[offer.site].completion:
            best[offer.site] = found
    order = sorted(best.values(), key=lambda each: each.completion)
    if not order:
        return []
    bound = order[0].completion * (1.0 + TIE)
    equal = [each for each in order if each.completion <= bound]

    def waited(each: SitePlacement) -> float:
        last = known.get(each.offer.site, Known()).last
        return float("-inf") if last is None else -last

    return sorted(equal, key=waited) + order[len(equal) :]
