"""A queue led on: when its jobs start, and when one more would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from metasched.history.queue import Line, PrecedingJob, QueuedJob

WIDTH = st.integers(1, 6)
TIME = st.floats(1, 500).map(round).map(float)
JOB = st.builds(lambda width, left, more: PrecedingJob(width, left + more, left), WIDTH, TIME, TIME)
RUNNING = WAITING = st.lists(JOB, max_size=6)


def _named(jobs: list[PrecedingJob]) -> list[PrecedingJob]:
    return [PrecedingJob(job.processors, job.holds, job.left, f"{number}") for number, job in enumerate(jobs)]


@given(st.integers(0, 6), RUNNING, WAITING)
def test_no_more_processors_are_held_than_there_are_and_who_fits_starts(
    free: int, running: list[PrecedingJob], waiting: list[PrecedingJob]
) -> None:
    waiting = _named(waiting)
    line = Line(free, running, waiting)
    starts = line.starts()
    assert set(starts) == {job.number for job in waiting if job.processors <= line.processors}
    spans = [(0.0, job.left, job.processors) for job in running]
    spans += [(starts[each.number], starts[each.number] + each.left, each.processors) for each in waiting
              if each.number in starts]  # fmt: skip
    held = [sum(width for begin, end, width in spans if begin <= at < end) for at, _, _ in spans]
    assert max(held, default=0) <= line.processors


EXACT = st.lists(st.builds(lambda width, left: PrecedingJob(width, left, left), WIDTH, TIME), max_size=6)


@given(st.integers(0, 6), EXACT, EXACT, WIDTH, TIME)
def test_where_limits_are_exact_one_more_job_starts_no_later_than_processors_are_free_for_good(
    free: int, running: list[PrecedingJob], waiting: list[PrecedingJob], processors: int, run_time: float
) -> None:
    line = Line(free, running, waiting)
    from_on, seconds = line.steps()
    assert from_on[0] == 1
    assert sorted(seconds.tolist()) == seconds.tolist()
    wait = line.wait(processors, run_time, run_time)
    assert (wait == float("inf")) == (processors > line.processors)
    if processors <= line.processors:
        for_good = max(second for least, second in zip(from_on, seconds, strict=True) if least <= processors)
        assert 0.0 <= wait <= for_good


def test_what_runs_may_hold_its_processors_as_long_as_its_limit_says() -> None:
    assert QueuedJob("1", frozenset("p"), 4, 600.0, ran=500.0).holds == 100.0
    assert QueuedJob("1", frozenset("p"), 4, 600.0, ran=700.0).holds == 1.0
    assert QueuedJob("1", frozenset("p"), 4, None).holds == 86_400.0
    assert QueuedJob("1", frozenset("p"), 4, None, ran=200_000.0).holds == 86_400.0
