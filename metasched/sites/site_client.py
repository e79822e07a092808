"""Asks the daemons of all sites at the same time, each within its deadline, whatever they do: :class:`SiteClient`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any

from metasched.client.connection import ask
from metasched.records import InputError
from metasched.sites.settings import SiteTable
from monitors.one_line import one_line

#: Bytes of a site's answer that are read at most.
MOST = 1 << 22
#: How much longer than the longest deadline all answers are waited for (s): the last ones have to be read.
GRACE = 0.2
#: Questions to one site that may be open at the same time.
MOST_OPEN = 16


@dataclass(frozen=True, slots=True)
class SiteAnswer:
    """The answer of a site and its response time (s); ``why`` is the reason if there is none."""

    answer: Any = None
    seconds: float = 0.0
    why: str = ""


def ask_site(table: SiteTable, method: str, path: str, document: Any = None, timeout: float | None = None) -> Any:
    """Ask one site and return its answer.

    Parameters
    ----------
    table : the site.
    method, path, document : of the request.
    timeout : how long it may take (s), the site's deadline where None.

    Raises
    ------
    RuntimeError, InputError : when the site does not answer in time or soundly, or refuses the question.
    """
    token = None
    if table.token_file is not None:
        try:
            token = table.token_file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise RuntimeError(f"its token cannot be read: {error}") from None
    seconds = table.deadline if timeout is None else min(timeout, table.deadline)
    verify: str | bool = True if table.ca_file is None else str(table.ca_file)
    return ask(table.url, method, path, document, token=token, verify=verify, timeout=seconds, most=MOST)


class SiteClient:
    """Asks sites, each in its own thread; after the deadline the caller does not wait for it.

    Parameters
    ----------
    ask : asks one site, as :func:`ask_site` does.
    """

    def __init__(self, ask: Callable[..., Any]) -> None:
        self.ask = ask
        self._lock = Lock()
        #: Threads that have not come back from each site: one that hangs must not collect more and more of them.
        self._open: dict[str, int] = {}

    def ask_all(
        self, tables: Sequence[SiteTable], questions: Mapping[str, tuple[str, str, Any]], within: float
    ) -> dict[str, SiteAnswer]:
        """The answers of all sites, within their deadlines.

        Parameters
        ----------
        tables : the sites.
        questions : method, path and document of the request for each, by name.
        within : how long all may take together (s).
        """
        ends = time.monotonic() + min(within, max((each.deadline for each in tables), default=0.0)) + GRACE
        heard: dict[str, SiteAnswer] = {}
        threads = []
        for table in tables:
            with self._lock:
                if self._open.get(table.name, 0) >= MOST_OPEN:
                    heard[table.name] = SiteAnswer(why="it has not answered earlier questions yet")
                    continue
                self._open[table.name] = self._open.get(table.name, 0) + 1
            work = (table, questions[table.name], within, heard)
            threads.append(Thread(target=self._one, args=work, name=f"site {table.name}", daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join(max(ends - time.monotonic(), 0.0))
        silent = SiteAnswer(why="it did not answer in time")
        return {table.name: heard.get(table.name, silent) for table in tables}

    def _one(
        self, table: SiteTable, question: tuple[str, str, Any], within: float, heard: dict[str, SiteAnswer]
    ) -> None:
        began = time.monotonic()
        try:
            answer = self.ask(table, *question, timeout=within)
            heard[table.name] = SiteAnswer(answer, time.monotonic() - began)
        except InputError as error:
            refused = str(error).removeprefix(f"{table.url}: ")
            heard[table.name] = SiteAnswer(why=f"it refuses the question: {one_line(refused)}")
        except Exception as error:
            heard[table.name] = SiteAnswer(why=one_line(str(error)) or type(error).__name__)
        finally:
            with self._lock:
                self._open[table.name] -= 1
