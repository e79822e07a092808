"""Energy and power of sets by hand: as a made model has learned them, by hardware, and with doubt about the loads."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pytest
from known_model import Known

from metasched.blocks.power import of_processors
from metasched.placement.clusters.energy import energy_of, power_in_doubt, tells_energy
from metasched.placement.clusters.power_draw import Draw, draw_of
from metasched.placement.clusters.running_jobs import RunningJob
from metasched.placement.clusters.state import ClusterState, SetMinima

#: Level of the forecast's intervals, and of those whose upper ends count under a cap.
FORECAST, COUNTED = 0.9, 0.8
PROCESSORS, CPU, BANDWIDTH = np.array([1, 2]), np.array([0.8, 0.5]), np.array([100.0, 40.0])


@dataclass(frozen=True)
class Metered(Known):
    """40 W a processor at its available CPU, and a tenth of a watt for each Mbit/s; measured up to 1.25 times that."""

    def energy_predictor(self):
        return SimpleNamespace(
            expect_watts=lambda size, p, cpu, bandwidth: 40.0 * p * cpu + 0.1 * bandwidth,
            most_watts=lambda size, p, cpu, bandwidth, level: (1.05 + level / 4.0) * (40.0 * p * cpu + 0.1 * bandwidth),
        )


def state(**known) -> ClusterState:
    return replace(ClusterState.make("c", ["n1", "n2"], available_bandwidth=100.0), **known)


def test_learned_energy_counts_first_then_the_hardware_and_else_none() -> None:
    times, asked = np.array([10.0, 20.0]), (1.0, PROCESSORS, CPU, BANDWIDTH)
    hardware = state(hardware=of_processors(95.0))
    assert energy_of(hardware, Metered(), *asked, times).tolist() == [420.0, 880.0]
    assert energy_of(hardware, Known(), *asked, times).tolist() == [950.0, 3800.0]
    # Each process with two threads of its own.
    assert energy_of(replace(hardware, threads=2), Known(), *asked, times).tolist() == [1900.0, 7600.0]
    assert energy_of(state(), Known(), *asked, times).tolist() == [0.0, 0.0]
    told = [tells_energy(each, model) for each in (hardware, state()) for model in (Metered(), Known())]
    assert told == [True, True, True, False]


def test_without_doubt_about_the_loads_power_is_in_doubt_as_it_was_learned() -> None:
    expected, doubt = power_in_doubt(state(), Metered(), 1.0, PROCESSORS, CPU, BANDWIDTH)
    assert (expected.tolist(), doubt.tolist()) == ([42.0, 44.0], pytest.approx([10.5, 11.0]))
    expected, doubt = power_in_doubt(state(hardware=of_processors(95.0)), Known(), 1.0, PROCESSORS, CPU, BANDWIDTH)
    assert (expected.tolist(), doubt.tolist()) == ([95.0, 190.0], [0.0, 0.0])
    expected, doubt = power_in_doubt(state(), Known(), 1.0, PROCESSORS, CPU, BANDWIDTH)
    assert (expected.tolist(), doubt.tolist()) == ([0.0, 0.0], [0.0, 0.0])


def test_loads_in_doubt_add_what_more_of_each_would_draw() -> None:
    """Medians and ends of the forecast, the ends taken from nine tenths to four fifths by a normal distribution."""
    middle, low, high = 1.05, 0.6, 1.2
    wider = 1.5
    minima = SetMinima(
        np.ones(2), np.ones(2), np.outer((low, high), np.ones(2)), np.outer((0.5, wider), np.ones(2)),
        np.full(2, middle), np.ones(2),
    )  # fmt: skip
    expected, doubt = power_in_doubt(state(minima=minima), Metered(), 1.0, PROCESSORS, CPU, BANDWIDTH)
    quantile = NormalDist().inv_cdf
    power = quantile((1.0 + COUNTED) / 2.0) / quantile((1.0 + FORECAST) / 2.0)
    for place, (p, cpu, bandwidth) in enumerate(zip(PROCESSORS, CPU, BANDWIDTH, strict=True)):
        usual = 40.0 * p * middle * cpu + 0.1 * bandwidth
        more_cpu = 40.0 * p * min(middle * (high / middle) ** power * cpu, 1.0) + 0.1 * bandwidth
        more_bandwidth = usual + 0.1 * bandwidth * (wider**power - 1.0)
        reaches = [math.log(each / usual) for each in (1.25 * usual, more_cpu, more_bandwidth)]
        assert expected[place] == pytest.approx(usual)
        assert doubt[place] == pytest.approx(usual * (math.exp(math.hypot(*reaches)) - 1.0))


@pytest.mark.parametrize(("cpu", "most"), [(0.9, 1.0), (1.0, 1.0), (1.5, 1.5)])
def test_no_processor_gives_more_than_all_of_itself(cpu: float, most: float) -> None:
    """One that is faster than that of the reference has more than 1."""
    minima = SetMinima(np.ones(1), np.ones(1), np.array([[0.5], [3.0]]), np.ones((2, 1)), np.full(1, 2.0), np.ones(1))
    expected, doubt = power_in_doubt(
        state(minima=minima), Metered(), 1.0, np.array([1]), np.array([cpu]), np.array([1e-9])
    )
    assert expected == pytest.approx(40.0 * most)
    assert doubt == pytest.approx(10.0 * most)


def test_a_cluster_draws_what_its_jobs_and_its_idle_nodes_do() -> None:
    """Two of four nodes have jobs: of one the power is known, of which half is of another cluster."""
    hardware = of_processors(95.0)
    hardware = replace(
        hardware, values={**hardware.values, "idle_power": replace(hardware.values["KW_low"], value=30.0)}
    )
    cluster = ClusterState.make(
        "c", ["n0", "n1", "n2", "n3", "n4"], jobs=[1, 1, 0, 0, 0], up=[True, True, True, True, False], processors=2
    )
    job = RunningJob(("n0", "elsewhere"), (2, 2), 10.0, 0.0, power=200.0, power_doubt=40.0)
    far = RunningJob(("elsewhere",), (2,), 10.0, 0.0, power=999.0, power_doubt=9.0)
    unknown = RunningJob(("n1",), (1,), 10.0, 0.0)
    found = draw_of(replace(cluster, hardware=hardware), [job, far, unknown])
    assert found == Draw(100.0 + 95.0, 30.0, 2, 2, 20.0, 400.0)
    assert (found.at_most, found.alone) == pytest.approx((215.0, 275.0))
    assert draw_of(cluster, [job, far, unknown]) == Draw(100.0, 0.0, 2, 2, 20.0, 400.0)
    # With a job on one node, or on three where two are idle.
    whole = found.most(np.array([2, 5]), np.array([90.0, 90.0]), np.array([20.0, 0.0]))
    margin = math.sqrt(0.9 * 800.0 + 0.1 * 40.0**2)
    assert whole.tolist() == pytest.approx([195.0 + 90.0 + 30.0 + margin, 195.0 + 90.0 + 20.0])
