"""Real traces: no series both designs and judges."""

from __future__ import annotations

import numpy as np

from benchmarks.traces import DESIGN, JUDGED, places


def test_no_series_both_designs_and_judges() -> None:
    total = 11_746
    design, judged = places(total, DESIGN), places(total, JUDGED)
    assert (len(set(design)), len(set(judged))) == (2000, 1000)
    assert not set(design) & set(judged)
    assert max(*design, *judged) < total


def test_fewer_series_are_some_of_the_same() -> None:
    assert set(places(5000, JUDGED[:60])) < set(places(5000, JUDGED))
    assert np.all(np.diff(places(5000, JUDGED[:60])) > 0)
