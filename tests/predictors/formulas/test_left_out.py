"""The first scores of a published model are of each training run left out in turn, and fitted again without it."""

from __future__ import annotations

import numpy as np
import pytest

from candidate_functions.terms import TermTable
from metasched.predictors.formulas.published import PublishedPredictor, _leave_one_out_scores
from metasched.predictors.formulas.sorted_list import SortedList
from metasched.records import Run


def runs(seed: int, alone: bool, traffic: float = 0.2) -> list[Run]:
    """Of a law with noise, on one processor too or on several only, that send much, little or nothing."""
    draw = np.random.default_rng(seed)
    counts = (1, 2, 4, 8) if alone else (2, 4, 8)
    found = []
    for n in (100.0, 200.0, 400.0, 800.0):
        for p in counts:
            cpu, width = draw.uniform(0.4, 1.0), draw.uniform(20.0, 90.0)
            time = (1e-3 * n**2 / (cpu * p) + (p > 1) * traffic * n / width) * np.exp(draw.normal(0.0, 0.05))
            found.append(Run("a", "c", n, p, cpu, width, float(time)))
    return found


def by_fitting_again(models: SortedList, chosen: list[Run]) -> list[float]:
    """Distances on the logarithm, in tenths, by least squares without each run; 30 where it is predicted below 0."""
    observed = PublishedPredictor("a", "c").fit(chosen).window.observations()
    terms = TermTable.at(observed).columns(models.combinations[:1])[0].T
    terms = terms[:, models.coefficients[0] != 0.0]
    weight = 1.0 / observed.time if models.relative else np.ones(len(chosen))
    scores = []
    for left in range(len(chosen)):
        kept = np.arange(len(chosen)) != left
        factors, *_ = np.linalg.lstsq((terms * weight[:, None])[kept], (observed.time * weight)[kept], rcond=None)
        said = float(terms[left] @ factors)
        scores.append(abs(np.log(observed.time[left] / said)) / 0.1 if said > 0.0 else 30.0)
    return scores


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("alone", "traffic"), [(False, 0.2), (True, 0.2), (False, 0.0)])
def test_the_scores_are_those_of_fitting_again_without_each_run(seed: int, alone: bool, traffic: float) -> None:
    chosen = runs(seed, alone, traffic)
    predictor = PublishedPredictor("a", "c").fit(chosen)
    state, expected = predictor.state, list[float]()
    assert (state.alone is not None) is alone
    for models, own in ((state.alone, [r for r in chosen if r.processors == 1]), (state.parallel, None)):
        if models is not None:
            part = own if own is not None else [r for r in chosen if r.processors > 1 or state.alone is None]
            expected += by_fitting_again(models, part)
    found = _leave_one_out_scores(state, predictor.window.observations())
    assert found.tolist() == pytest.approx(expected, rel=1e-6)
