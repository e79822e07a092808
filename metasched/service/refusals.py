"""Errors that refuse a valid request: not now, or too many requests. The client may send it again."""

from __future__ import annotations


class NotNowError(RuntimeError):
    """The daemon cannot accept the request now, 503: another daemon leads, or the clock is in doubt."""


class TooMuchError(RuntimeError):
    """A client sends more than its share, 429; there is room again after a wait (s)."""

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait
