"""The tables of replays: fairness, the bootstrap by weeks, shaken replays, and run times predicted by trees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.replay.__main__ import largest_user, main, shaken_slowdowns, weekly_bound, worst_tenth
from benchmarks.replay.bound import Described, bounds, delayed, waiting_together
from benchmarks.replay.made_log import made_log
from metasched.history.job_log import JobLog
from metasched.history.replay import Policy, Replay, replay
from metasched.history.run_times.simple import Clairvoyant, Requests


def waited(waits: list[float], users: list[int]) -> Replay:
    """Jobs of one length that waited so long."""
    count = len(waits)
    ones = np.ones(count)
    labels = {"user": np.array(users)}
    log = JobLog(np.arange(count, dtype=float), 60.0 * ones, ones.astype(np.int64), 90.0 * ones, labels=labels)
    return Replay(log, log.submit_time + np.array(waits))


def test_rows_of_fairness_are_means_over_the_worst_tenth_and_the_largest_user() -> None:
    done = waited([0.0] * 18 + [100.0, 300.0], [0] * 15 + [1] * 5)
    assert worst_tenth(done) == 200.0
    assert largest_user(done) == 0.0


def test_the_bootstrap_by_weeks_bounds_the_ratio_and_is_exact_where_nothing_differs() -> None:
    log = made_log(1200, seed=3)
    base = replay(log, 64, Policy.order_only, Requests(log))
    better = replay(log, 64, Policy.order_only, Clairvoyant(log))
    assert weekly_bound(base, base, seed=1) == pytest.approx(1.0)
    ratio = better.bounded_slowdown.mean() / base.bounded_slowdown.mean()
    assert weekly_bound(better, base, seed=1) >= ratio


def test_shaken_replays_compare_the_predictors_on_the_same_logs() -> None:
    found, again = (list(shaken_slowdowns(made_log(400, seed=1), 64, shakes=2, seed=5)) for _ in range(2))
    assert [list(each) for each in found] == [["requests", "metasched", "clairvoyant"]] * 2
    assert found == again
    assert found[0] != found[1]


def test_a_job_is_described_by_jobs_that_ended_before_its_submission() -> None:
    log = made_log(300, seed=2)
    seen, later = Described(log), replace(log, run_time=log.run_time.copy())
    start = replay(log, 64, Policy.easy, seen).start
    last = int(np.argmax(log.submit_time == log.submit_time[-1]))
    unknown = start + log.run_time > log.submit_time[last]
    assert unknown.sum() > 1
    later.run_time[unknown] += 1e6
    again = Described(later)
    replay(later, 64, Policy.easy, again)
    np.testing.assert_array_equal(seen.described[: last + 1], again.described[: last + 1])


def test_trees_are_compared_with_the_predictors_on_the_same_replay() -> None:
    log = made_log(1500, seed=1)
    errors, slowdowns = bounds(log, 64)
    seen = Described(log)
    replay(log, 64, Policy.easy, seen)
    assert errors["metasched"] == np.abs(seen.expected - log.run_time).mean()
    assert errors["keyed"] == np.abs(seen.keyed - log.run_time).mean()
    trees = errors["trees trained on all other weeks"]
    assert trees != errors["metasched"]
    assert trees < errors["keyed"]
    assert slowdowns["known run times"] == min(slowdowns.values()) < slowdowns["requests"] == max(slowdowns.values())


def test_pairs_wait_at_the_same_time_and_are_of_different_users() -> None:
    done = waited([0.0, 5.0, 4.0, 3.0, 0.5], [0, 0, 1, 1, 0])
    assert [each.tolist() for each in waiting_together(done.log, done.start)] == [[1, 1, 2, 3], [2, 3, 4, 4]]


def test_the_second_of_a_pair_is_delayed_by_the_first() -> None:
    run, pairs = np.array([5.0, 100.0]), (np.array([0]), np.array([1]))
    short_first, long_first = 5.0 / 100.0, 100.0 / 10.0
    assert delayed(run, run, pairs) == short_first
    assert delayed(-run, run, pairs) == long_first
    assert delayed(np.ones(2), run, pairs) == (short_first + long_first) / 2.0


def test_the_table_of_shaken_replays_is_made_alone_and_each_replay_is_told_as_it_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = made_log(300, seed=1)
    rows = zip(log.submit_time, log.run_time, log.processors, log.limits(), log.labelled("user"), strict=True)
    path = tmp_path / "made.csv"
    path.write_text("submit_time,run_time,processors,requested_time,user\n"
                    + "".join(",".join(map(str, row)) + "\n" for row in rows))  # fmt: skip
    main([f"{path}:64"], shakes=2, seed=5, only_shaken=True)
    tables, told = capsys.readouterr()
    assert [line.split()[0] for line in told.splitlines()] == ["made", "made"]
    assert "means of 2 shaken replays (seed 5)" in tables
    assert "worst tenth" not in tables
