"""EASY backfilling: against its definition, spelled out, and the laws that it keeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.replay.made_log import made_log
from benchmarks.replay.plain_waits import predicted_starts
from metasched.history import backfill_order
from metasched.history.backfilling import Backfilling, outlived
from metasched.history.job_log import JobLog
from metasched.history.replay import Policy, perturbed, replay
from metasched.history.run_times.simple import Clairvoyant, Keyed, LastTwo, Requests
from metasched.records import InputError

PROCESSORS = 8
JOBS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 20), st.integers(1, PROCESSORS), st.integers(0, 15)),
    min_size=1,
    max_size=14,
)


def log_of(jobs: list[tuple[int, int, int, int]]) -> JobLog:
    """A log of gap to the job before, run time, processors, and how much more time was asked for."""
    gap, run, width, more = (np.array(column) for column in zip(*jobs, strict=True))
    return JobLog(np.cumsum(gap).astype(float), run.astype(float), width, (run + more).clip(1).astype(float))


def by_definition(log: JobLog, shortest_first: bool) -> list[float]:
    """Starts under EASY, second by second, with requested times."""
    submit, run, width, limit = (
        column.tolist() for column in (log.submit_time, log.run_time, log.processors, log.limits())
    )
    start: dict[int, float] = {}
    for now in range(int(sum(run) + max(submit)) + 1):
        again = True
        while again:  # jobs of no length end at once
            before = len(start)
            line = [job for job in range(len(log)) if submit[job] <= now and job not in start]
            on = [job for job in start if start[job] + run[job] > now]
            free = PROCESSORS - sum(width[job] for job in on)
            while line and width[line[0]] <= free:
                free -= width[line[0]]
                on.append(line[0])
                start[line.pop(0)] = now
            if line:
                # All whom a start at this second keeps are known: when can the first start, and with what to spare?
                ends = {job: max(start[job] + limit[job], now) for job in on}
                spares = {
                    end: free + sum(width[job] for job in on if ends[job] <= end) - width[line[0]]
                    for end in sorted(ends.values())
                }
                shadow, spare = next((end, spare) for end, spare in spares.items() if spare >= 0)
                for job in sorted(line[1:], key=lambda each: (limit[each], each) if shortest_first else (0, each)):
                    if width[job] <= free and (now + limit[job] <= shadow or width[job] <= spare):
                        spare -= width[job] if now + limit[job] > shadow else 0
                        free -= width[job]
                        start[job] = now
            again = len(start) > before and any(run[job] == 0 and start[job] == now for job in start)
    return [start[job] for job in range(len(log))]


@pytest.mark.parametrize("few", [1, backfill_order.FEW])
@settings(max_examples=80)
@given(jobs=JOBS, shortest_first=st.booleans())
def test_jobs_start_as_the_definition_of_easy_says(
    few: int, jobs: list[tuple[int, int, int, int]], shortest_first: bool
) -> None:
    log = log_of(jobs)
    policy = Policy.sjbf if shortest_first else Policy.easy
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backfill_order, "FEW", few)
        assert replay(log, PROCESSORS, policy, Requests(log)).start.tolist() == by_definition(log, shortest_first)


@settings(max_examples=60)
@given(JOBS, st.sampled_from(list(Policy)), st.sampled_from([Requests, Clairvoyant, LastTwo, Keyed]))
def test_no_processor_is_given_twice_and_every_job_runs_as_long_as_it_runs(jobs, policy, predictor) -> None:
    log = log_of(jobs)
    done = replay(log, PROCESSORS, policy, predictor(log))
    assert (done.wait >= 0).all()
    end = done.start + log.run_time
    used = [int(log.processors[(done.start <= now) & (now < end)].sum()) for now in done.start]
    assert max(used) <= PROCESSORS


@settings(max_examples=60)
@given(JOBS)
def test_who_is_first_in_line_is_never_delayed_by_who_asks_for_enough(jobs: list[tuple[int, int, int, int]]) -> None:
    """With requests as reservations, the first in line starts no later than its first reservation says."""
    log = log_of(jobs)
    promised: dict[int, float] = {}

    def watch(cluster: Backfilling, job: int, now: float) -> None:
        limits = dict(enumerate(log.limits().tolist()))
        remaining = {each: limits[each] - (now - cluster.started.get(each, now)) for each in cluster.width}
        first = cluster.waiting[0]
        promised.setdefault(first, predicted_starts(cluster.copy(), now, remaining, until=first)[first])

    done = replay(log, PROCESSORS, Policy.order_only, Clairvoyant(log), watch)
    assert promised
    assert not [job for job, time in promised.items() if done.start[job] > time]


def test_order_only_with_requests_is_sjbf_with_requests() -> None:
    log = made_log(800, seed=2)
    starts = [replay(log, 64, policy, Requests(log)).start.tolist() for policy in (Policy.sjbf, Policy.order_only)]
    assert starts[0] == starts[1]


def test_better_knowledge_brings_shorter_slowdowns() -> None:
    log = made_log(2000, seed=1)
    fields = {
        name: float(np.mean(replay(log, 64, Policy.sjbf, kind(log)).bounded_slowdown))
        for name, kind in (("requests", Requests), ("clairvoyant", Clairvoyant))
    }
    assert fields["clairvoyant"] < fields["requests"]


def test_a_queue_led_on_with_the_truth_tells_the_truth_when_nobody_comes() -> None:
    log = made_log(60, seed=5)
    together = log.picked(np.arange(60), np.zeros(60))
    cluster = Backfilling(64)
    for job in range(60):
        cluster.submit(job, int(log.processors[job]), float(log.requested_time[job]), job, job)
    starts = predicted_starts(cluster, 0.0, dict(enumerate(log.run_time.tolist())))
    assert [starts[job] for job in range(60)] == replay(together, 64, Policy.easy, Requests(together)).start.tolist()


def test_a_shaken_log_has_the_same_jobs_a_little_earlier_or_later() -> None:
    log = made_log(500, seed=1)
    moved = perturbed(log, np.random.default_rng(3))
    assert sorted(moved.run_time.tolist()) == sorted(log.run_time.tolist())
    assert (np.diff(moved.submit_time) >= 0).all()
    assert moved.submit_time.tolist() != log.submit_time.tolist()
    assert perturbed(log, np.random.default_rng(3)).submit_time.tolist() == moved.submit_time.tolist()


@pytest.mark.parametrize(("gap", "reach"), [(10.0, 60.0), (900.0, 90.0), (7200.0, 720.0)])
def test_a_log_is_shaken_by_a_tenth_of_the_time_between_jobs_or_a_minute(gap: float, reach: float) -> None:
    count = 400
    log = JobLog(gap * np.arange(count), np.arange(count) + 1.0, np.ones(count, dtype=np.int64), np.full(count, 1e4))
    moved = perturbed(log, np.random.default_rng(3))
    by = moved.submit_time - gap * (moved.run_time - 1.0)
    assert 0.9 * reach < np.abs(by).max() <= reach
    assert abs(by.mean()) < 0.2 * reach


def test_a_job_larger_than_the_cluster_is_refused() -> None:
    log = made_log(100, seed=1)
    with pytest.raises(InputError, match="expected no more than 8"):
        replay(log, 8, Policy.easy, Requests(log))


def test_a_job_that_is_put_in_another_place_is_looked_at_there() -> None:
    cluster = Backfilling(8)
    for job, (processors, order) in enumerate([(6, 0.0), (8, 1.0), (2, 2.0), (2, 3.0)]):
        cluster.submit(job, processors, 50.0, order, job)
    cluster.reorder(3, 1.5)
    assert cluster.schedule(0.0) == [0, 3]


class FewLookUps(dict[int, float]):
    """Limits that are looked up a few times only."""

    asked = 0

    def __getitem__(self, job: int) -> float:
        self.asked += 1
        assert self.asked < 5, "the same job is corrected again and again"
        return super().__getitem__(job)


def test_a_job_that_outlives_a_limit_in_parts_of_a_second_is_corrected_to_a_later_time() -> None:
    start, limit = 1_700_000_341.8692157, 2775.6
    now = start + limit
    assert now - start < limit  # as numbers are rounded
    cluster = Backfilling(4)
    cluster.submit(0, 4, limit)
    assert cluster.schedule(start) == [0]
    cluster.correct(now, FewLookUps({0: limit}))
    assert cluster.next_correction() == pytest.approx(start + outlived(limit, limit))
