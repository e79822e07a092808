"""From the spool to the daemon: :class:`Sender` posts batches and waits longer, and at random, after each failure."""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable

import requests

from monitors.agent.spool import Spool
from monitors.sources.contract import Sample

_log = logging.getLogger(__name__)

#: Samples in one request.
BATCH = 500
#: Where the daemon takes loads in.
PATH = "/api/v1/loads"
#: First and longest wait after failures (s).
FIRST_WAIT, LONGEST_WAIT = 2.0, 300.0
#: Answers that say the batch itself can never be taken: sending it again would block all after it for ever.
_NEVER = (400, 413, 422)


class Sender:
    """Empties a spool into a daemon.

    Parameters
    ----------
    spool : where samples wait.
    daemon : URL of the daemon.
    token : sent as a bearer token.
    timeout : seconds to wait for an answer.
    clock : monotonic seconds.

    Attributes
    ----------
    failures : failures in a row.
    refused : samples that the daemon said it can never take.
    """

    def __init__(
        self,
        spool: Spool,
        daemon: str,
        token: str,
        *,
        timeout: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spool, self._url = spool, daemon.rstrip("/") + PATH
        self._timeout, self._clock = timeout, clock
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {token}"
        self._not_before = -math.inf
        self.failures = 0
        self.refused = 0

    def send(self) -> int:
        """Send what waits, batch by batch, unless a failure is too fresh; how many samples the daemon took."""
        taken = 0
        while self._clock() >= self._not_before and (batch := self._spool.oldest(BATCH)):
            samples = [sample for _, sample in batch]
            status = self._post(samples)
            if status is None or (status >= 300 and status not in _NEVER):
                self._failed(status)
                break
            if status in _NEVER:
                self.refused += len(samples)
                _log.error("the daemon refuses %d samples for good: HTTP %d", len(samples), status)
            else:
                taken += len(samples)
            self._spool.forget(batch[-1][0])
            self.failures = 0
        return taken

    def _post(self, samples: list[Sample]) -> int | None:
        """Status of the answer; None where there was none."""
        try:
            answer = self._session.post(
                self._url, json={"samples": list(map(document, samples))}, timeout=self._timeout
            )
        except requests.RequestException as error:
            _log.debug("no answer from %s: %s", self._url, error)
            return None
        return answer.status_code

    def _failed(self, status: int | None) -> None:
        """Wait up to twice as long as after the failure before, at random: agents that failed together part ways."""
        self.failures += 1
        longest = min(FIRST_WAIT * 2.0 ** min(self.failures - 1, 30), LONGEST_WAIT)
        self._not_before = self._clock() + random.uniform(longest / 2, longest)  # noqa: S311 - no secret
        reason = "no answer" if status is None else f"HTTP {status}"
        level = logging.WARNING if self.failures == 1 else logging.DEBUG
        _log.log(level, "%s from %s; %d samples wait on disk", reason, self._url, len(self._spool))


def document(sample: Sample) -> dict[str, float | str | None]:
    """A sample as the daemon reads it; an unknown bandwidth is null."""
    bandwidth = None if math.isnan(sample.available_bandwidth) else round(sample.available_bandwidth, 3)
    return {
        "time": round(sample.time, 3),
        "node": sample.node,
        "available_cpu": round(sample.available_cpu, 4),
        "available_bandwidth": bandwidth,
    }
