"""The exact solvers against the balance equations of the Markov chain itself, on networks small enough for those."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from metasched.queueing.network import JobClass, Network, Station
from metasched.queueing.solver import solve


def _steady_state(network: Network) -> tuple[np.ndarray, np.ndarray]:
    """Throughput and queue lengths from the chain in which jobs visit think, s0, s1, ... in a ring.

    Stations share their processors equally among the jobs there; product-form results do not depend on the order of the
    visits. Every class visits every station once.
    """
    places = len(network.stations) + 1
    ways = [
        [way for way in itertools.product(range(jobs + 1), repeat=places) if sum(way) == jobs]
        for jobs in network.population
    ]
    states = [np.array(state).T for state in itertools.product(*ways)]
    index = {state.tobytes(): number for number, state in enumerate(states)}
    speed = [station.rates_up_to(int(network.population.sum())) for station in network.stations]
    generator = np.zeros((len(states), len(states)))
    for number, state in enumerate(states):
        for place, job_class in zip(*np.nonzero(state), strict=True):
            if place == 0:
                rate = state[0, job_class] / network.think_time[job_class]
            else:
                present = state[place].sum()
                share = state[place, job_class] / present
                rate = speed[place - 1][present - 1] * share / network.demands[place - 1, job_class]
            after = state.copy()
            after[place, job_class] -= 1
            after[(place + 1) % places, job_class] += 1
            generator[number, index[after.tobytes()]] += rate
            generator[number, number] -= rate
    equations = np.vstack([generator.T, np.ones(len(states))])
    probability = np.linalg.lstsq(equations, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
    mean = np.einsum("s,spc->pc", probability, np.array(states))
    return mean[0] / network.think_time, mean[1:]


@pytest.mark.parametrize("populations", [(3,), (2, 2), (1, 3), (1, 1, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_exact_solution_agrees_with_the_balance_equations(populations: tuple[int, ...], seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = len(populations)

    def demands() -> tuple[float, ...]:
        return tuple(generator.uniform(0.1, 2.0, count).tolist())

    ones = (1.0,) * count
    network = Network(
        "tiny",
        (
            Station("one", demands(), ones),
            Station("two", demands(), ones, servers=2),
            Station("slowing", demands(), ones, rates=(1.0, 1.5, 1.2)),
        )[: 2 if count == 3 else 3],
        tuple(JobClass(f"c{i}", jobs, float(generator.uniform(0.5, 3))) for i, jobs in enumerate(populations)),
    )
    throughput, queue = _steady_state(network)
    solution = solve(network, "exact")
    np.testing.assert_allclose(solution.throughput, throughput, rtol=1e-9)
    np.testing.assert_allclose(solution.queue_length, queue, rtol=1e-9)
