"""The energy of runs on sets of processors of a cluster (J): as learned, else by the formula of the hardware."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Floats, Ints
from metasched.blocks.power import drawn, knows_power
from metasched.placement.clusters.state import ClusterState
from metasched.predictors import abilities
from metasched.predictors.abilities import energy_predictor
from metasched.predictors.contract import Predictor

#: Level of the intervals whose upper ends count under a cap of power, each passed by one run in ten; chosen with the
#: correlation of their errors (``power_draw.COMMON``) on streams of design seeds (``benchmarks.energy_stream``).
CAP_LEVEL = 0.8


def tells_energy(state: ClusterState, predictor: Predictor) -> bool:
    """Whether the energy of runs on a cluster is known, by learned runs or by its hardware."""
    return energy_predictor(predictor) is not None or (
        state.hardware is not None and knows_power(state.hardware, state.per_node)
    )


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

    Parameters
    ----------
    state : the cluster, with its hardware if that is known.
    predictor : of the application there; what it learned of energy counts first.
    size : problem size N.
    processors : of each set, shape (k,).
    cpu : least available CPU of each set, shape (k,), a share of one processor.
    bandwidth : least available bandwidth of each set, shape (k,) (Mbit/s).
    time : that each set takes, shape (k,) (s).
    """
    learned = abilities.expect_watts(predictor, size, processors, cpu, bandwidth)
    if learned is not None:
        # If the time is longer than predicted, as with contention, the mean power is assumed to be the same.
        return learned * time
    if state.hardware is None or not knows_power(state.hardware, state.per_node):
        return np.zeros(len(time))
    return drawn(state.hardware, processors * state.threads, state.per_node) * time


def power_in_doubt(
    state: ClusterState, predictor: Predictor, size: ArrayLike, processors: Ints, cpu: Floats, bandwidth: Floats
) -> tuple[Floats, Floats]:
    """The expected mean power of sets of a cluster, and its margin up to the upper limit (W), arrays of shape (k,).

    The limits are the upper ends of intervals at :data:`CAP_LEVEL`. What was learned, else by the hardware; 0 if
    neither is known. If the loads to come are uncertain, so is the power: a run that gets more CPU than expected draws
    more. What is expected of loads makes times right on the mean, which a few bad spans make long; most runs get more.
    So power is predicted with the median of the loads. On the logarithm the two errors are independent, as those of
    times (:mod:`metasched.predictors.load_doubt`).

    Parameters
    ----------
    state : the cluster, with its hardware if that is known, and the doubt about its loads.
    predictor, size, processors, cpu, bandwidth : as for :func:`energy_of`.
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
    learned = abilities.most_watts(predictor, size, processors, cpu, bandwidth, CAP_LEVEL)
    if learned is None:
        return np.asarray(expected), np.zeros(len(expected))
    reaches = [np.log(learned / expected), *(np.log(np.maximum(each / expected, 1.0)) for each in more)]
    return np.asarray(expected), np.asarray(expected * np.expm1(np.linalg.norm(reaches, axis=0)))
