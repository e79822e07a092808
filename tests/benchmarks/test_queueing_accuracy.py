"""A network's error estimate covers its error only if it does so for each of its classes."""

from __future__ import annotations

import numpy as np

from benchmarks.queueing_accuracy import covers


def test_a_network_is_covered_if_all_its_classes_are() -> None:
    estimate = np.array([0.02, 0.01, 0.03])
    assert covers(estimate, estimate)
    assert covers(estimate, np.array([0.0, 0.01, 0.029]))
    assert not covers(estimate, np.array([0.0, 0.011, 0.0]))
