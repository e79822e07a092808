"""How often jobs fail early or run into their limits, beside what the smoothing comes to by hand."""

from __future__ import annotations

import pytest

from metasched.history import outcomes as module
from metasched.history.outcomes import MEMORY, PRIOR, Chances, Outcomes, outcome
from metasched.history.submission import Submission

SOLVE = Submission("ada", 4, 3600.0, "solve")


@pytest.mark.parametrize(
    ("limit", "run_time", "state", "found"),
    [
        (3600.0, 300.0, "FAILED", (True, False)),
        (3600.0, 301.0, "FAILED", (False, False)),
        (1000.0, 100.0, "NODE_FAIL", (True, False)),
        (1000.0, 101.0, "NODE_FAIL", (False, False)),
        (3600.0, 20.0, "COMPLETED", (False, False)),
        (3600.0, 20.0, "CANCELLED", (False, False)),
        (3600.0, 20.0, "TIMEOUT", (False, True)),
        (1000.0, 990.0, "", (False, True)),
        (1000.0, 989.0, "", (False, False)),
        (1000.0, 1000.0, "COMPLETED", (False, False)),
    ],
)
def test_a_job_failed_early_or_reached_its_limit(limit: float, run_time: float, state: str, found: tuple) -> None:
    assert outcome(limit, run_time, state) == found


def smoothed(chance: float, seen: float, counted: float) -> float:
    return (counted + PRIOR * chance) / (seen + PRIOR)


def test_the_last_job_is_counted_otherwise_as_if_it_had_been_learned_so() -> None:
    corrected, right = Outcomes(), Outcomes()
    for state in ("FAILED", "", "COMPLETED", ""):
        corrected.learn(SOLVE, 20.0, state)
        right.learn(SOLVE, 20.0, state or "FAILED")
        if not state:
            corrected.correct(SOLVE, 20.0, state, "FAILED")
    assert corrected.chances(SOLVE) == right.chances(SOLVE)
    Outcomes().correct(SOLVE, 20.0, "", "FAILED")  # what is forgotten cannot be corrected
    for _ in range(3):
        corrected.correct(SOLVE, 20.0, "FAILED", "TIMEOUT")
    assert corrected.chances(SOLVE).early_failure < 0.05
    assert corrected.chances(SOLVE).time_limit <= 1.0


def test_chances_are_smoothed_from_the_widest_key_to_the_narrowest() -> None:
    assert Outcomes().chances(SOLVE) == Chances(0.05, 0.05, 0.0)
    learned = Outcomes()
    learned.learn(SOLVE, 20.0, "FAILED")
    learned.learn(Submission("bob", 1, 60.0, "x"), 60.0, "TIMEOUT")
    # Of all, two jobs; of ada, of her name, and with its limit, one that failed.
    early, limit = smoothed(0.05, 2.0, 1.0), smoothed(0.05, 2.0, 1.0)
    for _ in range(3):
        early, limit = smoothed(early, 1.0, 1.0), smoothed(limit, 1.0, 0.0)
    found = learned.chances(SOLVE)
    assert (found.early_failure, found.time_limit) == pytest.approx((early, limit))
    assert found.jobs == 1.0
    # Who was never seen is expected as all are, and told how many those are.
    stranger = learned.chances(Submission("eve", 1, 60.0, "x"))
    assert stranger.early_failure == pytest.approx(smoothed(0.05, 2.0, 1.0))
    assert stranger.jobs == 2.0


def test_older_jobs_of_a_user_count_less_and_of_all_the_same() -> None:
    learned = Outcomes()
    for state in ("FAILED", "COMPLETED", "COMPLETED"):
        learned.learn(SOLVE, 20.0, state)
    assert learned.chances(SOLVE).jobs == pytest.approx(1.0 + MEMORY + MEMORY**2)
    assert learned.chances(Submission("eve", 1, 60.0)).jobs == 3.0
    early = smoothed(0.05, 3.0, 1.0)
    for _ in range(3):
        early = smoothed(early, 1.0 + MEMORY + MEMORY**2, MEMORY**2)
    assert learned.chances(SOLVE).early_failure == pytest.approx(early)


def test_the_keys_made_first_are_forgotten_but_never_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEYS", 7)
    learned = Outcomes()
    for user in ("ada", "bob", "eve"):
        learned.learn(Submission(user, 4, 3600.0, "solve"), 20.0, "COMPLETED")
    assert [learned.chances(Submission(user, 4, 3600.0, "solve")).jobs for user in ("ada", "bob", "eve")] == [3, 1, 1]
