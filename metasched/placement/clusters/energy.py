"""The energy of runs on sets of processors of a cluster (J): as learned, else by the formula of the hardware."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metasched.blocks.power import drawn, knows_power
from metasched.placement.clusters.state import ClusterState
from metasched.predictors import contract
from metasched.predictors.contract import Predictor, energy_predictor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Level of the intervals whose upper ends count under a cap of power, each passed by one run in four. On the stream of
#: the design seed (``benchmarks.energy_stream``) a cluster was above its cap for 3.8 % of the time with 0.2 and hardly
#: ever with 0.5; with 0.9 jobs completed twice as much later than an oracle's as with 0.5.
CAP_LEVEL = 0.5


def tells_energy(state: ClusterState, predictor: Predictor) -> bool:
    """Whether the energy of runs on a cluster is known, by learned runs or by its hardware."""
    return energy_predictor(predictor) is not None or (state.hardware is not None and knows_power(state.hardware))


def energy_of(
    state: ClusterState,
    predictor: Predictor,
    size: ArrayLike,
    processors: Ints,
    cpu: Floats,
    bandwidth: Floats,
    time: Floats,
) -> Floats:
    """The energy of sets of a cluster (J) for a time (s), arrays of shape (k,); the loads are those of the sets.

    What was learned, else by the hardware; 0 where none tells.
    """
    learned = contract.expect_watts(predictor, size, processors, cpu, bandwidth)
    if learned is not None:
        # If the time is longer than predicted, as with contention, the mean power is assumed to be the same.
        return learned * time
    if state.hardware is None or not knows_power(state.hardware):
        return np.zeros(len(time))
    return drawn(state.hardware, processors * state.threads) * time


def most_watts(
    state: ClusterState,
    predictor: Predictor,
    size: ArrayLike,
    processors: Ints,
    cpu: Floats,
    bandwidth: Floats,
) -> Floats:
    """Upper ends of the intervals of the mean power of sets of a cluster (W), arrays of shape (k,).

    What was learned, else by the hardware; 0 where none tells. Where the loads to come are in doubt, so is the power: a
    run that gets more CPU than expected draws more. What is expected of loads makes times right on the mean, which a
    few bad spans make long; most runs get more. So power is predicted with the median of the loads. On the
    logarithm the two doubts are independent, as those of times (:mod:`metasched.predictors.load_doubt`).
    """
    doubt, points = state.doubt(processors, CAP_LEVEL), [(cpu, bandwidth)]
    if doubt is not None:
        # The load of a run with exclusive processors cannot get lower.
        most_cpu = np.maximum(cpu, 1.0)
        more_cpu, more_bandwidth = np.minimum(doubt.cpu[1] * cpu, most_cpu), doubt.bandwidth[1] * bandwidth
        cpu, bandwidth = doubt.middle(cpu, bandwidth)
        cpu = np.minimum(cpu, most_cpu)
        points = [(cpu, bandwidth), (more_cpu, bandwidth), (cpu, more_bandwidth)]
    at_cpu, at_bandwidth = (np.concatenate(each) for each in zip(*points, strict=True))
    count = np.tile(processors, len(points))
    sizes = np.tile(np.broadcast_to(size, processors.shape), len(points))
    watts = energy_of(state, predictor, sizes, count, at_cpu, at_bandwidth, np.ones(count.size))
    expected, *more = watts.reshape(len(points), -1)
    learned = contract.most_watts(predictor, size, processors, cpu, bandwidth, CAP_LEVEL)
    if learned is None:
        return np.asarray(expected)
    reaches = [np.log(learned / expected), *(np.log(np.maximum(each / expected, 1.0)) for each in more)]
    return np.asarray(expected * np.exp(np.linalg.norm(reaches, axis=0)))
