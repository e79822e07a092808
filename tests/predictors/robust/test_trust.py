"""Users who contradict the others teach nobody else; what changes for all is followed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from metasched.predictors.abilities import for_user
from metasched.predictors.judging.peers import RidgeQuadratic
from metasched.predictors.memory.window import RunWindow
from metasched.predictors.robust.drift import Drift, Surprise
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.robust.trust import doubted
from metasched.records import Run
from metasched.store.documents import dump, parse
from tests.predictors.made import runs


def of(user: str, run: Run, **changes: float) -> Run:
    return replace(run, extra=MappingProxyType({"user": user}), **changes)


def honest(count: int, *, seed: int = 0, users: int = 4) -> list[Run]:
    return [of(f"user{k % users}", run) for k, run in enumerate(runs(count, seed=seed))]


LIES: dict[str, Callable[[int, Run], Run]] = {
    "ten hours at N = 1": lambda k, run: of("eve", run, problem_size=1.0, execution_time=36_000.0),
    "ends at once": lambda k, run: of("eve", run, execution_time=0.1 + 0.05 * (k % 7)),
    "in turn": lambda k, run: of("eve", run, execution_time=(1e-2, 1e2)[k % 2] * run.execution_time),
    "gradual": lambda k, run: of("eve", run, execution_time=1.06**k * run.execution_time),
    "threefold": lambda k, run: of("eve", run, execution_time=3.0 * run.execution_time),
    "together": lambda k, run: of(f"eve{k % 2}", run, execution_time=4.0 * run.execution_time),
}


def lies(form: str, count: int) -> list[Run]:
    return [LIES[form](k, run) for k, run in enumerate(runs(count, seed=9))]


@pytest.mark.parametrize("first", [True, False], ids=["the liar first", "the liar last"])
@pytest.mark.parametrize("form", LIES)
def test_a_liar_is_not_believed_whoever_came_first(form: str, first: bool) -> None:
    truth, false = honest(40), lies(form, 40)
    assert doubted([*false, *truth] if first else [*truth, *false]) == {run.user for run in false}


@pytest.mark.parametrize(
    "cells", [{"parameter:x": "1"}, {f"parameter:x{k}": "1" for k in range(31)}, {"threads": "64"}]
)
@pytest.mark.parametrize("steps", [{}, {"parameter:steps": "100"}])
@pytest.mark.parametrize("form", ["ten hours at N = 1", "ends at once"])
def test_a_liar_is_not_believed_for_parameters_that_nobody_else_states(
    form: str, steps: dict[str, str], cells: dict[str, str]
) -> None:
    truth = [replace(run, extra=MappingProxyType({**run.extra, **steps})) for run in honest(40)]
    false = [replace(run, extra=MappingProxyType({**run.extra, **steps, **cells})) for run in lies(form, 40)]
    assert doubted([*truth, *false]) == {"eve"}


#: Steps of honest users, which are taken by their logarithm or, where one is 0, relative to their range.
STEPS = (10.0, 100.0, 1000.0), (0.0, 1.0, 2.0)


def stating(run: Run, steps: float, levels: tuple[float, ...], **cells: str) -> Run:
    """A run that takes longer the more steps it has."""
    far = steps - 1.0 if 0.0 in levels else math.log10(steps) - 2.0
    seconds = run.execution_time * math.exp(0.5 * far)
    extra = {**run.extra, "parameter:steps": repr(steps), **cells}
    return replace(run, execution_time=seconds, extra=MappingProxyType(extra))


def unbounded(seed: int) -> tuple[list[Run], list[Run]]:
    """Runs of honest users, and of one who goes beyond all bounds in two of seven cells, in all or half of the runs."""
    rng, levels = np.random.default_rng(seed), STEPS[seed % 2]
    users, factor = int(rng.integers(2, 6)), float(10.0 ** rng.choice([-30.0, -6.0, 6.0, 30.0]))
    true = honest(users * int(rng.integers(4, 10)), seed=seed, users=users)
    true = [stating(run, float(rng.choice(levels)), levels) for run in true]
    wild = rng.choice(["N", "P", "bandwidth", "time", "steps", "other", "threads"], 2, replace=False)
    share, slower, false = float(rng.choice([0.5, 1.0])), float(np.exp(rng.normal(0.0, 3.0))), []
    for run in runs(int(rng.choice([4, 12, 30])), seed=100 + seed):
        here, cells = (wild if rng.random() < share else wild[:0]).tolist(), {}
        if "other" in here:
            cells["parameter:other"] = repr(factor * float(rng.uniform(1.0, 3.0)))
        if "threads" in here:
            cells["threads"] = "64"
        lie = stating(of("eve", run), float(rng.choice(levels)), levels, **cells)
        if "steps" in here:
            lie = replace(lie, extra=MappingProxyType({**lie.extra, "parameter:steps": repr(factor)}))
        if "P" in here:
            lie = replace(lie, processors=int(min(max(run.processors * factor, 1.0), 1e6)))
        by = {"N": "problem_size", "bandwidth": "min_avg_avail_bw", "time": "execution_time"}
        far: dict[str, Any] = {}
        for name in sorted(by.keys() & {*here}):
            far[by[name]] = float(np.clip(getattr(lie, by[name]) * factor, 1e-30, 1e30))
        if here:
            far["execution_time"] = slower * far.get("execution_time", lie.execution_time)
        false.append(replace(lie, **far))
    return true, false


@pytest.mark.parametrize("seed", range(20))
def test_whatever_a_user_states_no_other_is_distrusted(seed: int) -> None:
    true, false = unbounded(seed)
    assert doubted([*true, *false]) <= {"eve"}
    assert doubted([*false, *true]) <= {"eve"}


@pytest.mark.parametrize("cell", ["N", "P", "steps", "steps from 0"])
def test_a_user_whose_runs_fit_is_believed_far_beyond_those_of_the_others(cell: str) -> None:
    levels = STEPS[cell == "steps from 0"]
    true = [stating(run, levels[k % 3], levels) for k, run in enumerate(honest(24))]
    largest, counts = 400_000 if cell == "N" else 4_000, (16, 32) if cell == "P" else (1, 2, 4, 8)
    steps = {"steps": 30_000.0, "steps from 0": 6.0}.get(cell, levels[1])
    new = [stating(of("explorer", run), steps, levels) for run in runs(8, seed=5, largest=largest, counts=counts)]
    assert doubted([*true, *new]) == frozenset()


def test_one_of_very_many_users_is_recognised() -> None:
    assert doubted([*honest(300, users=50), *lies("threefold", 20)]) == {"eve"}
    each = [of(f"user{k}", run) for k, run in enumerate(runs(300))]
    assert doubted([*each, *lies("threefold", 20)]) == {"eve"}


def test_those_who_tell_the_truth_are_believed() -> None:
    assert doubted(honest(40)) == frozenset()
    assert doubted([of("only", run) for run in runs(5)]) == frozenset()
    assert doubted([]) == frozenset()


#: Jobs of a real Slurm that slept for N / (500 P) + 0.3 s, whatever the loads; one for longer. N, P, CPU, time (s).
SLEPT = np.array(
    [
        (200, 2, 0.88, 0.69),
        (200, 1, 0.74, 0.87),
        (200, 4, 0.62, 0.59),
        (400, 2, 0.77, 0.86),
        (400, 4, 0.62, 0.63),
        (400, 1, 0.73, 1.24),
        (800, 4, 0.73, 0.87),
        (800, 2, 0.62, 1.36),
        (800, 1, 0.77, 2.07),
        (1600, 4, 0.62, 1.27),
        (1600, 2, 0.62, 2.00),
        (1600, 1, 0.93, 3.68),
        (1000, 4, 0.88, 0.90),
        (1000, 4, 0.55, 1.02),
        (1000, 2, 0.45, 1.12),
        (1000, 2, 0.45, 1.27),
        (1000, 2, 0.40, 1.31),
        (1000, 8, 0.55, 2.38)
    ]
)  # fmt: skip


def test_the_few_runs_of_a_new_user_drive_out_nobody() -> None:
    """Times that no load changes are implausible; what one other run tells is not, but says nothing."""
    users = ["ada"] * len(SLEPT)
    users[13] = "bob"
    slept = [
        of(user, Run("made", "c8", n, int(p), cpu, 100.0, time))
        for user, (n, p, cpu, time) in zip(users, SLEPT.tolist(), strict=True)
    ]
    for so_far in (None, frozenset({"ada"})):
        assert doubted(slept, so_far) == frozenset()


@pytest.mark.parametrize("form", ["ten hours at N = 1", "ends at once"])
def test_forty_hostile_jobs_leave_the_others_predictions_alone(form: str) -> None:
    truth, asked = honest(40), honest(20, seed=5)
    attacked = RobustPredictor("made", "c8").fit(truth[:30])
    for lie, run in zip(lies(form, 10), truth[30:], strict=True):
        attacked.learn(lie)
        attacked.learn(run)
    errors = [abs(attacked.predict(run.request).execution_time / run.execution_time - 1.0) for run in asked]
    assert np.median(errors) <= 0.12
    assert "10 runs of eve" in " ".join(attacked.predict(asked[0].request).warnings)
    assert attacked.state.domain.smallest_size > 1.0


def test_a_users_own_history_counts_for_that_user() -> None:
    predictor = RobustPredictor("made", "c8").fit([*honest(40), *lies("threefold", 20)])
    request = honest(1, seed=7)[0].request
    own, others = (for_user(predictor, user).predict(request) for user in ("eve", "user1"))
    assert own.execution_time == pytest.approx(3.0 * others.execution_time, rel=0.2)
    assert "your runs contradict" in " ".join(own.warnings)
    assert for_user(predictor, "somebody new") is predictor
    assert for_user(ridge := RidgeQuadratic().fit(honest(9)), "eve") is ridge


def test_what_surprises_in_runs_of_a_distrusted_user_widens_no_interval_of_others() -> None:
    false = lies("threefold", 26)
    predictor = RobustPredictor("made", "c8").fit([*honest(40), *false[:20]])
    before = predictor.state.calibration
    for run in false[20:]:
        predictor.learn(run)
    assert predictor.state.doubted == {"eve"}
    assert predictor.state.calibration is before
    predictor.learn(of("user1", runs(1, seed=4)[0]))
    assert predictor.state.calibration is not before


def test_what_answers_distrusted_users_is_at_hand_before_they_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    *known, new = lies("threefold", 21)
    predictor = RobustPredictor("made", "c8").fit([*honest(40), *known])
    predictor.prepare()
    fits, fit = [], Model.fit

    def counted(runs: Any, *words: Any, **named: Any) -> Model:
        if len(runs) <= 21:  # of eve alone
            fits.append(set(predictor.state.own))
        return fit(runs, *words, **named)

    monkeypatch.setattr(Model, "fit", counted)
    alone = for_user(predictor, "eve")
    predictor.learn(of("user1", runs(1, seed=4)[0]))
    assert for_user(predictor, "eve") is alone
    predictor.learn(new)
    again = for_user(predictor, "eve")
    assert isinstance(again, RobustPredictor)
    assert again.window.seen == 21
    assert fits == [{"eve"}]


def test_the_first_user_of_an_application_may_be_the_liar() -> None:
    predictor = RobustPredictor("made", "c8").fit(lies("ten hours at N = 1", 12))
    for run in honest(12):
        predictor.learn(run)
    asked = honest(10, seed=5)
    errors = [
        abs(for_user(predictor, run.user).predict(run.request).execution_time / run.execution_time - 1) for run in asked
    ]
    assert predictor.state.doubted == {"eve"}
    assert np.median(errors) <= 0.3


def test_whom_a_model_believes_is_saved_with_it() -> None:
    predictor = RobustPredictor("made", "c8").fit([*honest(30), *lies("threefold", 12)])
    predictor.learn(of("user1", runs(1, seed=4)[0]))
    again = parse(dump(predictor))
    request = honest(1, seed=7)[0].request
    assert isinstance(again, RobustPredictor)
    assert (again.state.doubted, again.state.surprises) == (predictor.state.doubted, predictor.state.surprises)
    assert again.notices == predictor.notices != ()
    assert again.predict(request) == predictor.predict(request)
    assert for_user(again, "eve").predict(request) == for_user(predictor, "eve").predict(request)
    assert [run.user for run in again.window] == [run.user for run in predictor.window]
    assert json.loads(dump(RobustPredictor("made", "c8").fit(runs(30))))["users"] == []  # none where none is known


def test_no_user_drives_out_the_runs_of_the_others() -> None:
    window = RunWindow(honest(40), capacity=60)
    for run in lies("threefold", 400):
        window.add(run)
    kept = [run.user for run in window]
    assert len(kept) == 60
    assert sum(user != "eve" for user in kept) == 40


@pytest.mark.parametrize("factor", [0.7, 1.5])
@pytest.mark.parametrize("users", [1, 4])
def test_a_drift_of_all_is_noticed_said_and_followed_within_ten_runs(factor: float, users: int) -> None:
    predictor = RobustPredictor("made", "c8").fit(honest(40, users=users))
    for run in honest(10, seed=5, users=users):
        predictor.learn(replace(run, execution_time=factor * run.execution_time))
    asked = honest(20, seed=6, users=users)
    off = [predictor.predict(run.request).execution_time / (factor * run.execution_time) - 1.0 for run in asked]
    assert predictor.state.drift is not None
    assert predictor.state.drift.since == 40
    assert predictor.state.doubted == frozenset()
    assert "times as long as before" in predictor.notices[0]
    assert np.median(np.abs(off)) <= 0.08


def surprises(users: str, error: float, begin: int = 0) -> list[Surprise]:
    return [Surprise(begin + k, user, error * (-1) ** k if begin == 0 else error, 0.1) for k, user in enumerate(users)]


def test_the_change_of_one_user_among_others_is_no_drift() -> None:
    quiet = surprises("abcabcabcabc", 0.05)
    assert Drift.in_errors([*quiet, *surprises("aaaaaaaa", 0.5, 12)]) is None
    assert Drift.in_errors([*quiet, *surprises("abacabac", 0.5, 12)]) is not None
    one = [replace(each, error=0.5 if each.user == "a" else 0.05) for each in surprises("abcabcabcabc", 0.5, 12)]
    assert Drift.in_errors([*quiet, *one]) is None


def test_users_never_heard_before_are_no_witnesses_of_a_drift() -> None:
    quiet = surprises("abcabcabcabc", 0.05)
    assert Drift.in_errors([*quiet, *surprises("xyxyxyxy", 0.5, 12)]) is None


def test_one_wild_run_is_no_drift() -> None:
    assert Drift.in_errors([*surprises("aaaaaaaaaa", 0.05), Surprise(10, "a", 9.0, 0.1)]) is None
