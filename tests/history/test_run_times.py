"""Run times that are expected of jobs which say nothing: what is learned, when, and what is said of it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from benchmarks.replay.made_log import made_log
from metasched.history.evaluation import Recorder, evaluate
from metasched.history.job_log import JobLog
from metasched.history.replay import Policy, replay
from metasched.history.run_times import neighbours
from metasched.history.run_times.known import PREDICTORS
from metasched.history.run_times.learned import SHARES, Learned
from metasched.history.run_times.neighbours import Neighbours
from metasched.history.run_times.simple import Keyed, LastTwo
from metasched.history.submission import Submission
from metasched.history.waits import WaitErrors
from metasched.plain_numbers import span

ADA = Submission("ada", 4, 3600.0)


def past(runs: list[float], job: Submission = ADA, begin: float = 0.0) -> Neighbours:
    """Somebody's runs, one after the other."""
    found, now = Neighbours(), begin
    for number, run in enumerate(runs):
        found.submitted(number, job, now)
        found.started(number, now)
        found.ended(number, run, now + run)
        now += run + 60.0
    return found


def test_nothing_is_known_at_first_but_the_limit() -> None:
    answer = Neighbours().expect(ADA, 0.0)
    assert (answer.run_time, answer.low, answer.high) == (3600.0, 0.0, 3600.0)
    assert Neighbours().reason(ADA, 0.0) == "nothing is known of such jobs; the limit is 60.0 min"


def test_a_job_is_expected_to_take_what_its_like_took() -> None:
    answer = past([600.0, 610.0, 590.0, 605.0, 595.0]).expect(ADA, 10_000.0)
    assert 590 <= answer.run_time <= 610
    assert answer.low <= answer.run_time <= answer.high


def test_a_changed_habit_is_followed_within_a_few_jobs() -> None:
    for before, after in ((600.0, 90.0), (90.0, 600.0)):
        answer = past([before] * 30 + [after] * 6).expect(ADA, 40_000.0)
        assert answer.run_time == pytest.approx(after, rel=0.1)


def test_jobs_of_other_sizes_and_limits_count_less() -> None:
    found = past([600.0] * 5)
    for number in range(5):
        found.submitted(f"large{number}", Submission("ada", 64, 36_000.0), 5000.0)
        found.started(f"large{number}", 5000.0)
        found.ended(f"large{number}", 30_000.0, 35_000.0)
    assert found.expect(ADA, 36_000.0).run_time < 1000
    assert found.expect(Submission("ada", 64, 36_000.0), 36_000.0).run_time > 20_000


def test_jobs_of_the_same_name_count_more() -> None:
    found = Neighbours()
    for number in range(20):
        job, run = Submission("ada", 4, 3600.0, "abfastslow"[2 + 4 * (number % 2) :][:4]), 60.0 + 3000.0 * (number % 2)
        found.submitted(number, job, 4000.0 * number)
        found.started(number, 4000.0 * number)
        found.ended(number, run, 4000.0 * number + run)
    assert found.expect(Submission("ada", 4, 3600.0, "fast"), 90_000.0).run_time < 200
    assert found.expect(Submission("ada", 4, 3600.0, "slow"), 90_000.0).run_time > 2500
    assert "same name, size and limit took 60.0 s" in found.reason(Submission("ada", 4, 3600.0, "fast"), 90_000.0)


def test_a_reason_names_jobs_whose_names_differ_only_in_numbers() -> None:
    found = Neighbours()
    for number in range(20):
        name, run = (f"fast_{number}", 60.0) if number % 2 else (f"slow_{number}", 3000.0)
        found.submitted(number, Submission("ada", 4, 3600.0, name), 4000.0 * number)
        found.started(number, 4000.0 * number)
        found.ended(number, run, 4000.0 * number + run)
    for name, took in (("fast_99", "60.0 s"), ("slow_99", "50.0 min")):
        said = found.reason(Submission("ada", 4, 3600.0, name), 90_000.0)
        assert said == f"the last 9 jobs of this user with a similar name and the same size and limit took {took}"


@pytest.mark.parametrize("asked", [1800.0, 28_800.0, 43_200.0])
@pytest.mark.parametrize("in_proportion", [False, True])
def test_a_reason_names_the_jobs_that_the_prediction_follows(asked: float, in_proportion: bool) -> None:
    """The user's run times grow with the limit, or not: forms that suppose otherwise count next to nothing by then."""
    found = Neighbours()
    for number in range(60):
        limit = (3600.0, 7200.0, 14_400.0)[number % 3]
        run, begin = limit / 6 if in_proportion else 600.0, 4000.0 * number
        found.submitted(number, Submission("ada", 4, limit), begin)
        found.started(number, begin)
        found.ended(number, run, begin + run)
    job = Submission("ada", 4, asked)
    took = asked / 6 if in_proportion else 600.0
    assert found.expect(job, 3e5).run_time == pytest.approx(took, rel=0.01)
    others = "with other limits, in proportion to the limit," if in_proportion else "with another size or limit"
    assert found.reason(job, 3e5) == f"the last 9 jobs of this user {others} took {span(took)}"


def test_what_runs_shows_that_it_takes_longer() -> None:
    found = past([60.0, 62.0, 58.0])
    for number in range(3):
        found.submitted(f"on{number}", ADA, 300.0)
        found.started(f"on{number}", 300.0)
    before, after = found.expect(ADA, 301.0), found.expect(ADA, 300.0 + 1800.0)
    assert before.quantiles[8] < 100
    assert after.quantiles[-1] > 1000
    assert (after.quantiles >= before.quantiles).all()


def test_nothing_is_learned_before_a_job_has_ended() -> None:
    log = made_log(300, seed=4)
    seen: list[float] = []

    class Spy(Learned):
        def submitted(self, job: int, now: float):
            found = super().submitted(job, now)
            seen.append(found.run_time)
            return found

    replay(log, 64, Policy.order_only, Spy(log))
    longer = log.run_time.copy()
    longer[-1] = 5.0 * longer[-1]  # what has not ended cannot be known
    before = list(seen)
    seen.clear()
    changed = JobLog(log.submit_time, longer, log.processors, log.requested_time, labels=log.labels)
    replay(changed, 64, Policy.order_only, Spy(changed))
    assert seen == before


def test_a_user_can_be_forgotten() -> None:
    found = past([600.0] * 9)
    found.submitted("on", ADA, 9000.0)
    found.started("on", 9000.0)
    assert found.expect(ADA, 9500.0).run_time < 700
    found.forget("ada")
    assert found.expect(ADA, 9500.0).run_time == 3600.0
    assert found.expect(Submission("bob", 4, 3600.0), 9500.0).run_time == 3600.0
    found.ended("on", 700.0, 9700.0)
    assert found.expect(ADA, 9800.0).run_time == 3600.0


def test_what_is_left_of_a_run_shrinks_and_never_ends_before_now() -> None:
    found = past([600.0, 900.0, 1200.0, 1500.0, 1800.0])
    answer = found.submitted("on", ADA, 10_000.0)
    left = [float(np.mean(found.possible("on", ran, 0))) for ran in (0.0, 500.0, 1300.0, 3000.0)]
    assert left[0] == pytest.approx(float(answer.quantiles @ SHARES), rel=0.05)
    assert min(left) > 0
    assert left[0] > left[1]
    assert 3000.0 + left[3] <= 3600.0


@pytest.mark.parametrize("seed", [1, 2])
def test_run_times_are_expected_better_than_by_the_keyed_median_and_intervals_hold(seed: int) -> None:
    log = made_log(3000, seed=seed)
    mae = {}
    for name in ("keyed", "metasched"):
        recorder = Recorder(PREDICTORS[name](log), len(log))
        replay(log, 64, Policy.easy, recorder)
        mae[name] = float(np.mean(np.abs(recorder.expected - log.run_time)))
    assert mae["metasched"] < mae["keyed"]
    assert 0.88 <= np.mean((recorder.low <= log.run_time) & (log.run_time <= recorder.high)) <= 0.92


def test_what_one_job_took_puts_its_likes_that_wait_in_another_order() -> None:
    log = JobLog(np.arange(4.0), np.array([30.0, 30.0, 30.0, 30.0]), np.full(4, 2), np.full(4, 36_000.0),
                 labels={"user": np.array([0, 0, 1, 0])})  # fmt: skip
    learned = Learned(log)
    before = [learned.submitted(job, float(job)).order for job in range(4)]
    learned.started(0, 4.0)
    learned.ended(0, 34.0)
    later = dict(learned.reordered(0, 34.0))
    assert sorted(later) == [1, 3]
    assert max(later.values()) < min(before)


def test_jobs_that_wait_are_taken_for_longer_while_their_likes_run_on() -> None:
    # Ada's jobs mostly take a minute; one of hers runs on, another of its kind waits, and Bob's job ends.
    users, runs = [0] * 12 + [1, 0, 0], [3000.0] * 4 + [60.0] * 8 + [2000.0, 3000.0, 3000.0]
    count = len(runs)
    log = JobLog(
        np.arange(count, dtype=float), np.array(runs), np.ones(count, dtype=np.int64), np.full(count, 3600.0),
        labels={"user": np.array(users)},
    )  # fmt: skip
    learned = Learned(log)
    for job in range(12):
        learned.submitted(job, 4000.0 * job)
        learned.started(job, 4000.0 * job)
        learned.ended(job, 4000.0 * job + runs[job])
    for job in (12, 13, 14):
        first = learned.submitted(job, 50_000.0)
    for job in (12, 13):
        learned.started(job, 50_000.0)
    learned.ended(12, 52_000.0)
    (waiting, order), *others = learned.reordered(12, 52_000.0)
    assert (waiting, others) == (14, [])
    assert order > first.order
    assert list(learned.reordered(12, 52_100.0)) == []


def test_names_are_alike_where_only_numbers_differ_and_numbers_alone_are_names() -> None:
    found = past([60.0] * 9, Submission("ada", 4, 3600.0, "7//"))
    for number, run in enumerate([3000.0] * 9):
        job = Submission("ada", 4, 3600.0, f"solve-{number}//")
        found.submitted(number, job, 90_000.0)
        found.started(number, 90_000.0)
        found.ended(number, run, 93_000.0)
    assert found.expect(Submission("ada", 4, 3600.0, "solve-77//"), 99_000.0).run_time == 3000.0
    assert found.expect(Submission("ada", 4, 3600.0, "7//"), 99_000.0).run_time < 1000.0


def test_nothing_is_left_of_the_names_of_a_forgotten_user_and_names_do_not_pile_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(neighbours, "MOST_NAMES", 10)

    def after(jobs: int) -> bytes:
        found = past([60.0] * 9)
        for number in range(jobs):
            job = Submission("bob", 4, 3600.0, f"secret{'abcdefghij'[number % 10]}{'x' * (number // 10)}", "program")
            found.submitted(number, job, 90_000.0)
            found.ended(number, 50.0, 90_050.0)
        known = pickle.dumps(found)
        assert b"bob" in known
        found.forget("bob")
        left = pickle.dumps(found)
        assert not any(word in left for word in (b"bob", b"secret", b"program"))
        return known

    assert len(after(1000)) <= len(after(500)) + 1000  # some long names in the ten stems


def test_the_simple_ways_do_what_they_say() -> None:
    log = JobLog(np.array([0.0, 100.0, 200.0]), np.array([10.0, 30.0, 50.0]), np.array([1, 1, 1]), np.full(3, 60.0),
                 labels={"user": np.zeros(3, dtype=np.int64)})  # fmt: skip
    for kind, expected in ((LastTwo, [60.0, 60.0, 20.0]), (Keyed, [60.0, 10.0, 20.0])):
        recorder = Recorder(kind(log), 3)
        replay(log, 4, Policy.easy, recorder)
        assert recorder.expected.tolist() == expected


def test_waits_are_forecast_better_with_run_times_than_with_requests() -> None:
    log = made_log(1500, seed=6)
    answer = {name: evaluate(log, 64, Policy.easy, PREDICTORS[name], waits=500) for name in ("requests", "clairvoyant")}
    assert answer["clairvoyant"]["wait_mae"] < answer["requests"]["wait_mae"]
    assert answer["clairvoyant"]["wait_mae"] < 0.5 * answer["clairvoyant"]["mean_wait"]


def test_waits_are_compared_with_those_that_requests_would_give_in_the_same_replay() -> None:
    log = made_log(1500, seed=6)
    by = {name: evaluate(log, 64, Policy.easy, PREDICTORS[name], waits=500) for name in ("requests", "clairvoyant")}
    assert by["requests"]["wait_mae_of_requests"] == by["requests"]["wait_mae"]
    assert by["clairvoyant"]["wait_mae_of_requests"] > 2.0 * by["clairvoyant"]["wait_mae"]


