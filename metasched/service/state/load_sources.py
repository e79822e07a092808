"""The daemon's sources of loads, such as Prometheus: each asked in a thread of its own, so that none stops another."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from threading import Event, Thread
from typing import Any

from metasched.node_names import unfold
from metasched.placement.loads.sampled import Sampled
from metasched.records import InputError
from monitors.one_line import one_line
from monitors.sources.contract import Sample, Source
from monitors.sources.settings import SourceTable

_log = logging.getLogger(__name__)

#: A source that has not answered for this many of its periods is not well.
UNHEARD = 4.0

#: Stores what a source says: its table, the nodes that the table names, its samples, and those that it reported before.
Take = Callable[[SourceTable, frozenset[str], Sequence[Sample], Mapping[str, float]], Sampled]


@dataclass(frozen=True, slots=True)
class SourceReport:
    """How a source does.

    Parameters
    ----------
    name, kind : of the source.
    period : seconds from one answer to the next at most, when all is well.
    answered_at : when it last reported a node that is known here (s); None where it never did.
    newest : time of its newest sample that was taken (s); None where there is none.
    nodes : how many nodes it reported the last time, and may report.
    failures : how often it did not answer, or not soundly.
    fault : what is wrong with its last answer, in one line; empty when nothing is.
    """

    name: str
    kind: str
    period: float
    answered_at: float | None = None
    newest: float | None = None
    nodes: int = 0
    failures: int = 0
    fault: str = ""

    def well(self, now: float) -> bool:
        """Whether it answered within the last few periods."""
        return self.answered_at is not None and now - self.answered_at <= UNHEARD * self.period

    def as_dict(self, now: float) -> dict[str, Any]:
        """The report with ages (s) in place of moments."""
        fields = asdict(self)
        for moment, age in (("answered_at", "age"), ("newest", "sample_age")):
            at = fields.pop(moment)
            fields[age] = None if at is None else now - at
        return fields


class LoadSources:
    """Asks all sources until it is stopped.

    Parameters
    ----------
    tables : the sources.
    take : stores what one says.
    failed : called with a source's name at each failure.
    now : tells the time (s).
    """

    def __init__(
        self,
        tables: Sequence[SourceTable],
        take: Take,
        failed: Callable[[str], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._take, self._failed, self._now = take, failed, now
        self._stop, self._asking = Event(), False
        self._reports: dict[str, SourceReport] = {}
        self._threads: list[Thread] = []
        for table in tables:
            source = table.source()
            name = table.name or source.name
            if name in self._reports:
                raise InputError(f"two sources are called {name}, expected different names")
            own = frozenset(unfold(table.nodes, where=f"source {name}: nodes") if table.nodes else ())
            self._reports[name] = SourceReport(name, table.kind, max(table.period, table.timeout))
            self._threads.append(Thread(target=self._run, args=(name, table, own, source), name=name, daemon=True))

    def start(self) -> None:
        """Begin to ask every source, each in a thread of its own."""
        self._asking = True
        for thread in self._threads:
            thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        """Ask no more; an answer that is still awaited after ``timeout`` seconds is dropped."""
        self._stop.set()
        end = time.monotonic() + timeout
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(end - time.monotonic(), 0.0))

    @property
    def names(self) -> tuple[str, ...]:
        """What the sources are called, whether they are asked or not."""
        return tuple(self._reports)

    def reports(self) -> tuple[SourceReport, ...]:
        """How each source does, in the order of the configuration; none where none is asked, as by who follows."""
        return tuple(self._reports.values()) if self._asking else ()

    def _run(self, name: str, table: SourceTable, own: frozenset[str], source: Source) -> None:
        taken: dict[str, float] = {}
        begin = time.monotonic()
        while not self._stop.wait(max(begin - time.monotonic(), 0.0)):
            begin = time.monotonic() + table.period
            before, report = self._reports[name], self._reports[name]
            try:
                report = self._ask(table, source, own, taken, before)
            except Exception as error:
                report = replace(before, fault=f"{type(error).__name__}: {one_line(error)}")
            if report.fault:
                report = replace(report, failures=report.failures + 1)
                self._failed(name)
                if report.fault != before.fault:
                    _log.warning("%s: %s", name, report.fault)
            elif before.fault:
                _log.info("%s: answers again", name)
            self._reports[name] = report

    def _ask(
        self, table: SourceTable, source: Source, own: frozenset[str], taken: dict[str, float], before: SourceReport
    ) -> SourceReport:
        readings = source.read()
        if self._stop.is_set():
            return before
        found = self._take(table, own, readings.samples, taken)
        taken.update((load.node, load.time) for load in found.loads)
        fault = readings.fault or found.fault
        return replace(
            before,
            answered_at=self._now() if found.nodes else before.answered_at,
            newest=max((load.time for load in found.loads), default=before.newest),
            nodes=found.nodes,
            fault=fault,
        )
