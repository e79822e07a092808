from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candidate_functions import BANDWIDTH, COMPLEXITY, SCALABILITY, Family
from candidate_functions.terms import FAMILIES, TermTable, evaluate, formula, names, positions


def test_there_are_as_many_functions_as_the_paper_has() -> None:
    assert (len(COMPLEXITY), len(BANDWIDTH), len(SCALABILITY)) == (77, 8, 16)


@pytest.mark.parametrize("family", [COMPLEXITY, BANDWIDTH, SCALABILITY], ids=lambda family: family.variable)
def test_functions_of_a_family_have_names_formulas_and_values_of_their_own(family: Family) -> None:
    assert len({function.name for function in family}) == len(family)
    assert len({function.formula for function in family}) == len(family)
    values = family.values(np.array([2.0, 7.0, 64.0]))
    shape = values / values[:, :1]
    assert len(np.unique(shape.round(9), axis=0)) == len(family)


@pytest.mark.parametrize("family", [COMPLEXITY, BANDWIDTH, SCALABILITY], ids=lambda family: family.variable)
def test_a_reciprocal_is_one_over_the_function(family: Family) -> None:
    x = np.array([2.0, 7.0, 64.0])
    np.testing.assert_allclose(family.values(x) * family.reciprocals(x), 1.0, rtol=1e-12)


@given(st.floats(1e-30, 1e30), st.floats(1.0, 2.0))
def test_complexity_functions_are_positive_and_do_not_decrease(n: float, factor: float) -> None:
    values = COMPLEXITY.values(np.array([n, n * factor]))
    assert (values > 0).all()
    assert (values[:, 1] >= values[:, 0] * (1 - 1e-12)).all()


def test_complexity_functions_reach_from_below_the_logarithm_to_the_fourth_power() -> None:
    growth = np.log2(np.divide(*COMPLEXITY.values(np.array([2e6, 1e6])).T))
    logarithm = growth[COMPLEXITY.index("log^1")]
    assert growth.min() < logarithm
    assert 4.0 <= growth.max() < 4.2
    for name in ("n^1", "n^1_log^1", "n^3/2", "n^2", "n^2_log^1", "n^5/2", "n^3"):
        assert name in [function.name for function in COMPLEXITY]


TABLE_1 = [lambda p, e=e: p**e for e in (0.5, 1, 1.5, 2, 2.5, 3)] + [np.log, lambda p: p * np.log(p)]
TABLE_2 = [lambda bw, e=e: bw**e for e in (0.5, 1, 1.5, 2, 2.5, 3)] + [np.log, lambda bw: bw * np.log(bw)]


def test_scalability_functions_are_those_of_table_1() -> None:
    p = np.array([2.0, 3.0, 8.0, 1000.0])
    expected = [f(p) for f in TABLE_1] + [1 / f(p) for f in TABLE_1]
    np.testing.assert_allclose(SCALABILITY.values(p), expected, rtol=1e-13)


def test_bandwidth_functions_are_those_of_table_2() -> None:
    bw = np.array([1.5, 10.0, 1e4])
    np.testing.assert_allclose(BANDWIDTH.values(bw), [f(bw) for f in TABLE_2], rtol=1e-13)


@given(st.integers(1, 10**6), st.floats(1e-6, 1e6))
def test_reciprocals_are_never_nan_and_say_infinity_where_not_defined(p: int, bw: float) -> None:
    for family, x in ((SCALABILITY, float(p)), (BANDWIDTH, bw)):
        values, reciprocals = family.values(np.array([x])), family.reciprocals(np.array([x]))
        assert not np.isnan(values).any()
        assert not np.isnan(reciprocals).any()
        regular = (values > 1e-300) & np.isfinite(values)
        np.testing.assert_allclose(reciprocals[regular], 1 / values[regular], rtol=1e-12)


def test_dividing_by_log_p_is_undefined_on_one_processor_and_by_its_inverse_is_zero() -> None:
    at_one = SCALABILITY.reciprocals(np.array([1.0]))[:, 0]
    assert np.isinf(at_one[[SCALABILITY.index("log"), SCALABILITY.index("p_log")]]).all()
    assert (at_one[[SCALABILITY.index("1/log"), SCALABILITY.index("1/p_log")]] == 0).all()


def test_log_of_bandwidth_is_undefined_at_one_and_below() -> None:
    at = BANDWIDTH.reciprocals(np.array([0.5, 1.0]))
    assert np.isinf(at[[BANDWIDTH.index("log"), BANDWIDTH.index("bw_log")]]).all()
    assert np.isfinite(at[:6]).all()


combinations = st.tuples(*(st.integers(0, len(family) - 1) for family in FAMILIES))


@given(combinations)
def test_names_and_positions_are_inverse(combination: tuple[int, ...]) -> None:
    assert tuple(positions(names(combination))) == combination


@given(
    combinations,
    st.floats(1, 1e6),
    st.integers(1, 4096),
    st.floats(0.01, 1),
    st.floats(0.01, 1e5),
    st.floats(0.0, 10.0),
)
def test_evaluating_one_model_agrees_with_its_columns(
    combination: tuple[int, ...], n: float, p: int, cpu: float, bw: float, b: float
) -> None:
    where = [np.array([value], dtype=float) for value in (n, p, cpu, bw)]
    columns = TermTable(*where).columns(np.array([combination], dtype=np.int16))[0, :, 0]
    coefficients = np.array([2.0, b])
    expected = 2.0 * columns[0] + (b * columns[1] if b else 0.0)
    found = evaluate(combination, coefficients, *where)[0]
    assert found == expected or found == pytest.approx(expected, rel=1e-12)
    assert not np.isnan(found)


def test_a_single_processor_sends_nothing() -> None:
    table = TermTable(np.array([100.0]), np.array([1.0]), np.array([1.0]), np.array([0.5]))
    everything = np.array(
        [[0, comm, bw, 0, p] for comm in (0, 76) for bw in range(8) for p in range(16)], dtype=np.int16
    )
    assert (table.columns(everything)[:, 1] == 0.0).all()


def test_a_formula_leaves_out_a_term_with_coefficient_zero() -> None:
    assert formula([6, 6, 1, 1, 1], [2.0, 0.0]) == "2 (N)/(cpu · P)"
    assert formula([6, 6, 1, 1, 1], [0.0, 0.0]) == "0"


@pytest.mark.parametrize("bad", [["n^1"], ["n^1", "n^1", "bw", "p", "nonsense"]])
def test_unknown_names_are_refused(bad: list[str]) -> None:
    with pytest.raises(ValueError, match=r"combination has 1|no candidate function of P is named 'nonsense'"):
        positions(bad)


@pytest.mark.parametrize("named", [["n^1", "n^1", "bw", "p"], ["n^1", "n^1", "bw", "p", "1/p_log", "p"], []])
def test_a_combination_has_five_functions(named: list[str]) -> None:
    with pytest.raises(ValueError, match=f"^a combination has {len(named)} functions, expected 5$"):
        positions(named)
