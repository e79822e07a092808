"""The formulas that the search finds for the runs of one application."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from candidate_functions.exhaustive import exhaustive_search
from candidate_functions.terms import Observations
from metasched.predictors.formulas import searched
from metasched.predictors.formulas.searched import searched_list


@pytest.mark.parametrize("sizes", [9, 2], ids=["enough runs to search", "too few"])
def test_errors_are_relative_whatever_the_unit_of_time(sizes: int) -> None:
    n, p = np.tile(np.linspace(100, 900, sizes), 3), np.repeat([1, 2, 4], sizes)
    time = 1e-3 * n**2 / p * np.random.default_rng(3).lognormal(0.0, 0.1, n.size)
    cpu, bandwidth = np.ones(n.size), np.full(n.size, 90.0)
    seconds, hours = (searched_list(Observations.of(n, p, cpu, bandwidth, time / unit)) for unit in (1.0, 3600.0))
    assert seconds.standard_error[0] == pytest.approx(hours.standard_error[0], rel=1e-6)
    assert 0.01 < seconds.standard_error[0] < 1.0


def test_the_same_runs_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    n, p = np.tile(np.linspace(150, 950, 9), 3), np.repeat([1, 2, 4], 9)
    cpu, bandwidth, counted = np.ones(27), np.full(27, 90.0), []

    def search(runs: Observations, **how: Any) -> Any:
        counted.append(len(runs))
        return exhaustive_search(runs, **how)

    monkeypatch.setattr(searched, "exhaustive_search", search)
    found = [
        searched_list(Observations.of(n[:kept], p[:kept], cpu[:kept], bandwidth[:kept], 1e-3 * n[:kept] ** power))
        for power, kept in ((2.0, 27), (2.0, 27), (2.0, 26), (1.0, 27), (2.0, 27))
    ]
    assert counted == [27, 26, 27]
    assert found[0] is found[1] is found[4]
    assert (found[0].combinations[0] != found[3].combinations[0]).any()
