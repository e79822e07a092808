from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from metasched.arrays import Floats
from metasched.placement.explaining.breakdown import breakdown
from metasched.predictors.abilities import layouts_of, under
from metasched.predictors.analytic.cloud.hardware import Hardware, Server
from metasched.predictors.analytic.cloud.predictor import CloudPredictor
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.predictors.analytic.spmd.application import Phase
from metasched.predictors.analytic.spmd.predictor import SpmdPredictor
from metasched.predictors.columns import Columns
from metasched.predictors.contract import Predictor
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.judging.conditions import observed
from metasched.predictors.judging.evaluation import evaluate
from metasched.predictors.judging.groups import Group
from metasched.predictors.judging.peers import RidgeQuadratic
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.tournament import Tournament, error_of
from metasched.records import InputError, Placement, Request, ResourceSet, Run, Settings
from tests.predictors.laid_out import laid_out

HARDWARE = Hardware(tuple(Server(f"s{i}", 4) for i in range(4)), word_time=8e-9, startup_time=1e-4)
PROFILES = [Profile(n, 100.0, 1e5, 0.02, 16.0 / n + 0.12, mean_distance=1.0, exchanges=50.0) for n in (2, 4, 8)]


def cloud() -> CloudPredictor:
    return CloudPredictor(PROFILES, HARDWARE, problem_size=1000)


def spmd_time(n: float, p: int, cpu: float, bw: float) -> float:
    return 1e-3 * n**1.2 / (p * cpu) + 2e-2 * n / bw / p + 0.02


def runs(count: int, seed: int = 1) -> list[Run]:
    """Runs of an application that is SPMD, with 1 % of noise."""
    draw = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        n, p = float(draw.integers(200, 2000)), int(2 ** draw.integers(0, 5))
        cpu, bw = float(draw.uniform(0.4, 1.0)), float(draw.uniform(40.0, 100.0))
        time = spmd_time(n, p, cpu, bw) * float(np.exp(0.01 * draw.standard_normal()))
        made.append(Run("a", "c", n, p, cpu, bw, time))
    return made


@pytest.mark.parametrize("make", [SpmdPredictor, cloud, lambda: Tournament([SpmdPredictor(), RidgeQuadratic()])])
def test_all_keep_the_contract_of_predictors(make: object) -> None:
    predictor = make()  # type: ignore[operator]
    assert isinstance(predictor, Predictor)
    predictor.fit(runs(40))
    one = predictor.predict(Request(1000, 4, 0.8, 80.0), level=0.8)
    many = predictor.predict_many(1000, [4, 8], 0.8, 80.0, level=0.8)
    assert many.execution_time.shape == (2,)
    assert many.execution_time[0] == pytest.approx(one.execution_time)
    assert one.interval.low < one.execution_time < one.interval.high
    before = one.execution_time
    for _ in range(10):
        predictor.learn(Run("a", "c", 1000, 4, 0.8, 80.0, 3.0 * before))
    assert predictor.predict(Request(1000, 4, 0.8, 80.0)).execution_time > before


def test_spmd_predictor_learns_an_spmd_application_from_few_runs() -> None:
    predictor = SpmdPredictor().fit(runs(30))
    for n, p, cpu, bw in ((500, 8, 0.9, 90.0), (1500, 32, 0.6, 60.0)):
        predicted = predictor.predict(Request(n, p, cpu, bw)).execution_time
        assert predicted == pytest.approx(spmd_time(n, p, cpu, bw), rel=0.1)


def test_cloud_predictor_answers_from_profiles_alone_and_runs_correct_it() -> None:
    predictor = cloud()
    time = predictor.predict(Request(1000, 8, 1.0, 1000.0)).execution_time
    assert predictor.predict(Request(1000, 8, 0.5, 1000.0)).execution_time > 1.5 * time
    assert predictor.predict(Request(1000, 8, 1.0, 100.0)).execution_time > time
    corrected = cloud().fit([Run("a", "c", 1000, 8, 1.0, 1000.0, 2 * time)] * 3)
    assert corrected.predict(Request(1000, 8, 1.0, 1000.0)).execution_time == pytest.approx(2 * time)


class Wrong(SpmdPredictor):
    """Answers too high by a factor that can be changed."""

    def __init__(self, name: str, factor: float) -> None:
        super().__init__()
        self.name, self.factor = name, factor

    def _expected(self, columns: Columns) -> Floats:
        return self.factor * super()._expected(columns)


def test_the_entrant_with_the_least_recent_error_answers_and_the_reason_names_all() -> None:
    good, bad = Wrong("good", 1.02), Wrong("bad", 1.5)
    tournament = Tournament([bad, good]).fit(runs(40))
    assert tournament.chosen is good
    assert tournament.reason.startswith("good predicts, mean error over the last 10 runs: good ")
    assert ", bad " in tournament.reason
    assert tournament.reason in tournament.predict(Request(1000, 4, 0.8, 80.0)).model


def test_no_error_is_named_before_one_is_known() -> None:
    tournament = Tournament([RobustPredictor(), RidgeQuadratic()]).fit(runs(3))
    assert tournament.reason.startswith("robust predicts: robust not judged yet, ")


def test_the_choice_follows_errors_that_change() -> None:
    first, second = Wrong("first", 1.0), Wrong("second", 1.2)
    tournament = Tournament([first, second]).fit(runs(30))
    assert tournament.chosen is first
    first.factor, second.factor = 1.4, 1.0
    for run in runs(25, seed=2):
        tournament.learn(run)
    assert tournament.chosen is second


def test_an_entrant_without_enough_runs_sits_out_until_it_has() -> None:
    tournament = Tournament([SpmdPredictor(), RidgeQuadratic()]).fit(runs(6))
    assert tournament.chosen.name == "ridge"
    assert "spmd does not take part (6 runs, expected at least 9 for the SPMD model)" in tournament.reason
    for run in runs(10, seed=3):
        tournament.learn(run)
    assert "sits out" not in tournament.reason


def test_a_run_without_measured_loads_decides_nothing() -> None:
    tournament = Tournament([RidgeQuadratic(), RobustPredictor()]).fit(runs(40))
    before = {name: [*errors] for name, errors in tournament.errors.items()}
    tournament.learn(replace(runs(1)[0], min_avg_avail_cpu=float("nan")))
    assert {name: [*errors] for name, errors in tournament.errors.items()} == before
    assert all(np.isfinite(errors).all() for errors in before.values())


def test_runs_with_parameters_are_predicted_with_them_and_the_first_of_them_decides_nothing() -> None:
    def stepped(run: Run, steps: int) -> Run:
        return replace(run, execution_time=steps * run.execution_time, extra={"parameter:steps": str(steps)})

    known = [stepped(run, 1 + number % 4) for number, run in enumerate(runs(60))]
    tournament = Tournament([RobustPredictor()]).fit(known)
    assert len(tournament.errors["robust"]) == 15
    assert max(tournament.errors["robust"]) < 0.5
    new = replace(runs(1)[0], extra={"parameter:steps": "2", "parameter:word": "x"})
    assert error_of(tournament.entrants[0], new) is None


def test_many_are_predicted_with_the_parameters_that_the_chosen_entrant_knows() -> None:
    tournament = Tournament([RobustPredictor(), PublishedPredictor()]).fit(laid_out(40))
    asked = laid_out(1, seed=1)[0].request
    one, view = tournament.predict(asked), under(tournament, asked.settings)
    columns = asked.problem_size, asked.processors, asked.available_cpu, asked.available_bandwidth
    assert tournament.chosen.name == view.chosen.name == "robust"  # type: ignore[attr-defined]
    assert view.predict_many(*columns).execution_time[0] == pytest.approx(one.execution_time)
    assert tournament.predict_many(*columns).execution_time[0] != pytest.approx(one.execution_time, rel=0.1)
    assert layouts_of(tournament) == layouts_of(tournament.chosen) != frozenset()
    with pytest.raises(InputError, match="parameter 'colour' is unknown"):
        under(tournament, Settings.of(parameters={"colour": "red"}))


def test_a_chosen_entrant_that_knows_no_parameters_says_that_they_do_not_count() -> None:
    tournament = Tournament([PublishedPredictor()]).fit(runs(20))
    asked = Request(1000, 4, 0.8, 80.0, Settings.of(parameters={"steps": 10}))
    assert "steps 10 is given, but published models do not depend on it" in tournament.predict(asked).warnings
    assert not any("steps" in said for said in tournament.predict(replace(asked, settings=Settings())).warnings)


def test_what_predicts_nothing_is_infinitely_wrong() -> None:
    assert error_of(SpmdPredictor(), runs(1)[0]) == float("inf")


def test_a_tournament_is_evaluated_like_any_predictor_and_close_to_its_best_entrant() -> None:
    group = Group("made", "c8", tuple(runs(30)), tuple(runs(20, seed=4)))

    def ppe(predictor: object) -> float:
        return evaluate(lambda _: predictor, [group], observed).summary()["ppe_mean"]  # type: ignore[arg-type,return-value]

    alone = ppe(SpmdPredictor())
    assert ppe(Tournament([RidgeQuadratic(), SpmdPredictor()])) < 1.5 * alone + 0.5


def test_explaining_a_placement_shows_the_reason_of_the_choice() -> None:
    tournament = Tournament([SpmdPredictor(), RidgeQuadratic()]).fit(runs(40))
    chosen = ResourceSet("c", ("n0", "n1"), 2, 0.8, 80.0)
    placement = Placement(chosen, tournament.predict(Request(1000, 2, 0.8, 80.0)))
    parts = breakdown(placement, tournament, 1000)
    assert any(tournament.reason in part.how for part in parts)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: SpmdPredictor().fit(runs(4)), "4 runs, expected at least 9"),
        (lambda: SpmdPredictor().fit([replace(run, processors=4) for run in runs(12)]), "same number of processors"),
        (lambda: SpmdPredictor(Phase(1.0, io="clustered"), disks=3).fit(runs(12)), "clustered model is not defined"),
        (lambda: SpmdPredictor().predict(Request(1, 1, 1.0, 1.0)), "has learned nothing yet"),
        (lambda: CloudPredictor(PROFILES[:2], HARDWARE, problem_size=1), "2 profiles, expected at least 3"),
        (lambda: Tournament([]), "expected at least one"),
        (lambda: Tournament([SpmdPredictor(), SpmdPredictor()]), "names that differ"),
        (lambda: Tournament([SpmdPredictor()]).fit(runs(3)), "spmd: 3 runs, expected at least 9"),
        (lambda: Tournament([SpmdPredictor()]).chosen, "has learned nothing yet"),
    ],
)
def test_what_cannot_be_fitted_or_asked_gets_one_clear_line(made: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made()  # type: ignore[operator]