def test_waits_learn_from_what_earlier_forecasts_missed() -> None:
    errors = WaitErrors()
    generator = np.random.default_rng(1)
    inside = []
    for _ in range(600):
        said = float(generator.uniform(300, 7000))
        waited = said * float(np.exp(generator.normal(0.3, 0.4)))
        answer = errors.expect(said)
        inside.append(answer.low <= waited <= answer.high)
        errors.learn(answer, waited)
    assert 0.85 <= np.mean(inside[100:]) <= 0.95
    assert errors.expect(0.0).seconds == 0.0


@pytest.mark.parametrize("spread", [0.1, 1.0])
def test_intervals_of_waits_hold_nine_times_in_ten_though_errors_grow(spread: float) -> None:
    errors, generator = WaitErrors(), np.random.default_rng(3)
    held = []
    for number in range(2000):
        said = float(generator.uniform(400.0, 1700.0))
        waited = said * float(np.exp(generator.normal(0.0, spread * (1.0 + number / 1000.0))))
        found = errors.expect(said)
        held.append(found.low <= waited <= found.high)
        errors.learn(found, waited)
    assert 0.87 < np.mean(held) < 0.93


def test_a_forecast_is_judged_by_the_interval_that_it_was_given() -> None:
    """Of two forecasts of a wait, made early and late, only the late one had an interval that missed it."""
    spans = []
    for late in (False, True):
        errors, generator = WaitErrors(), np.random.default_rng(4)
        early = [errors.expect(600.0) for _ in range(3)]
        for _ in range(100):
            errors.learn(errors.expect(600.0), 600.0 * float(np.exp(generator.normal(0.0, 0.2))))
        for each in early:
            errors.learn(errors.expect(600.0) if late else each, 1800.0)
        found = errors.expect(600.0)
        spans.append(found.high - found.low)
    assert spans[0] < spans[1]


def test_a_wait_is_moved_only_where_that_makes_it_better() -> None:
    errors, generator = WaitErrors(), np.random.default_rng(2)
    for _ in range(200):
        errors.learn(errors.expect(600.0), float(generator.choice([0.0, 600.0, 600.0, 1200.0, 4000.0])))
    assert errors.expect(600.0).seconds == 600.0
    for _ in range(200):
        errors.learn(errors.expect(600.0), 3000.0)
    assert errors.expect(600.0).seconds == pytest.approx(3000.0, rel=0.01)


def test_a_wait_of_which_little_is_known_may_be_nothing_or_four_times_as_long() -> None:
    errors = WaitErrors()
    assert [errors.expect(said)[:3] for said in (600.0, 2000.0)] == [(600.0, 0.0, 3600.0), (2000.0, 0.0, 8000.0)]
    for _ in range(40):
        errors.learn(errors.expect(600.0), 1260.0)
    assert errors.expect(600.0)[:3] == pytest.approx((1260.0,) * 3)


