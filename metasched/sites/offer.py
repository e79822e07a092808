"""The offers of a site's daemon for a job, read from its answer, which is fully validated.

A site answers ``POST /v1/rankings`` with the placements that can start on free processors or wait in a known queue,
and, where that is asked for, with the partitions in which the job would have to wait first (``later``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from metasched.placement.explaining.documents import EndsTable, PlacementTable
from metasched.validation import first_error
from monitors.one_line import one_line
from monitors.validated_fields import LenientFields

#: How daemons answer each other; one that answers in another way is not understood.
FORMAT = 1
#: Offers of one site that are compared, and the longest time that one may name (s): a hundred years.
MOST, LONGEST = 64, 3.2e9

#: What could be anything else in a line or a command is no name.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+:/@-]{0,254}", re.ASCII)
Name = Annotated[str, Field(pattern=f"^{_NAME.pattern}$")]
Seconds = Annotated[float, Field(ge=0, le=LONGEST, allow_inf_nan=False)]
RunTime = Annotated[float, Field(gt=0, le=LONGEST, allow_inf_nan=False)]
Processors = Annotated[int, Field(ge=0, le=1_000_000_000)]


class ClusterTable(LenientFields, BaseModel):
    """A cluster or partition of a site as it is now.

    ``free`` are the idle processors, ``processors`` all of them, ``age`` how long ago its scheduler was asked
    (s), null where it has none.
    """

    scheduler: str = ""
    partition: str = ""
    free: Processors
    processors: Processors
    age: Seconds | None = None


class LaterTable(LenientFields, BaseModel):
    """A partition in which the job would have to wait."""

    cluster: Name
    processors: Annotated[int, Field(ge=1, le=1_000_000_000)]
    wait: Seconds
    low: Seconds
    high: Seconds
    execution_time: RunTime
    execution_low: Seconds
    execution_high: Seconds


class AnswerTable(LenientFields, BaseModel):
    """The parts of a site's answer that are read; the rest is passed over."""

    format: int
    version: Annotated[str, Field(max_length=64)] = ""
    placements: Annotated[list[PlacementTable], Field(max_length=1000)] = []
    later: Annotated[list[LaterTable], Field(max_length=1000)] = []
    clusters: Annotated[dict[Name, ClusterTable], Field(max_length=10_000)] = {}
    why: Annotated[str, Field(max_length=10_000)] = ""


@dataclass(frozen=True, slots=True)
class Offer:
    """The completion of a job in one of a site's clusters by the site's prediction, without data transfer (s from now).

    Parameters
    ----------
    site, cluster : where.
    processors : that it would have.
    wait, execution_time : as the site predicts them.
    low, high : the ends of its prediction interval of both together.
    free, capacity : idle processors of the cluster, and all of them.
    age : how long ago the site heard of the jobs there (s), None where it does not say.
    scheduler, partition : in the site's words, empty where there is none.
    lenders : other sites by whose runs the site predicts, since it has few of its own.
    """

    site: str
    cluster: str
    processors: int
    wait: float
    execution_time: float
    low: float
    high: float
    free: int
    capacity: int
    age: float | None = None
    scheduler: str = ""
    partition: str = ""
    lenders: tuple[str, ...] = ()

    @property
    def completion(self) -> float:
        """Wait and execution time together (s)."""
        return self.wait + self.execution_time


def offers_in(answer: Any, site: str) -> tuple[Offer, ...]:
    """The offers in a site's answer, the best of each cluster at once and later.

    Raises
    ------
    ValueError : in one line, where the answer is of another format, is no answer, or offers nothing.

    Examples
    --------
    >>> offers_in({"format": 7}, "east")
    Traceback (most recent call last):
    ValueError: it answers in format 7, expected 1
    """
    if not isinstance(answer, dict):
        raise ValueError("it does not answer a ranking request")
    if not _understood(answer):
        older = "without a format, as older versions do"
        spoken = f"in format {answer['format']!r:.20}" if "format" in answer else older
        raise ValueError(f"it answers {spoken}, expected {FORMAT}")
    try:
        read = AnswerTable.model_validate(answer)
    except ValidationError as error:
        raise ValueError(f"its answer cannot be used: {one_line(first_error(error))}") from None
    found = list(_best_of_each([*_at_once(read, site), *_later(read, site)]))
    if not found:
        raise ValueError(one_line(read.why) or "it has no room for the job")
    return tuple(found[:MOST])


