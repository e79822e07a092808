"""Energy and power of sets by hand: as a made model has learned them, by hardware, and with doubt about the loads."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pytest
from known_model import Known

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.blocks.power import drawn, knows_power, of_processors
from metasched.placement.clusters.energy import energy_of, power_in_doubt, tells_energy
from metasched.placement.clusters.power_draw import Draw, draw_of
from metasched.placement.clusters.running_jobs import RunningJob
from metasched.placement.clusters.state import ClusterState, SetMinima
from metasched.records import InputError, Settings
from metasched.store.files.hardware import read_entry

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
    hardware = replace(hardware, values={"idle_power": Quantity(30.0, "W", "stated")})
    cluster = ClusterState.make(
        "c", ["n0", "n1", "n2", "n3", "n4"], jobs=[1, 1, 0, 0, 0], powered=[True, True, True, True, False], processors=2
    )
    job = RunningJob(("n0", "elsewhere"), (2, 2), 10.0, 0.0, power=200.0, power_doubt=40.0)
    far = RunningJob(("elsewhere",), (2,), 10.0, 0.0, power=999.0, power_doubt=9.0)
    unknown = RunningJob(("n1",), (1,), 10.0, 0.0)
    found = draw_of(replace(cluster, hardware=hardware), [job, far, unknown])
    # Half of the second node is idle.
    assert found == Draw(100.0 + 95.0 - 15.0, 30.0, 2.5, 2, 20.0, 400.0)
    assert (found.at_most, found.alone) == pytest.approx((200.0, 275.0))
    assert draw_of(cluster, [job, far, unknown]) == Draw(100.0, 0.0, 2.5, 2, 20.0, 400.0)
    not_reported = draw_of(replace(cluster, hardware=hardware), [job, far])
    assert not_reported == Draw(100.0 + 190.0, 30.0, 2.0, 2, 20.0, 400.0)
    # A drained node is idle, but draws power; a job that is not known may still run on one.
    drained = np.array([True, False, False, False, False])
    assert draw_of(replace(cluster, hardware=hardware, up=drained), [job, far, unknown]) == found
    assert draw_of(replace(cluster, hardware=hardware, up=drained), [job, far]) == not_reported
    # A node that is reported as switched off is on when a job runs there.
    woken = RunningJob(("n4",), (1,), 10.0, 0.0, power=50.0)
    assert draw_of(cluster, [job, far, unknown, woken]).unused == found.unused + 0.5
    # With a job on one node, or on three where two and a half are idle.
    whole = found.most(np.array([2, 5]), np.array([90.0, 90.0]), np.array([20.0, 0.0]))
    margin = math.sqrt(0.9 * 800.0 + 0.1 * 40.0**2)
    assert whole.tolist() == pytest.approx([180.0 + 90.0 + 45.0 + margin, 180.0 + 90.0 + 20.0])


#: A node draws 100 W doing nothing, and ten for each busy processor.
LINE = Entry(
    "line",
    Kind.cluster,
    "",
    {name: Quantity(value, "1" if name == "P_low" else "W", "made")
     for name, value in {"P_low": 16, "PW_low": 100, "KW_low": 10, "idle_power": 100}.items()},
)  # fmt: skip


def test_a_node_has_the_processors_of_its_cluster_not_those_of_its_entry() -> None:
    cluster = ClusterState.make("c", ["n0", "n1"], processors=24, hardware=read_entry("galera-plus"))
    asked = (1.0, np.array([24, 48]), np.ones(2), np.ones(2))
    assert energy_of(cluster, Known(), *asked, np.ones(2)).tolist() == pytest.approx([154.6, 309.2])
    # Twelve processes of two threads, of which a node takes six.
    of_six = cluster.laid_out(Settings(6, 2))
    assert energy_of(of_six, Known(), 1.0, np.array([12]), *asked[2:], np.ones(1)).item() == pytest.approx(2 * 136.08)
    nameless = replace(read_entry("galera-plus"), values={**LINE.values, "P_low": Quantity(4, "1", "made")})
    with pytest.raises(InputError, match="gives no power"):
        drawn(nameless, [1], 16)
    # Without cores and cluster all processors are those of one node.
    assert drawn(LINE, [16]).tolist() == [260.0]


def test_the_power_of_nodes_is_known_where_every_piece_is_that_their_processors_reach() -> None:
    assert [knows_power(LINE, each) for each in (1, 16, 17)] == [True, True, False]
    made = {"P_low": 4, "P_hi": 8, "PW_low": 100, "KW_low": 10, "PW_max": 200}
    gap = Entry("gap", Kind.cluster, "", {name: Quantity(value, "1" if name[1] == "_" else "W", "made")
                                          for name, value in made.items()})  # fmt: skip
    assert [knows_power(gap, each) for each in (4, 6, 8, 16)] == [True, False, False, False]
    assert tells_energy(ClusterState.make("c", ["n0"], processors=16, hardware=LINE), Known())
    assert not tells_energy(ClusterState.make("c", ["n0"], processors=17, hardware=LINE), Known())


def test_each_processor_of_which_only_its_watts_are_known_draws_them_in_jobs_without_a_model_too() -> None:
    cluster = ClusterState.make("c", ["n0"], processors=[16], jobs=[1], hardware=of_processors(95.0))
    assert draw_of(cluster, []).running == pytest.approx(16 * 95.0)
    assert draw_of(cluster, [RunningJob(("n0",), (4,), 9.0, 0.0)]).running == pytest.approx(4 * 95.0)


def test_a_node_full_of_jobs_that_are_not_known_draws_what_it_can() -> None:
    """Of their processors a state tells nothing: it has the free ones only."""
    cluster = ClusterState.make("c", ["n0", "n1"], processors=[0, 24], jobs=[1, 0], hardware=read_entry("galera-plus"))
    assert draw_of(cluster, []).running == pytest.approx(154.6)
    packed = replace(cluster, processors=np.array([0, 2]), jobs=np.array([1, 1]))
    assert draw_of(packed, []).running == pytest.approx(2 * 136.08)


def test_jobs_without_learned_power_draw_together_what_their_node_does() -> None:
    cluster = ClusterState.make("c", ["n0", "n1"], processors=12, jobs=[2, 0], hardware=read_entry("galera-plus"))
    two = [RunningJob(("n0",), (1,), 9.0, 0.0)] * 2
    assert draw_of(cluster, two).alone == pytest.approx(87.68)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dedicated", [True, False])
def test_all_shares_and_what_is_idle_add_up_to_what_the_nodes_draw(seed: int, dedicated: bool) -> None:
    """Jobs of which some are learned as shares and some are not, and one more, node by node by the law of the nodes."""
    rng, names = np.random.default_rng(seed), ("n0", "n1", "n2", "n3")
    jobs, used, count = [], np.zeros(4, dtype=int), np.zeros(4, dtype=int)
    for _ in range(rng.integers(1, 5)):
        at = rng.choice(3, rng.integers(1, 3), replace=False)
        taken = rng.integers(1, 4, at.size)
        share = None if rng.random() < 0.5 else float(taken.sum()) * (100.0 / 16.0 + 10.0)
        jobs.append(RunningJob(tuple(names[k] for k in at), tuple(map(int, taken)), 9.0, 0.0, dedicated, power=share))
        used[at] += taken
        count[at] += 1
    free = 16 - used if dedicated else 16
    draw = draw_of(ClusterState.make("c", names, processors=free, jobs=count, hardware=LINE), jobs)
    truth = 4 * 100.0 + 10.0 * used.sum()
    assert draw.alone == pytest.approx(truth)
    for processors in (1, 5, 16):
        more, one = truth + 10.0 * processors, np.array([processors])
        by_share = draw.most(one, np.array([processors * (100.0 / 16.0 + 10.0)]), np.zeros(1))
        assert by_share.item() == pytest.approx(more)
        by_formula = replace(draw, whole=True).most(one, drawn(LINE, one, 16), np.zeros(1))
        assert by_formula.item() == pytest.approx(more)