@pytest.mark.parametrize("together", [50, 200, 400])
def test_intervals_hold_nine_times_in_ten_though_many_jobs_are_submitted_before_the_first_ends(together: int) -> None:
    """Users submit many jobs at once, alike and with a factor in common that is unknown until the first has ended."""
    found, generator, held = Neighbours(), np.random.default_rng(1), []
    for burst in range(80):
        now, job = 100_000.0 * burst, Submission(f"user{burst % 4}", 4, 100_000.0)
        run_times = 4000.0 * np.exp(generator.normal(0.0, 0.5) + generator.normal(0.0, 0.3, together))
        for number, run_time in enumerate(run_times.tolist()):
            made = found.submitted((burst, number), job, now)
            held.append(made.low <= run_time <= made.high)
        for number in np.argsort(run_times).tolist():
            found.started((burst, number), now)
            found.ended((burst, number), float(run_times[number]), now + float(run_times[number]))
    assert 0.85 <= np.mean(held[len(held) // 5 :]) <= 0.95


def test_intervals_hold_though_nothing_is_known_of_users_but_what_others_did() -> None:
    found, generator, held = Neighbours(), np.random.default_rng(5), []
    for user, run_time in enumerate((4000.0 * np.exp(generator.normal(0.0, 1.0, 60))).tolist()):
        now, job = 100_000.0 * user, Submission(f"user{user}", 4, 90_000.0)
        made = found.submitted(user, job, now)
        held.append(made.low <= run_time <= made.high)
        found.started(user, now)
        found.ended(user, run_time, now + run_time)
    assert np.mean(held) >= 0.85


def test_intervals_hold_though_few_jobs_of_their_user_have_ended() -> None:
    held, generator = [], np.random.default_rng(6)
    for _ in range(200):
        *known, last = (3600.0 * generator.uniform(0.1, 0.9, 5)).tolist()
        answer = past(known).expect(ADA, 10_000.0)
        held.append(answer.low <= last <= answer.high)
    assert np.mean(held) >= 0.85


@pytest.mark.parametrize("over", [20.0, 600.0])
def test_intervals_hold_jobs_that_run_past_their_limits(over: float) -> None:
    """Schedulers end jobs some time after their limits: none of these would be in an interval that ends there."""
    answer = past([3600.0 + over, 1800.0] * 40).expect(ADA, 1e6)
    assert answer.low <= 1800.0 < 3600.0 + over <= answer.high < (3600.0 + over) * 1.05


def test_a_run_beyond_another_limit_is_expected_as_far_beyond_that_of_the_job() -> None:
    answer = past([7220.0] * 20, Submission("ada", 4, 7200.0)).expect(ADA, 1e6)
    assert 3600.0 <= answer.run_time <= answer.high <= 1.02 * 3620.0


def test_what_is_left_of_a_run_is_longer_at_a_larger_share() -> None:
    found = past([600.0, 900.0, 1200.0, 1500.0, 1800.0])
    found.submitted("on", ADA, 10_000.0)
    for ran in (0.0, 700.0):
        left = found.left("on", ran, np.array([0.1, 0.5, 0.9]))
        assert (np.diff(left) > 0).all()


def test_run_times_in_proportion_to_the_limit_are_learned_and_said() -> None:
    found, now = Neighbours(), 0.0
    for number in range(60):
        limit = (1800.0, 7200.0, 14_400.0, 36_000.0)[number % 4]
        job = Submission("ada", 4, limit)
        found.submitted(number, job, now)
        found.started(number, now)
        found.ended(number, 0.4 * limit, now + 0.4 * limit)
        now += 0.4 * limit + 60.0
    unseen = Submission("ada", 4, 25_000.0)
    answer = found.expect(unseen, now)
    assert answer.run_time == pytest.approx(10_000.0, rel=0.1)
    assert found.reason(unseen, now) == (
        "the last 9 jobs of this user with other limits, in proportion to the limit, took 2.8 h"
    )


def test_jobs_of_one_name_are_told_apart_by_their_executables_where_these_are_known() -> None:
    found = Neighbours()
    for number in range(20):
        job = Submission("ada", 4, 3600.0, "run//", ("fast.sh", "slow.sh")[number % 2])
        found.submitted(number, job, 4000.0 * number)
        found.started(number, 4000.0 * number)
        run = 60.0 + 3000.0 * (number % 2)
        found.ended(number, run, 4000.0 * number + run)

    def mean(executable: str) -> float:
        return float(found.expect(Submission("ada", 4, 3600.0, "run//", executable), 90_000.0).quantiles @ SHARES)

    assert mean("fast.sh") < 0.8 * mean("") < 0.8 * 0.8 * mean("slow.sh")


def test_a_user_of_very_many_jobs_takes_no_more_memory_than_one_of_some_hundreds() -> None:
    sizes = [len(pickle.dumps(past([600.0 + number % 500 for number in range(count)]))) for count in (500, 3000)]
    assert sizes[1] < 1.05 * sizes[0]


def test_no_more_names_are_kept_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "MOST_NAMES", 3)
    found = Neighbours()
    kept = []
    for number in range(7):
        job = Submission("ada", 4, 3600.0, name=f"job{chr(97 + number)}")
        found.submitted(number, job, float(number))
        found.started(number, float(number))
        found.ended(number, 10.0, number + 10.0)
        kept.append(len(found._stems))
    assert max(kept) == 3


def test_the_levels_at_which_a_queue_is_simulated_are_spread_evenly_and_shifted_from_job_to_job() -> None:
    found = past([600.0, 900.0, 1200.0, 1500.0, 1800.0])
    found.submitted("on", ADA, 10_000.0)
    for place, levels in ((0, [0.1, 0.3, 0.5, 0.7, 0.9]), (1, [0.718034, 0.918034, 0.118034, 0.318034, 0.518034])):
        assert found.possible("on", 700.0, place) == pytest.approx(found.left("on", 700.0, np.array(levels)))
