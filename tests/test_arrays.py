"""Products of flags: exact, and silent about floating-point flags that only the library beneath can have raised."""

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from metasched.arrays import Flags, matrix_product


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5), st.data())
def test_counts_what_both_have(rows: int, inner: int, columns: int, data: st.DataObject) -> None:
    left: Flags = data.draw(arrays(np.bool_, (rows, inner)))
    right: Flags = data.draw(arrays(np.bool_, (inner, columns)))
    assert np.array_equal(matrix_product(left, right), left.astype(int) @ right.astype(int))


def test_never_warns_of_what_a_sum_of_counts_cannot_be() -> None:
    """The flag is raised here by infinities, since what a library reads beyond a matrix cannot be repeated."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        product = matrix_product(np.array([[True, True]]), np.array([[np.inf], [-np.inf]], np.float32))
    assert np.isnan(product)
