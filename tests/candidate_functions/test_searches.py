from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from candidate_functions import SCALABILITY, exhaustive, staged
from candidate_functions.exhaustive import ALL, exhaustive_search
from candidate_functions.family import Family
from candidate_functions.square_root import SquareRootSums
from candidate_functions.staged import Limits, staged_search
from candidate_functions.terms import Observations, TermTable, evaluate, names
from tests.candidate_functions.made import KNOWN, runs


def test_a_full_search_tries_as_many_combinations_as_the_paper() -> None:
    found = staged_search(runs(noise=0.3), limits=Limits(tolerance=1e9))
    assert found.tried == (77, 12_320, 5_120)
    assert len(found.combinations) == 1000
    assert len(np.unique(found.combinations, axis=0)) == 1000


def test_the_staged_search_finds_the_model_that_made_the_runs() -> None:
    found = staged_search(runs())
    assert names(KNOWN) in [names(combination) for combination in found.combinations[:3]]
    assert found.standard_error[0] == pytest.approx(0.0, abs=1e-9)


def test_the_sorted_list_is_sorted_and_its_errors_are_those_of_its_coefficients() -> None:
    training = runs(noise=0.1)
    found = staged_search(training)
    assert (np.diff(found.standard_error) >= 0).all()
    parallel = training.where(training.processors > 1)
    for position in (0, len(found.combinations) - 1):
        where = (parallel.problem_size, parallel.processors, parallel.cpu, parallel.bw)
        predicted = evaluate(found.combinations[position], found.coefficients[position], *where)
        error = np.sqrt(((parallel.time - predicted) ** 2).sum() / (len(parallel) - 2))
        assert found.standard_error[position] == pytest.approx(error, rel=1e-9)


def test_what_a_stage_keeps_lies_within_a_fifth_of_its_best() -> None:
    found, everything = staged_search(runs(noise=0.1)), staged_search(runs(noise=0.1), limits=Limits(tolerance=1e9))
    _, each = np.unique(found.combinations[:, :3], axis=0, return_counts=True)
    assert each.max() <= 50
    assert found.standard_error[-1] <= 1.2 * found.standard_error[0] < everything.standard_error[-1]


def test_an_application_that_needs_several_processors_takes_the_second_route() -> None:
    found = staged_search(runs(counts=(4, 8, 16)))
    assert found.route == "minimum processors"
    assert found.tried[0] == 77 * 77 * 8
    assert len(found.computation) == 0
    assert found.standard_error[0] == pytest.approx(0.0, abs=1e-9)


def test_runs_on_one_processor_alone_are_refused() -> None:
    with pytest.raises(ValueError, match="all runs are on one processor"):
        staged_search(runs(counts=(1,)))


def test_the_exhaustive_search_finds_the_model_that_made_the_runs() -> None:
    found = exhaustive_search(runs(noise=0.001), best=5)
    assert found.tried == ALL == 12_142_592
    assert names(KNOWN) == names(found.combinations[0])
    np.testing.assert_allclose(found.coefficients[0], [1e-4, 1e-2], rtol=0.01)


@pytest.mark.parametrize("nonnegative", [True, False])
@pytest.mark.parametrize("relative", [True, False])
def test_the_exhaustive_search_agrees_with_brute_force_on_small_families(
    monkeypatch: pytest.MonkeyPatch, relative: bool, nonnegative: bool
) -> None:
    small = {
        "COMPLEXITY": Family("N", [exhaustive.COMPLEXITY[name] for name in ("1", "n^1", "n^3/2", "n^2", "n^2_log^1")]),
        "SCALABILITY": Family("P", [exhaustive.SCALABILITY[name] for name in ("p", "p^2", "log", "1/p", "1/log")]),
    }
    table_at = TermTable.at

    def small_table(observed: Observations) -> TermTable:
        table = table_at(observed)
        table.complexity = small["COMPLEXITY"].values(observed.problem_size)
        table.inverse_scalability = small["SCALABILITY"].reciprocals(observed.processors)
        return table

    for name, family in small.items():
        monkeypatch.setattr(exhaustive, name, family)
    monkeypatch.setattr(TermTable, "at", small_table)
    monkeypatch.setattr(exhaustive, "_BLOCK", 7)
    training = runs(noise=0.1, n=24)
    found = exhaustive_search(training, best=30, relative=relative, nonnegative=nonnegative)

    everything = np.array(
        [
            [comp, comm, bw, pcomp, pcomm]
            for comp in range(5)
            for comm in range(5)
            for bw in range(8)
            for pcomp in range(5)
            for pcomm in range(5)
        ],
        dtype=np.int16,
    )
    weight = 1 / training.time if relative else np.ones(len(training))
    columns = small_table(training).columns(everything) * weight
    fit = SquareRootSums.of(np.where(np.isfinite(columns), columns, np.inf), training.time * weight).solve(
        nonnegative=nonnegative
    )
    error = np.sqrt(np.sort(np.unique(fit.sse[np.isfinite(fit.sse)].round(12))) / (len(training) - 2))
    best = np.unique(found.standard_error.round(9))
    np.testing.assert_allclose(best[:10], np.unique(error.round(9))[:10], rtol=1e-6)


