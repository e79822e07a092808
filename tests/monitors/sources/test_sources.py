"""Every source keeps the contract: samples where it can, one line where it cannot, never an exception."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field

import pytest

from monitors.forecasters.outlook import Outlook
from monitors.sources.board import Board, Standing, believed
from monitors.sources.contract import Readings, Sample
from monitors.sources.prometheus import Prometheus
from monitors.sources.remote_agent import RemoteAgent
from monitors.sources.slurm import Slurm, parsed
from monitors.sources.this_host import ThisHost
from monitors.sources.trace import RecordedTrace


@dataclass
class Said:
    """A source that says what it is told to."""

    name: str
    samples: tuple[Sample, ...] = ()
    fault: str = ""
    error: Exception | None = field(default=None)

    def read(self) -> Readings:
        if self.error:
            raise self.error
        return Readings(self.samples, self.fault)


@pytest.mark.parametrize(
    "source",
    [
        Prometheus("http://127.0.0.1:9", timeout=1.0),
        RemoteAgent("http://127.0.0.1:9", "token", timeout=1.0),
        Slurm(("no-such-program",)),
        Slurm((sys.executable, "-c", "raise SystemExit(3)")),
        ThisHost(lambda: math.nan, lambda: 1.0),
        ThisHost(lambda: 7.0, lambda: 1.0),
        RecordedTrace([5.0], ["a"], [[0.5]], [[1.0]], clock=lambda: 1.0),
    ],
    ids=lambda source: type(source).__name__,
)
def test_a_source_that_cannot_answer_says_why_in_one_line(source) -> None:
    readings = source.read()
    assert readings.samples == ()
    assert readings.fault
    assert "\n" not in readings.fault


def test_a_trace_shows_what_had_been_seen_by_then_even_past_holes() -> None:
    nan = math.nan
    now = [0.0]
    trace = RecordedTrace([0, 10, 20], ["a", "b"], [[0.1, nan], [nan, 0.5], [0.9, nan]], [[1, 2]] * 3, lambda: now[0])
    assert [sample.node for sample in trace.read().samples] == ["a"]
    now[0] = 19.0
    assert [(s.node, s.time, s.available_cpu) for s in trace.read().samples] == [("a", 0.0, 0.1), ("b", 10.0, 0.5)]


def test_slurm_asks_its_controller_no_more_often_than_allowed() -> None:
    slurm = Slurm((sys.executable, "-c", "import time; print(f'n0|2|{time.time() % 1:.9f}')"), interval=60.0)
    assert slurm.read() is slurm.read()
    assert parsed("", 0.0).fault


def test_the_latest_sample_counts_whichever_source_it_comes_from() -> None:
    old, new = Sample("n0", 90.0, 0.2), Sample("n0", 99.0, 0.8)
    board = Board([Said("first", (new,)), Said("second", (old,))], clock=lambda: 100.0)
    board.refresh()
    assert board.standings()["n0"] == Standing(new, "first", 1.0, "fresh")


def test_a_failing_source_is_shown_and_costs_the_others_nothing() -> None:
    sources = [
        Said("broken", error=RuntimeError("boom")),
        Said("down", fault="no route"),
        Said("up", (Sample("n", 1, 1),)),
    ]
    board = Board(sources, clock=lambda: 2.0)
    board.refresh()
    assert set(board.faults) == {"broken", "down"}
    assert set(board.standings()) == {"n"}


def test_a_node_goes_from_fresh_to_stale_to_unknown() -> None:
    now = [0.0]
    board = Board([Said("s", (Sample("n", 0.0, 0.5),))], clock=lambda: now[0], stale_after=60, unknown_after=900)
    board.refresh()
    states = []
    for now[0] in (0.0, 60.0, 61.0, 900.0, 901.0):
        states.append(board.standings()["n"].state)
    assert states == ["fresh", "fresh", "stale", "stale", "unknown"]


def test_a_sample_from_the_future_is_not_believed() -> None:
    board = Board([Said("s", (Sample("n", 500.0, 0.5),))], clock=lambda: 0.0)
    board.refresh()
    assert not board.standings()
    assert "clocks" in board.faults["s"]


def test_nothing_is_claimed_of_an_unknown_node() -> None:
    fresh = Standing(Sample("n", 0.0, 0.5), "s", 0.0, "fresh")
    outlook = Outlook(0.5, 0.4, 0.6, 0.9)
    assert believed(outlook, fresh, 0.01, 1.0) == outlook


@pytest.mark.parametrize("bad", [("", 0, 0.5, 1), ("n", math.nan, 0.5, 1), ("n", 0, 1.5, 1), ("n", 0, 0.5, -1)])
def test_samples_that_cannot_be_are_refused(bad: tuple[str, float, float, float]) -> None:
    with pytest.raises(ValueError, match="expected"):
        Sample(*bad)
