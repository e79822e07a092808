"""A queue led on: when its jobs start, and when one more would."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.replay.plain_waits import predicted_starts
from metasched.history import queue
from metasched.history.backfilling import Backfilling
from metasched.history.queue import Line, PrecedingJob, QueuedJob

WIDTH = st.integers(1, 6)
TIME = st.floats(1, 500).map(round).map(float)
#: Jobs with two possible run times, or with one.
LEFT = st.lists(TIME, min_size=2, max_size=2).map(tuple) | st.tuples(TIME)


@st.composite
def jobs(draw: Any, *, exact: bool = False, largest: int = 6) -> list[PrecedingJob]:
    """Jobs of a queue; with exact limits each runs for as long as it may."""
    made = []
    for number in range(draw(st.integers(0, largest))):
        left = (draw(TIME),) if exact else draw(LEFT)
        holds = max(left) if exact else max(left) + draw(TIME)
        made.append(PrecedingJob(draw(WIDTH), holds, left, f"{number}"))
    return made


class Bounded(Backfilling):
    """A cluster where only the first jobs in line are considered for backfill."""

    def _fill(self, now: float) -> list[int]:
        begun, patience = [], self._shadow - now
        for job in self.waiting[1 : queue.DEPTH]:
            width, holds, *_ = self.request(job)
            if width <= self.free and (width <= self._extra or holds <= patience):
                self._extra -= width if holds > patience else 0
                self._start(job, now)
                begun.append(job)
        self._changed = False
        return begun


def simulated(free: int, running: list[PrecedingJob], waiting: list[PrecedingJob], which: int) -> dict[int, float]:
    """When jobs would start with one of their possible run times, simulated plainly; the last is the one more job."""
    cluster, left = Bounded(free + sum(job.processors for job in running)), {}
    for number, job in enumerate([*running, *waiting]):
        cluster.submit(number, job.processors, job.holds, number, number)
        left[number] = job.left[which % len(job.left)]
        if number + 1 == len(running):
            cluster.schedule(0.0)
    return predicted_starts(cluster, 0.0, left)


@pytest.mark.parametrize("depth", [1, 3, 200])
@given(data=st.data())
def test_the_wait_of_one_more_job_is_what_a_simulation_with_it_leads_to(data: Any, depth: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue, "DEPTH", depth)
        free, running = data.draw(st.integers(0, 6)), data.draw(jobs())
        most = free + sum(job.processors for job in running)
        waiting = [job for job in data.draw(jobs(largest=9)) if job.processors <= most]
        more = PrecedingJob(data.draw(WIDTH), data.draw(TIME), (77.0,), "more")
        line = Line(free, running, waiting)
        if more.processors > most:
            assert line.wait(more.processors, more.holds) == float("inf")
            return
        alone = [simulated(free, running, waiting, which) for which in range(2)]
        with_it = [simulated(free, running, [*waiting, more], which) for which in range(2)]
        assert line.wait(more.processors, more.holds) == pytest.approx(
            np.mean([starts[len(running) + len(waiting)] for starts in with_it])
        )
        expected = {
            job.number: pytest.approx(np.mean([starts[len(running) + place] for starts in alone]))
            for place, job in enumerate(waiting)
        }
        assert line.starts() == expected


@given(st.integers(0, 6), jobs(), jobs())
def test_no_more_processors_are_held_than_there_are_and_who_fits_starts(
    free: int, running: list[PrecedingJob], waiting: list[PrecedingJob]
) -> None:
    running, waiting = ([replace(job, left=job.left[:1]) for job in each] for each in (running, waiting))
    line = Line(free, running, waiting)
    starts = line.starts()
    assert set(starts) == {job.number for job in waiting if job.processors <= line.processors}
    spans = [(0.0, *job.left, job.processors) for job in running]
    spans += [(starts[each.number], starts[each.number] + each.left[0], each.processors) for each in waiting
              if each.number in starts]  # fmt: skip
    held = [sum(width for begin, end, width in spans if begin <= at < end) for at, _, _ in spans]
    assert max(held, default=0) <= line.processors


@given(st.integers(0, 6), jobs(exact=True), jobs(exact=True), WIDTH, TIME)
def test_where_limits_are_exact_one_more_job_starts_no_later_than_processors_are_free_for_good(
    free: int, running: list[PrecedingJob], waiting: list[PrecedingJob], processors: int, limit: float
) -> None:
    line = Line(free, running, waiting)
    from_on, seconds = line.steps()
    assert from_on[0] == 1
    assert sorted(seconds.tolist()) == seconds.tolist()
    wait = line.wait(processors, limit)
    assert (wait == float("inf")) == (processors > line.processors)
    if processors <= line.processors:
        for_good = max(second for least, second in zip(from_on, seconds, strict=True) if least <= processors)
        assert 0.0 <= wait <= for_good


@given(st.integers(0, 6), jobs(), jobs(), st.integers(1, 40))
def test_the_waits_by_processors_are_the_means_of_those_with_each_possible_run_time(
    free: int, running: list[PrecedingJob], waiting: list[PrecedingJob], processors: int
) -> None:
    def at(line: Line) -> float:
        from_on, seconds = line.steps()
        return float(seconds[np.searchsorted(from_on, processors, side="right") - 1])

    each = [
        Line(free, *([replace(job, left=(job.left[which % len(job.left)],)) for job in group]
                     for group in (running, waiting)))
        for which in range(2)
    ]  # fmt: skip
    assert at(Line(free, running, waiting)) == pytest.approx(np.mean([at(line) for line in each]))


@pytest.mark.parametrize(("most", "which"), [(15, (0, 1, 2, 3, 4)), (9, (0, 2, 4)), (1, (1, 3))])
def test_a_long_queue_is_simulated_with_fewer_of_the_possible_run_times(
    monkeypatch: pytest.MonkeyPatch, most: int, which: tuple[int, ...]
) -> None:
    lefts = [(10.0, 20.0, 40.0, 80.0, 160.0), (7.0,), (1000.0, 600.0, 300.0, 100.0, 2.0)]
    jobs = [PrecedingJob(2, 2000.0, left, str(number)) for number, left in enumerate(lefts)]
    each = [
        Line(0, [replace(jobs[0], left=(lefts[0][k],))], [jobs[1], replace(jobs[2], left=(lefts[2][k],))])
        for k in range(5)
    ]
    monkeypatch.setattr(queue, "MOST", most)
    line = Line(0, jobs[:1], jobs[1:])
    assert line.wait(2, 60.0) == pytest.approx(np.mean([each[k].wait(2, 60.0) for k in which]))
    assert line.starts() == {
        number: pytest.approx(np.mean([each[k].starts()[number] for k in which])) for number in ("1", "2")
    }


def test_what_runs_may_hold_its_processors_as_long_as_its_limit_says() -> None:
    assert QueuedJob("1", frozenset("p"), 4, 600.0, ran=500.0).holds == 100.0
    assert QueuedJob("1", frozenset("p"), 4, 600.0, ran=700.0).holds == 1.0
    assert QueuedJob("1", frozenset("p"), 4, None).holds == 86_400.0
    assert QueuedJob("1", frozenset("p"), 4, None, ran=200_000.0).holds == 86_400.0
