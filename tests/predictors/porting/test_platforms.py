"""Runs from elsewhere: a platform with few runs, or none, borrows the shape from the others and learns its scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from metasched.predictors.abilities import computing_share, under
from metasched.predictors.porting.platforms import ENOUGH, PlatformsPredictor, borrower
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Request, Run
from metasched.store.documents import dump, parse
from tests.predictors.laid_out import laid_out
from tests.predictors.made import runs

SCALES = {"old": 1.0, "slow": 2.0, "new": 0.4}


def on(platform: str, count: int, seed: int = 0) -> list[Run]:
    return [
        replace(run, cluster=platform, execution_time=SCALES[platform] * run.execution_time)
        for run in runs(count, seed=seed)
    ]


@pytest.fixture(scope="module")
def known() -> PlatformsPredictor:
    return PlatformsPredictor("made").fit([*on("old", 30), *on("slow", 30, 1)])


def borrowing(known: PlatformsPredictor) -> RobustPredictor:
    found = borrower("made", "new", known.models)
    assert found is not None
    return found


def errors(predictor: RobustPredictor, asked: list[Run]) -> np.ndarray:
    return np.array([abs(predictor.predict(run.request).execution_time / run.execution_time - 1.0) for run in asked])


def widths(predictor: RobustPredictor, asked: list[Run]) -> np.ndarray:
    intervals = [predictor.predict(run.request).interval for run in asked]
    return np.log([one.high / one.low for one in intervals])


def test_before_any_run_the_interval_is_wide_and_honest(known: PlatformsPredictor) -> None:
    found = known.on("new")
    asked = on("new", 20, 7)
    said = [found.predict(run.request) for run in asked]
    assert all(one.interval.holds(run.execution_time) for one, run in zip(said, asked, strict=True))
    width = np.median([one.interval.high / one.interval.low for one in said])
    own = known.on("old").predict(asked[0].request).interval
    assert 5.0 < width < 60.0
    assert own.high / own.low < 1.5
    assert "0 runs on new: runs on old, slow are used too" in said[0].warnings[0]


def test_a_platform_that_borrows_is_fitted_again_only_once_a_model_has_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    learned, more, fits, fit = [*on("old", 8), *on("slow", 12, 1)], on("old", 1, 4)[0], [], RobustPredictor.fit

    def counted(self: RobustPredictor, taught: Iterable[Run]) -> RobustPredictor:
        fits.append(self.cluster)
        return fit(self, taught)

    predictor = PlatformsPredictor("made").fit(learned)
    monkeypatch.setattr(RobustPredictor, "fit", counted)
    asked = [run.request for run in on("slow", 3, 7)]
    before = [predictor.predict(request) for request in asked]
    predictor.predict_many([500.0], [4], [0.9], [90.0])
    assert fits == ["slow"]
    predictor.learn(more)
    after = [predictor.predict(request) for request in asked]
    assert fits == ["slow", "slow"]
    assert after == [PlatformsPredictor("made", predictor.models).predict(request) for request in asked] != before


@pytest.mark.parametrize(("count", "error"), [(1, 0.15), (3, 0.10)])
def test_one_run_gives_the_scale_and_three_do_better_than_alone(
    known: PlatformsPredictor, count: int, error: float
) -> None:
    own, asked = on("new", count, 3), on("new", 30, 7)
    borrowed = borrowing(known).fit(own)
    alone = RobustPredictor("made", "new").fit(own)
    assert np.median(errors(borrowed, asked)) <= error
    assert errors(borrowed, asked).mean() < 0.5 * errors(alone, asked).mean()


def test_what_is_learned_there_counts_more_and_more(known: PlatformsPredictor) -> None:
    def other_shape(run: Run) -> Run:
        return replace(run, execution_time=run.execution_time * run.processors**0.3)

    borrowed = borrowing(known).fit(map(other_shape, on("new", 2, 3)))
    asked = [*map(other_shape, on("new", 20, 7))]
    before = errors(borrowed, asked).mean()
    for run in map(other_shape, on("new", 24, 5)):
        borrowed.learn(run)
    assert errors(borrowed, asked).mean() < 0.6 * before
    assert errors(borrowed, asked).mean() < 0.12


def test_a_platform_with_runs_enough_answers_by_itself(known: PlatformsPredictor) -> None:
    assert len(known.models["old"].window) >= ENOUGH
    assert known.on("old") is known.models["old"]
    alone = PlatformsPredictor("made").fit(on("old", 2))
    assert alone.on("old") is alone.models["old"]
    with pytest.raises(InputError, match="no platform has 3 runs of made to predict from on new"):
        alone.on("new")


def test_one_and_many_and_the_split_agree(known: PlatformsPredictor) -> None:
    borrowed = borrowing(known).fit(on("new", 3, 3))
    request = Request(1500, 8, 0.7, 50.0)
    one = borrowed.predict(request)
    many = borrowed.predict_many([1500, 1500], [8, 4], [0.7, 0.7], [50.0, 50.0])
    terms = borrowed.breakdown(request)
    assert many.execution_time[0] == pytest.approx(one.execution_time)
    assert sum(term.seconds for term in terms) == pytest.approx(one.execution_time)
    assert terms[0].seconds / one.execution_time == pytest.approx(computing_share(borrowed, 1500, 8, 0.7, 50.0)[0])


def test_the_platform_with_most_runs_answers_for_many_under_settings_too() -> None:
    several = PlatformsPredictor("cg").fit([*laid_out(30), *(replace(run, cluster="d16") for run in laid_out(5))])
    asked = laid_out(1, seed=1)[0].request
    many = under(several, asked.settings).predict_many(
        asked.problem_size, asked.processors, asked.available_cpu, asked.available_bandwidth
    )
    assert many.execution_time[0] == pytest.approx(several.predict(asked).execution_time)


def test_models_of_several_platforms_are_saved_and_answer_the_same(known: PlatformsPredictor) -> None:
    several = PlatformsPredictor("made").fit([*on("old", 25), *on("new", 3, 3)])
    again = parse(dump(several))
    request = Request(1500, 8, 0.7, 50.0)
    assert isinstance(again, PlatformsPredictor)
    for platform in ("old", "new", "never"):
        assert again.on(platform).predict(request) == several.on(platform).predict(request)
    with pytest.raises(InputError, match="learned nothing"):
        dump(PlatformsPredictor("made"))


def test_what_was_borrowed_is_saved_with_the_model(known: PlatformsPredictor) -> None:
    borrowed = borrowing(known).fit(on("new", 3, 3))
    again = parse(dump(borrowed))
    request = Request(1500, 8, 0.7, 50.0)
    assert isinstance(again, RobustPredictor)
    assert {run.cluster for run in again.lent} == {"old", "slow"}
    assert again.predict(request) == borrowed.predict(request)


def test_a_platform_unlike_the_others_teaches_them_little(known: PlatformsPredictor) -> None:
    def jumping(run: Run) -> Run:
        factor = 10.0 if run.processors > 4 else 1.0
        return replace(run, cluster="odd", execution_time=factor * run.execution_time)

    own, asked = on("new", 3, 3), on("new", 30, 7)
    lent = [*known.models["old"].teaching, *known.models["slow"].teaching]
    like = RobustPredictor("made", "new").borrowing(lent).fit(own)
    odd = RobustPredictor("made", "new").borrowing([*lent, *map(jumping, on("old", 30, 5))]).fit(own)
    assert errors(odd, asked).mean() < errors(like, asked).mean() + 0.02


def wild(known: list[Run], which: int, factor: float) -> list[Run]:
    one = replace(known[which], execution_time=factor * known[which].execution_time)
    return [*known[:which], one, *known[which + 1 :]]


@pytest.mark.parametrize("factor", [1 / 3, 3.0, 1000.0])
@pytest.mark.parametrize("count", [3, 10])
def test_a_wild_run_on_another_platform_hardly_counts(known: PlatformsPredictor, count: int, factor: float) -> None:
    own, asked = on("new", count, 3), on("new", 30, 7)
    old, slow = known.models["old"].teaching, known.models["slow"].teaching
    without = RobustPredictor("made", "new").borrowing([*old, *slow]).fit(own)
    with_it = RobustPredictor("made", "new").borrowing([*wild([*old], 11, factor), *slow]).fit(own)
    assert errors(with_it, asked).mean() < errors(without, asked).mean() + 0.01
    assert np.median(widths(with_it, asked) / widths(without, asked)) < 1.3


@pytest.mark.parametrize("factor", [1 / 3, 3.0, 1000.0])
@pytest.mark.parametrize("count", [7, 14])
def test_a_wild_run_among_own_ones_hardly_counts_beside_those_of_others(
    known: PlatformsPredictor, count: int, factor: float
) -> None:
    own, asked = on("new", count, 3), on("new", 30, 7)
    without, with_it = borrowing(known).fit(own), borrowing(known).fit(wild(own, 4, factor))
    assert errors(with_it, asked).mean() < errors(without, asked).mean() + 0.01
    assert np.median(widths(with_it, asked) / widths(without, asked)) < 1.5


@pytest.mark.parametrize("factor", [1 / 1000, 1000.0])
def test_an_absurd_run_hardly_counts_where_only_others_show_it(known: PlatformsPredictor, factor: float) -> None:
    own, asked = on("new", 3, 3), on("new", 30, 7)
    without, with_it = borrowing(known).fit(own), borrowing(known).fit(wild(own, 1, factor))
    assert errors(with_it, asked).mean() < errors(without, asked).mean() + 0.02


def test_borrowed_runs_leave_as_own_ones_come(known: PlatformsPredictor) -> None:
    model = borrowing(known).fit(on("new", 3, 3))
    before = len(model.known(frozenset()).lent)
    for run in on("new", 5, 4):
        model.learn(run)
    assert len(model.known(frozenset()).lent) == min(before, 96 - 2 * 8)
    model.borrowing(()).learn(on("new", 1, 5)[0])
    assert model.known(frozenset()).lent == ()


def test_runs_go_to_the_model_of_their_platform(known: PlatformsPredictor) -> None:
    several = PlatformsPredictor("made").fit(on("old", 5))
    odd = [replace(run, problem_size=1e80, cluster=platform) for platform in ("odd", "old") for run in on("old", 1)]
    for run in [*on("new", 2, 3), *on("old", 1, 4), *odd]:
        several.learn(run)
    assert {name: model.window.seen for name, model in several.models.items()} == {"old": 6, "new": 2}
    assert several.cluster == "old"


def test_scaling_that_other_platforms_share_is_carried() -> None:
    # From eight processors on all are faster than the formula says, as where data begin to fit into caches.
    def stepped(platform: str, most: int) -> list[Run]:
        return [
            Run("made", platform, 1000.0, p, 1.0, 1000.0, SCALES[platform] * 100.0 / p * (0.85 if p >= 8 else 1.0))
            for p in (1, 2, 4, 8, 16)
            if p <= most
        ]

    lent = [*stepped("old", 16), *stepped("slow", 16)]
    borrowed = RobustPredictor("made", "new").borrowing(lent).fit(stepped("new", 4))
    alone = RobustPredictor("made", "new").fit(stepped("new", 4))
    asked = stepped("new", 16)[3:]
    assert errors(borrowed, asked).max() < 0.05
    assert errors(alone, asked).min() > 0.2


def test_a_platform_with_few_runs_learns_them_beside_those_that_it_borrows() -> None:
    sizes = [(n, p) for n in (100.0, 200.0, 400.0, 800.0) for p in (1, 2, 4)]
    made = [Run("cg", "old", n, p, 1.0, 90.0, 1e-3 * n**2 / p) for n, p in sizes]
    few = [Run("cg", "new", n, p, 1.0, 90.0, 9e-3 * n**2 / p) for n, p in sizes[:3]]
    found = PlatformsPredictor("cg").fit([*made, *few]).on("new")
    assert found.teaching == tuple(few)
    assert found.predict(Request(800.0, 4, 1.0, 90.0)).execution_time == pytest.approx(9e-3 * 800.0**2 / 4, rel=0.1)
