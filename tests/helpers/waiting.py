"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def until(
    holds: Callable[[], Any],
    timeout: float = 180.0,
    why: object = "waited in vain",
    *,
    pause: float = 0.02,
    despite: type[Exception] | None = None,
) -> Any:
    """What a condition returns once it holds, asked after each pause (s); an error where it does not in time (s).

    Where it raises ``despite`` it does not hold yet.
    """

    def asked() -> Any:
        with suppress(*filter(None, [despite])):
            return holds()
        return None

    end = time.monotonic() + timeout
    while not (found := asked()):
        assert time.monotonic() < end, why
        time.sleep(pause)
    return found