def test_the_exhaustive_search_needs_little_memory() -> None:
    training = runs(n=60)
    tracemalloc.start()
    exhaustive_search(training, best=1000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6


@pytest.mark.parametrize(
    ("term", "functions"), [(0, [0, 3]), (1, [1, 2, 4])], ids=["computation alone", "communication alone"]
)
def test_models_of_one_term_are_equal_whatever_the_functions_of_the_other(term: int, functions: list[int]) -> None:
    one, other = np.array([1, 2, 3, 4, 5]), np.array([1, 2, 3, 4, 5])
    other[[place for place in range(5) if place not in functions]] += 1
    coefficients = np.zeros((2, 2))
    coefficients[:, term] = 2.0, 3.0
    assert exhaustive._first_of_equals(np.array([one, other]), coefficients).tolist() == [0]
    for place in functions:
        changed = other + np.eye(5, dtype=int)[place]
        assert exhaustive._first_of_equals(np.array([one, changed]), coefficients).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("combination", "without"),
    [([0, 4, 5, 0, 6], [0.0, 2.0]), ([4, 0, 0, 5, 0], [2.0, 0.0])],
    ids=["computation", "communication"],
)
def test_a_model_without_a_term_is_not_one_whose_term_has_the_first_functions(
    combination: list[int], without: list[float]
) -> None:
    combinations, coefficients = np.array([combination] * 2), np.array([without, [2.0, 3.0]])
    assert exhaustive._first_of_equals(combinations, coefficients).tolist() == [0, 1]
    assert exhaustive._first_of_equals(combinations, np.array([without] * 2)).tolist() == [0]


def test_two_runs_are_too_few_for_the_exhaustive_search() -> None:
    with pytest.raises(ValueError, match="2 runs, expected at least 3"):
        exhaustive_search(runs(n=2))


def test_searches_survive_a_bandwidth_below_one() -> None:
    training = runs(n=40)
    slow = Observations.of(training.problem_size, training.processors, training.cpu, training.bw / 200, training.time)
    for combinations in (exhaustive_search(slow, best=20).combinations, staged_search(slow).combinations):
        assert len(combinations)
        assert not np.isin(combinations[:, 2], (6, 7)).any()


@pytest.mark.parametrize("unit", [1.0, 60.0])
def test_the_second_route_drops_the_functions_that_are_mostly_poor_in_any_unit_of_time(unit: float) -> None:
    """Rows are computation functions; columns two communication functions with two bandwidth functions each."""
    limits = Limits(tolerance=0.2, strikes=0.7)
    error = np.array([[1.0, 1.1, 1.0, 5.0], [1.2, 1.2, 1.2, 5.0], [9.0, 9.0, 1.0, 9.0]]) * unit
    kept = staged._eliminate(error, 2, limits)
    assert np.isinf(kept[2]).all()  # three of its four are poor
    assert kept[:2].tolist() == error[:2].tolist()  # 4 of 6 and fewer are poor in the columns
    poor = np.array([[1.0, 9.0], [9.0, 9.0]])
    assert np.isfinite(staged._eliminate(poor, 2, limits)).tolist() == [[True, False], [False, False]]
    assert np.isfinite(staged._eliminate(np.array([[1.0, 9.0, 9.0, 9.0]]), 2, limits)[0, :2]).all()  # never all


@pytest.mark.parametrize("search", [exhaustive_search, staged_search])
def test_which_of_equals_comes_first_does_not_depend_on_rounding(search) -> None:
    """One bandwidth, and two processor counts, of which log(P) is a multiple: many formulas explain the runs."""
    n, p = np.tile(np.linspace(100.0, 900.0, 9), 2), np.repeat([2, 4], 9)
    time = (1e-3 * n**1.5 / p + 2e-2 * n * p) * np.random.default_rng(7).uniform(0.98, 1.02, 18)
    found = set()
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(18)
        seen = Observations.of(n[order], p[order], np.ones(18), np.full(18, 90.0), time[order])
        found.add(tuple(map(tuple, search(seen).combinations[:5].tolist())))
    assert len(found) == 1
    assert SCALABILITY.index("log") not in [*found.pop()[0][3:]]
