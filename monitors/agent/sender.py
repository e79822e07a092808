"""From the spool to the daemon: :class:`Sender` posts batches and waits longer, and at random, after each failure."""

from __future__ import annotations

import json
import logging
import math
import random
import time
from collections import deque
from collections.abc import Callable
from itertools import takewhile

from monitors.agent.posting import post
from monitors.agent.spool import Spool
from monitors.http_exchange import Answer
from monitors.one_line import one_line
from monitors.sources.contract import Sample

_log = logging.getLogger(__name__)

#: Samples in one request.
BATCH = 500
#: Where the daemon takes loads in.
PATH = "/v1/loads"
#: First and longest wait after failures (s).
FIRST_WAIT, LONGEST_WAIT = 2.0, 300.0
#: Statuses of batches that can never be accepted: sending one again unchanged would block all later ones.
_NEVER = (400, 413, 422)
#: The status of samples for whose node the token does not speak.
FORBIDDEN = 403


class Sender:
    """Empties a spool into a daemon.

    Parameters
    ----------
    spool : where samples wait.
    daemon : URL of the daemon; of several, with spaces between, the next is tried where one does not take samples.
    token : sent as a bearer token.
    timeout : seconds to wait for an answer.
    clock : monotonic seconds.

    Attributes
    ----------
    failures : failures in a row.
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
        self._spool, self._urls = spool, deque(each.rstrip("/") + PATH for each in daemon.split())
        self._token, self._timeout, self._clock = token, timeout, clock
        self._not_before = -math.inf
        self.failures = 0
        self._said = ""
        #: The last sample of a name that the node had before, and for which its token does not speak.
        self._former = 0

    def send(self) -> int:
        """Send the stored samples in batches, unless a failure was too recent; return how many the daemon accepted."""
        taken, most, tried = 0, BATCH, 0
        while self._clock() >= self._not_before and (batch := self._batch(most)):
            status, left_out = self._post([sample for _, sample in batch])
            if status == FORBIDDEN and self._renamed(*batch[-1]):
                continue
            if status is None or (status >= 300 and status not in _NEVER):
                self._urls.rotate(-1)
                tried += 1
                if tried % len(self._urls):
                    continue
                self._failed(status)
                break
            if status in _NEVER and len(batch) > 1:
                most = len(batch) // 2  # close in on the one that it is about, and lose no other
                continue
            if status in _NEVER:
                _log.error("the daemon rejects a sample: HTTP %d, %s", status, batch[0][1])
            else:
                taken += len(batch) - left_out
            self._spool.forget(batch[-1][0])
            self.failures, most = 0, min(2 * most, BATCH)
        return taken

    def _batch(self, most: int) -> list[tuple[int, Sample]]:
        """The oldest samples that wait, all of one node: a node may have been given another name meanwhile."""
        batch = self._spool.oldest(most, self._former)
        if not batch and self._former:  # of a spool that was set aside
            self._former = 0
            batch = self._spool.oldest(most)
        return list(takewhile(lambda item: item[1].node == batch[0][1].node, batch))

    def _renamed(self, number: int, sample: Sample) -> bool:
        """Whether samples of another name wait behind one whose node the token does not speak for: these go first then.

        When the daemon takes later ones, the token is the right one, and those before them are dropped with them.
        """
        behind = self._spool.oldest(1, number, sample.node)
        if behind:
            self._former = behind[0][0] - 1
            lost = f"samples of {sample.node}, a name before, are dropped when later ones are accepted"
            _log.error("HTTP %d%s: %s", FORBIDDEN, self._said, lost)
        return bool(behind)

    def _post(self, samples: list[Sample]) -> tuple[int | None, int]:
        """Status of the answer, None if there was none, and the number of samples that were refused."""
        triples = [[round(s.time, 3), round(s.available_cpu, 4), round(s.available_bandwidth, 3)] for s in samples]
        message = {"node": samples[0].node, "samples": triples}
        try:
            answer = post(self._urls[0], self._token, message, self._timeout)
        except (OSError, ValueError) as error:
            _log.debug("no answer from %s: %s", self._urls[0], error)
            self._said = ""
            return None, 0
        self._said = "" if answer.status == 200 else _detail(answer)
        reasons = _refusals(answer) if answer.status == 200 else {}
        if reasons:
            _log.warning("the daemon rejected samples: %s", reasons)
        return answer.status, sum(reasons.values())

    def _failed(self, status: int | None) -> None:
        """Wait up to twice as long as after the failure before, at random: agents that failed together part ways."""
        self.failures += 1
        longest = min(FIRST_WAIT * 2.0 ** min(self.failures - 1, 30), LONGEST_WAIT)
        self._not_before = self._clock() + random.uniform(longest / 2, longest)  # noqa: S311 - no secret
        reason = "no answer" if status is None else f"HTTP {status}{self._said}"
        level = logging.WARNING if self.failures == 1 else logging.DEBUG
        _log.log(level, "%s from %s; %d unsent samples", reason, self._urls[-1], len(self._spool))


def _detail(answer: Answer) -> str:
    """The reason that the daemon gives, in brackets; empty where there is none."""
    try:
        return f" ({one_line(json.loads(answer.body)['detail'], 200)})"
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def _refusals(answer: Answer) -> dict[str, int]:
    """The numbers of refused samples of an accepted batch, by reason."""
    try:
        refused = json.loads(answer.body)["refused"]
        return {str(reason)[:60]: int(count) for reason, count in refused.items() if int(count) > 0}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
