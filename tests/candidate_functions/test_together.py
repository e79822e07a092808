from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from candidate_functions.terms import FAMILIES, evaluate
from candidate_functions.together import PIECE, Together

CONDITIONS = (
    np.array([0.5, 1.0, 100.0, 3e4, 1e9, 250.0]),
    np.array([1.0, 4.0, 1.0, 2.0, 1e5, 32.0]),
    np.array([1.0, 0.5, 0.01, 0.9, 1.3, 0.25]),
    np.array([90.0, 0.5, 1.0, 1e4, 300.0, 1e-3]),
)

combinations = st.tuples(*(st.integers(0, len(family) - 1) for family in FAMILIES))
coefficients = st.tuples(*(st.one_of(st.just(0.0), st.floats(1e-9, 1e3)) for _ in range(2)))


@given(st.lists(st.tuples(combinations, coefficients), min_size=1, max_size=12))
def test_many_models_together_tell_what_each_tells_alone(
    models: list[tuple[tuple[int, ...], tuple[float, ...]]],
) -> None:
    chosen = np.array([combination for combination, _ in models], dtype=np.int16)
    scales = np.array([pair for _, pair in models])
    expected = [evaluate(each, pair, *CONDITIONS) for each, pair in zip(chosen, scales, strict=True)]
    np.testing.assert_allclose(Together.of(chosen, scales)(*CONDITIONS), expected, rtol=1e-11)


@pytest.mark.parametrize("family", range(5))
def test_every_function_of_every_family_is_the_product_of_its_powers(family: int) -> None:
    chosen = np.full((len(FAMILIES[family]), 5), 1, dtype=np.int16)
    chosen[:, family] = np.arange(len(FAMILIES[family]))
    both = np.ones((len(chosen), 2))
    expected = [evaluate(each, pair, *CONDITIONS) for each, pair in zip(chosen, both, strict=True)]
    np.testing.assert_allclose(Together.of(chosen, both)(*CONDITIONS), expected, rtol=1e-11)


def test_what_is_too_large_for_any_number_is_infinite() -> None:
    huge = np.array([[1e200], [4.0], [1.0], [90.0]])
    assert Together.of(np.array([[22, 22, 1, 1, 1]]), np.ones((1, 2)))(*huge).tolist() == [[np.inf]]


def test_more_conditions_than_a_piece_holds_are_told_in_their_order() -> None:
    size = np.linspace(100.0, 9000.0, PIECE + 100)
    where = size, np.full(size.size, 4.0), np.full(size.size, 0.5), np.full(size.size, 90.0)
    chosen, scales = np.array([[12, 6, 1, 1, 9]], dtype=np.int16), np.array([[1e-3, 0.2]])
    np.testing.assert_allclose(Together.of(chosen, scales)(*where), [evaluate(chosen[0], scales[0], *where)])