def runs_known(answer: Any) -> int | None:
    """The number of runs of the application that a site has learned, by its answer; None if unknown."""
    runs = answer.get("runs") if _understood(answer) else None
    return runs if type(runs) is int and runs >= 0 else None


def _understood(answer: Any) -> bool:
    """Whether an answer is of the format that is understood here."""
    spoken = answer.get("format") if isinstance(answer, dict) else None
    return type(spoken) is int and spoken == FORMAT


def _at_once(read: AnswerTable, site: str) -> Iterable[Offer]:
    for each in read.placements:
        if not _NAME.fullmatch(each.cluster):
            raise ValueError("its answer cannot be used: a cluster has no valid name")
        low, high = each.interval.low, each.interval.high
        yield _offer(
            read, site, each.cluster, each.processors, each.queue_wait, each.slowdown * each.execution_time,
            each.queue_wait + each.slowdown * (low if low is not None else each.execution_time),
            each.queue_wait + each.slowdown * (high if high is not None else LONGEST),
        )  # fmt: skip


def _later(read: AnswerTable, site: str) -> Iterable[Offer]:
    for each in read.later:
        yield _offer(
            read, site, each.cluster, each.processors, each.wait, each.execution_time,
            each.low + each.execution_low, each.high + each.execution_high,
        )  # fmt: skip


def _offer(
    read: AnswerTable, site: str, cluster: str, processors: int, wait: float, time: float, low: float, high: float
) -> Offer:
    if not (0.0 < time <= LONGEST and wait <= LONGEST):
        raise ValueError("its answer cannot be used: a time is invalid")
    known = read.clusters.get(cluster, ClusterTable(free=processors, processors=processors))
    capacity = max(known.processors, known.free, processors)
    return Offer(
        site, cluster, processors, wait, time, *_ends(low, high), min(known.free, capacity), capacity, known.age,
        _plain(known.scheduler), _plain(known.partition),
    )  # fmt: skip


def _ends(low: float, high: float) -> tuple[float, float]:
    """The ends of an interval (s), the higher one as far away as a site may name."""
    high = min(high, 2 * LONGEST)
    if not 0.0 <= low <= high:
        raise ValueError("its answer cannot be used: an interval is invalid")
    return low, high


def _plain(name: str) -> str:
    return name if _NAME.fullmatch(name) else ""


def _best_of_each(offers: list[Offer]) -> Iterable[Offer]:
    """Of each cluster and number of processors the soonest, the soonest of all first."""
    best: dict[tuple[str, int], Offer] = {}
    for each in sorted(offers, key=lambda offer: offer.completion):
        best.setdefault((each.cluster, each.processors), each)
    return best.values()


class _SiteTable(LenientFields, BaseModel):
    """A site in the answer of a grid's daemon."""

    site: Name
    cluster: Name
    processors: Annotated[int, Field(ge=1, le=1_000_000_000)]
    completion: RunTime
    execution_time: RunTime
    interval: EndsTable
    free: Processors
    capacity: Processors
    age: Seconds | None = None


class _GridTable(LenientFields, BaseModel):
    sites: Annotated[list[_SiteTable], Field(max_length=1000)] = []
    why: Annotated[str, Field(max_length=10_000)] = ""


def offers_of_grid(answer: Any, site: str) -> tuple[Offer, ...]:
    """The offers in the answer of a site that is a grid itself: those of its sites.

    Parameters
    ----------
    answer : the document that it answered at ``POST /v1/sites/rankings``.
    site : its name here.

    Raises
    ------
    ValueError : in one line, as :func:`offers_in` does.
    """
    if not _understood(answer):
        raise ValueError(f"it does not answer as a grid in format {FORMAT}")
    try:
        read = _GridTable.model_validate(answer)
    except ValidationError as error:
        raise ValueError(f"its answer cannot be used: {one_line(first_error(error))}") from None
    found = []
    for each in read.sites[:MOST]:
        low, high = _ends(each.interval.low or 0.0, 2 * LONGEST if each.interval.high is None else each.interval.high)
        capacity = max(each.capacity, each.free, each.processors)
        wait = max(each.completion - each.execution_time, 0.0)
        name = f"{each.site}/{each.cluster}"[:255]
        found.append(
            Offer(site, name, each.processors, wait, each.execution_time, low, high, each.free, capacity, each.age)
        )
    if not found:
        raise ValueError(one_line(read.why) or "it has no room for the job")
    return tuple(found)
