"""The exact solvers against the reference values, and the approximate ones within the bounds that they report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from metasched.queueing.document import parse
from metasched.queueing.multi_class import solve_exactly
from metasched.queueing.network import Network
from metasched.queueing.single_class import convolution
from metasched.queueing.solver import solve

REFERENCE = Path(__file__).with_name("mva.json")
CASES = json.loads(REFERENCE.read_text(encoding="utf-8"))
NETWORKS = parse(REFERENCE.read_text(encoding="utf-8"))[1]
BY_NAME = [
    pytest.param(network, case["expected"], id=network.name) for network, case in zip(NETWORKS, CASES, strict=True)
]


def _expected(network: Network, expected: dict[str, dict]) -> tuple[np.ndarray, np.ndarray]:
    names = [entry.name for entry in network.classes]
    throughput = np.array([expected["throughput"][name] for name in names])
    queue = np.array([[expected["queue_length"][entry.name][name] for name in names] for entry in network.stations])
    return throughput, queue


@pytest.mark.parametrize(("network", "expected"), BY_NAME)
def test_exact_solution_agrees_with_the_reference_to_nine_digits(network: Network, expected: dict) -> None:
    throughput, queue = _expected(network, expected)
    solution = solve(network, "exact")
    np.testing.assert_allclose(solution.throughput, throughput, rtol=1e-9)
    np.testing.assert_allclose(solution.queue_length, queue, rtol=1e-9)


@pytest.mark.parametrize(("network", "expected"), BY_NAME)
def test_the_solver_for_several_classes_agrees_too(network: Network, expected: dict) -> None:
    throughput, queue = _expected(network, expected)
    rates = np.stack([station.rates_up_to(int(network.population.sum())) for station in network.stations])
    steady = solve_exactly(network.demands, network.think_time, network.population, rates)
    np.testing.assert_allclose(steady.throughput, throughput, rtol=1e-9)
    np.testing.assert_allclose(steady.queue_length, queue, rtol=1e-9)


@pytest.mark.parametrize("servers", [4, 16, 64])
def test_one_curve_holds_every_smaller_population(servers: int) -> None:
    pairs = [
        (network, _expected(network, case["expected"])[0])
        for network, case in zip(NETWORKS, CASES, strict=True)
        if network.name.startswith(f"single-{servers}server")
    ]
    assert len(pairs) > 1
    largest = max((network for network, _ in pairs), key=lambda network: int(network.population[0]))
    rates = np.stack([station.rates_up_to(int(largest.population[0])) for station in largest.stations])
    curve = convolution(largest.demands[:, 0], largest.think_time[0], rates)
    for network, throughput in pairs:
        np.testing.assert_allclose(curve.throughput[network.population - 1], throughput, rtol=1e-9)


@pytest.mark.parametrize(("network", "expected"), BY_NAME)
def test_approximate_solution_lies_near_and_says_between_which_bounds(network: Network, expected: dict) -> None:
    throughput, _ = _expected(network, expected)
    solution = solve(network, "approximate")
    np.testing.assert_allclose(solution.throughput, throughput, rtol=0.02)
    assert solution.bounds is not None
    assert np.all(solution.bounds.lower <= throughput * (1 + 1e-12))
    assert np.all(throughput <= solution.bounds.upper * (1 + 1e-12))
