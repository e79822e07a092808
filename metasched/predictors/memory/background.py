"""Searches that run beside predictions and never block them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Found = TypeVar("Found")
_log = logging.getLogger(__name__)


class BackgroundSearch(Generic[Found]):
    """At most one search at a time, in a thread of its own.

    A search that fails is logged and forgotten: the model in use stays in use.

    >>> search = BackgroundSearch()
    >>> search.start(lambda: 6 * 7)
    True
    >>> search.wait()
    >>> search.take(), search.take()
    (42, None)
    """

    def __init__(self) -> None:
        self._future: Future[Found] | None = None

    @property
    def running(self) -> bool:
        """Whether a search was started whose result has not been used."""
        return self._future is not None

    def start(self, search: Callable[[], Found]) -> bool:
        """Start a search unless one is running; return whether it was started."""
        if self._future is not None:
            return False
        pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metasched-search")
        self._future = pool.submit(search)
        pool.shutdown(wait=False)
        return True

    def take(self) -> Found | None:
        """The result of a search that has finished, once; None while there is none."""
        if self._future is None or not self._future.done():
            return None
        future, self._future = self._future, None
        error = future.exception()
        if error is not None:
            _log.warning("a search failed, its result is lost: %s", error)
            return None
        return future.result()

    def forget(self) -> None:
        """Never take the result of the search that is running, if any: another can start at once."""
        self._future = None

    def wait(self) -> None:
        """Wait until the search that is running, if any, has finished."""
        if self._future is not None:
            self._future.exception()
