"""Baseline predictors of run times, and the perfect one as the upper bound."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Iterable, Sequence

from metasched.history.backfilling import outlived
from metasched.history.job_log import JobLog
from metasched.history.replay import Expected


class Requests:
    """Predicts that each job runs until its time limit."""

    learns = False

    def __init__(self, log: JobLog) -> None:
        self._limits: list[float] = log.limits().tolist()
        self._expected: dict[int, float] = {}

    def submitted(self, job: int, now: float) -> Expected:
        """See :class:`~metasched.history.replay.RunTimes`."""
        found = self._expected[job] = self._expect(job)
        return Expected(found, found)

    def left(self, job: int, ran: float) -> Sequence[float]:
        """See :class:`~metasched.history.replay.RunTimes`."""
        return [(self._expected[job] if ran < self._expected[job] else outlived(ran, self._limits[job])) - ran]

    def _expect(self, job: int) -> float:
        return self._limits[job]

    def started(self, job: int, now: float) -> None:
        """See :class:`~metasched.history.replay.RunTimes`."""

    def ended(self, job: int, now: float) -> None:
        """See :class:`~metasched.history.replay.RunTimes`."""

    def reordered(self, ended: int, now: float) -> Iterable[tuple[int, float]]:
        """See :class:`~metasched.history.replay.RunTimes`."""
        return ()


class Clairvoyant(Requests):
    """Predicts the actual run time: the upper bound of any predictor."""

    def __init__(self, log: JobLog) -> None:
        super().__init__(log)
        self._run: list[float] = log.run_time.tolist()

    def _expect(self, job: int) -> float:
        return self._run[job]


class LastTwo(Requests):
    """Predicts the mean of the user's last two ended jobs (Tsafrir, Etsion & Feitelson 2007, Section 4.1).

    The limit if there are no two, and never more than the limit.
    """

    def __init__(self, log: JobLog) -> None:
        super().__init__(log)
        self._users: list[int] = log.labelled("user").tolist()
        self._run: list[float] = log.run_time.tolist()
        self._last: dict[int, deque[float]] = {}

    def _expect(self, job: int) -> float:
        last, limit = self._last.get(self._users[job], ()), self._limits[job]
        return max(min(sum(last) / 2.0, limit), 1.0) if len(last) == 2 else limit

    def ended(self, job: int, now: float) -> None:
        """See :class:`~metasched.history.replay.RunTimes`."""
        self._last.setdefault(self._users[job], deque(maxlen=2)).append(self._run[job])


class Keyed(Requests):
    """Predicts the median of the last nine ended jobs with the same key, and never more than the limit.

    The key is user, limit and processors; user and limit where none of these has ended; then the user; then the limit
    is expected.
    """

    def __init__(self, log: JobLog) -> None:
        super().__init__(log)
        users, processors = log.labelled("user").tolist(), log.processors.tolist()
        self._run: list[float] = log.run_time.tolist()
        self._keys: list[list[tuple[float, ...]]] = [
            [(user, limit, width), (user, limit), (user,)]
            for user, limit, width in zip(users, self._limits, processors, strict=True)
        ]
        self._last: dict[tuple[float, ...], deque[float]] = {}

    def _expect(self, job: int) -> float:
        last = next((self._last[key] for key in self._keys[job] if key in self._last), None)
        return self._limits[job] if last is None else max(min(statistics.median(last), self._limits[job]), 1.0)

    def ended(self, job: int, now: float) -> None:
        """See :class:`~metasched.history.replay.RunTimes`."""
        for key in self._keys[job]:
            self._last.setdefault(key, deque(maxlen=9)).append(self._run[job])
