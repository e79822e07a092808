"""What is known of every node right now: :class:`Board` asks its sources and keeps the latest sample of each node.

A sample degrades with its age: fresh, then stale (its forecast is wider), then unknown (nothing is claimed any more,
and forecasts may only say what was usual). A source that fails costs no answer; it is shown with its fault.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from monitors.forecasters.outlook import Outlook
from monitors.sources.contract import Readings, Sample, Source

State = Literal["fresh", "stale", "unknown"]

#: Ages (s) from which on a sample is stale, and unknown.
STALE_AFTER = 60.0
UNKNOWN_AFTER = 900.0
#: Samples from further in the future than clocks differ are not believed.
_AHEAD = 5.0


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of one node.

    Parameters
    ----------
    sample : the latest one.
    source : who said it.
    age : seconds since it was taken.
    state : what that makes of it.
    """

    sample: Sample
    source: str
    age: float
    state: State


class Board:
    """Asks sources side by side; where several know a node, the latest sample counts.

    Parameters
    ----------
    sources : who to ask.
    clock : seconds since 1970.
    stale_after, unknown_after : ages in seconds.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        clock: Callable[[], float] = time.time,
        stale_after: float = STALE_AFTER,
        unknown_after: float = UNKNOWN_AFTER,
    ) -> None:
        if not 0 < stale_after <= unknown_after:
            raise ValueError(f"ages are {stale_after}, {unknown_after}, expected 0 < stale_after <= unknown_after")
        self._sources, self._clock = tuple(sources), clock
        self._stale, self._unknown = stale_after, unknown_after
        self._latest: dict[str, tuple[Sample, str]] = {}
        self.faults: dict[str, str] = {}

    def refresh(self) -> None:
        """Ask all sources once, at the same time."""
        if not self._sources:
            return
        with ThreadPoolExecutor(len(self._sources)) as pool:
            answers = list(pool.map(_read, self._sources))
        self.faults = {}
        for source, readings in zip(self._sources, answers, strict=True):
            if readings.fault:
                self.faults[source.name] = readings.fault
            for sample in readings.samples:
                self._take(sample, source.name)

    def standings(self) -> dict[str, Standing]:
        """Every node ever seen, with what its latest sample is worth now."""
        now = self._clock()
        return {node: self._standing(sample, source, now) for node, (sample, source) in self._latest.items()}

    def _take(self, sample: Sample, source: str) -> None:
        known = self._latest.get(sample.node)
        if sample.time > self._clock() + _AHEAD:
            self.faults[source] = f"sample of node {sample.node} is from the future: check the clocks"
        elif known is None or sample.time >= known[0].time:
            self._latest[sample.node] = (sample, source)

    def _standing(self, sample: Sample, source: str, now: float) -> Standing:
        age = max(now - sample.time, 0.0)
        state: State = "fresh" if age <= self._stale else "stale" if age <= self._unknown else "unknown"
        return Standing(sample, source, age, state)


def _read(source: Source) -> Readings:
    """A source must not raise; one that does all the same must not cost the others their answers."""
    try:
        return source.read()
    except Exception as error:
        return Readings(fault=f"{type(error).__name__}: {error}")


def believed(outlook: Outlook, standing: Standing, lower: float, upper: float) -> Outlook:
    """A forecast as far as its samples can be believed: where they are unknown, anything in [lower, upper] may be.

    A stale sample needs nothing here: forecasts of means over a run are judged on past spans as far away from their
    latest sample as the present one is, and so are the wider the older that is.

    Examples
    --------
    >>> lost = Standing(Sample("n0", 0.0, 0.5), "trace", age=5000.0, state="unknown")
    >>> believed(Outlook(0.5, 0.4, 0.7, 0.9), lost, 0.01, 1.0)
    Outlook(expected=0.5, low=0.01, high=1.0, level=0.9)
    """
    if standing.state != "unknown":
        return outlook
    return Outlook(outlook.clamped(lower, upper).expected, lower, upper, outlook.level)
