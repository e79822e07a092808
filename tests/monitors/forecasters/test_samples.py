"""Samples as functions of time: averages over spans, and holes in them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from monitors.forecasters.samples import Samples, carried_forward


@given(arrays(float, (25, 3), elements=st.floats(0, 1)), st.floats(-20, 230), st.floats(0.01, 200))
def test_averages_over_spans_are_those_of_a_fine_sum(values: np.ndarray, start: float, width: float) -> None:
    time = np.cumsum(np.linspace(1.0, 19.0, 25))
    moments = start + width * (np.arange(4000) + 0.5) / 4000
    behind = values[np.minimum(np.searchsorted(time, moments), 24)]
    span = np.array([start]), np.array([start + width])
    assert Samples(time, values).mean(*span)[0] == pytest.approx(behind.mean(axis=0), abs=5e-3)


def test_missing_samples_carry_the_latest_forward_and_leave_an_empty_series_empty() -> None:
    values = np.array([[np.nan, np.nan], [0.2, np.nan], [np.nan, np.nan]])
    assert carried_forward(values)[:, 0].tolist() == [0.2, 0.2, 0.2]
    assert np.isnan(carried_forward(values)[:, 1]).all()
