"""The past played back: what is expected afterwards, and the chances of how jobs end."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.replay.made_log import as_csv, made_log
from metasched.history.log_formats import read_log
from metasched.history.outcomes import Outcomes
from metasched.history.playback import informative_jobs, play
from metasched.history.run_times.neighbours import Neighbours
from metasched.history.submission import submission, submissions


def test_a_part_of_the_past_is_enough_to_expect_what_all_of_it_makes_expect() -> None:
    log = read_log(as_csv(made_log(1200, seed=4)).splitlines())
    part = log.picked(informative_jobs(log, newest=400))
    whole, less = Neighbours(), Neighbours()
    play(log, whole)
    play(part, less)
    now = float(log.submit_time[-1]) + 1e6
    jobs = submissions(log)[-60:]
    expected = np.array([[each.expect(job, now).run_time for job in jobs] for each in (whole, less)])
    assert len(part) < len(log)
    assert np.median(np.abs(np.log(expected[0] / expected[1]))) < 0.2


def test_a_job_that_is_withdrawn_teaches_nothing_and_leaves_nothing() -> None:
    past = Neighbours()
    past.submitted("1", submission("ada", 4, 600.0), 0.0)
    past.started("1", 5.0)
    past.withdrawn("1")
    past.withdrawn("1")
    past.ended("1", 5.0, 10.0)
    assert past.expect(submission("ada", 4, 600.0), 20.0).run_time == 600.0


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["COMPLETED", "FAILED", "TIMEOUT", ""])), max_size=30))
def test_chances_are_probabilities_whatever_happened(expected: list[tuple[str, str]]) -> None:
    outcomes = Outcomes()
    for user, state in expected:
        outcomes.learn(submission(user, 1, 100.0), 5.0 if state == "FAILED" else 100.0, state)
    for user in ("a", "c"):
        chances = outcomes.chances(submission(user, 1, 100.0))
        assert 0.0 < chances.early_failure < 1.0
        assert 0.0 < chances.time_limit < 1.0


def test_a_user_who_is_forgotten_is_like_one_never_seen() -> None:
    outcomes = Outcomes()
    for _ in range(20):
        outcomes.learn(submission("ada", 1, 100.0), 1.0, "FAILED")
        outcomes.learn(submission("bob", 1, 100.0), 50.0, "COMPLETED")
    outcomes.forget("ada")
    assert outcomes.chances(submission("ada", 1, 100.0)) == outcomes.chances(submission("eve", 1, 100.0))


def test_where_users_differ_chances_beat_how_often_it_happens_at_all_and_are_calibrated() -> None:
    draw = np.random.default_rng(11)
    fails = draw.beta(0.4, 3.0, (40, 3))
    outcomes, answer, base, happened, failures = Outcomes(), [], [], [], 0
    for number in range(6000):
        user, name = int(draw.zipf(1.5)) % 40, int(draw.integers(3))
        job, failed = submission(f"u{user}", 1, 3600.0, name=f"n{name}"), bool(draw.random() < fails[user, name])
        answer.append(outcomes.chances(job).early_failure)
        base.append(failures / max(number, 1))
        happened.append(failed)
        failures += failed
        outcomes.learn(job, 20.0 if failed else 900.0, "FAILED" if failed else "COMPLETED")
    chances, usual, really = np.array(answer), np.array(base), np.array(happened, dtype=float)
    assert np.mean((chances - really) ** 2) < 0.95 * np.mean((usual - really) ** 2)
    often = chances > np.quantile(chances, 0.8)
    assert abs(chances[often].mean() - really[often].mean()) < 0.05
