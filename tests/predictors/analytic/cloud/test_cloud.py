from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metasched.predictors.analytic.cloud import published
from metasched.predictors.analytic.cloud.baseline import ScalabilityAnalysis
from metasched.predictors.analytic.cloud.hardware import Hardware, Server
from metasched.predictors.analytic.cloud.locality import Locality, distance_law, exponent_of
from metasched.predictors.analytic.cloud.model import CloudModel
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.predictors.analytic.cloud.published import visit_ratios
from metasched.predictors.analytic.cloud.scaling import Scaling
from metasched.predictors.analytic.cloud.workload import Workload, fit_law
from metasched.queueing.single_class import mean_value_analysis
from metasched.records import InputError

CLUSTER = Hardware(tuple(Server(f"s{i}", 8) for i in range(4)), word_time=8e-9, startup_time=1e-4)
#: A ring that sends 100 kB to both neighbours 50 times, 16 s of work and 0.1 s that everybody does.
RING = [
    Profile(n, 100.0, 1e5, 0.02, 16.0 / n + 0.12, mean_distance=1.0, exchanges=50.0, dimensions=1) for n in (2, 4, 8)
]
distributions = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(lambda blocks: sum(blocks) >= 2)


def test_visit_ratios_are_equations_11_and_12_for_two_equal_servers() -> None:
    cpu, net = visit_ratios(np.array([4, 4]), 0.25)
    # n_i/n = 1/2: 1/2 * 3/4 + 1/2 * 3/8 * 1/4 + 1/2 * 1/2 * 1/4, and twice 1/2 * 1/2
    assert cpu == pytest.approx([0.484375] * 2)
    assert net == pytest.approx([0.5] * 2)


def test_one_server_needs_no_network() -> None:
    assert visit_ratios(np.array([8, 0]), 0.25)[1] == pytest.approx([0.0, 0.0])


def test_published_time_on_one_server_is_work_times_visits_over_cores() -> None:
    # With a single queue R = n V s_cpu, so T = R s(n) = V CPU_Constant / min(n, c).
    model = CloudModel.fit(RING, CLUSTER, method="published")
    share = model.workload.waiting_share
    for n in (2, 4, 8, 16):
        visits = 1.0 - share + (n - 1) / n * share
        expected = visits * model.cpu_constant / min(n, 8)
        assert model.execution_time(CLUSTER, np.array([n, 0, 0, 0])) == pytest.approx(expected)


@pytest.mark.parametrize("method", ["published", "synchronous"])
def test_profiles_are_met_by_the_fitted_model(method: Literal["published", "synchronous"]) -> None:
    model = CloudModel.fit(RING, CLUSTER, method=method)
    assert model.profiling_error < 0.03


@pytest.mark.parametrize(("method", "within"), [("published", 1e-3), ("synchronous", 0.35)])
def test_profiles_over_several_servers_tell_the_constant_of_the_network(
    method: Literal["published", "synchronous"], within: float
) -> None:
    spread = [np.array([n, 0, 0, 0]) for n in (2, 4)] + [np.array([4, 4, 0, 0]), np.array([4, 4, 4, 4])]
    truth = CloudModel.fit(RING, CLUSTER, method=method)
    slow = replace(truth, net_constant=3.0)
    profiles = []
    for place in spread:
        n, time = int(place.sum()), slow.execution_time(CLUSTER, place)
        wait = truth.workload.waiting_share * time if method == "published" else time - 16.0 / n - 0.1
        profiles.append(replace(RING[0], processes=n, execution_time=time, waiting_time=wait))
    found = CloudModel.fit(profiles, CLUSTER, spread, method=method)
    assert found.net_constant == pytest.approx(3.0, rel=within)
    assert not found.notes


@given(
    st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(lambda blocks: sum(blocks) >= 2),
    st.floats(0.1, 10.0),
    st.floats(0.1, 10.0),
)
def test_the_published_network_is_the_papers_equations_cycle_by_cycle(
    blocks: list[int], cpu: float, net: float
) -> None:
    mixed = replace(CLUSTER, servers=(*CLUSTER.servers[:3], Server("slow", 4, speed=0.5)))
    profiles = [Profile(k, 20 + 10 * math.log(k), 1e6 / k + 5e4, 0.5, 16.0 / k + 0.5) for k in (2, 4, 8)]
    model = replace(CloudModel.fit(profiles, mixed, method="published"), cpu_constant=cpu, net_constant=net)
    n, place = sum(blocks), np.array(blocks)
    sends, message = 20 + 10 * math.log(n), 1e6 / n + 5e4
    cpu_service = cpu / (sends * n * np.minimum(n, [8, 8, 8, 4])) / np.array([1.0, 1.0, 1.0, 0.5])  # (8)
    net_service = net * message * mixed.word_time  # (9), with T_s = 0
    cpu_visits, net_visits = visit_ratios(place, model.workload.waiting_share)
    demands = np.concatenate([cpu_visits * cpu_service, net_visits * net_service])
    cycle = n / mean_value_analysis(demands, 0.0, n).throughput[-1]
    assert model.execution_time(mixed, place) == pytest.approx(cycle * sends)  # (13)


def test_the_published_network_knows_no_law_but_the_papers_two() -> None:
    # An all-to-all: n - 1 messages of a size that falls with the square of n, which neither law follows.
    profiles = [Profile(n, n - 1.0, 8e6 / n**2, 0.5, 16.0 / n + 0.5, mean_distance=n / 4 + 0.5) for n in (2, 4, 8)]
    workload = CloudModel.fit(profiles, CLUSTER, method="published").workload
    assert (workload.message_size.form, getattr(workload.sends, "form", None)) == ("1/n", "ln n")
    assert workload.locality == Locality()
    refined = CloudModel.fit(profiles, CLUSTER).workload
    assert (refined.message_size.form, getattr(refined.sends, "form", None)) == ("1/n^2", "n")
    # m(n) falls below 0 here: such messages take no time, and nothing runs backwards.
    place = np.array([16, 16, 16, 16])
    assert workload.message_size(64) < 0
    assert CloudModel.fit(profiles, CLUSTER, method="published").execution_time(CLUSTER, place) > 0


@pytest.mark.parametrize(
    ("cores", "speed", "message"),
    [
        (2.5, 1.0, "cores of server s"),
        (0, 1.0, "whole number"),
        (True, 1.0, "whole number"),
        (2, 0.0, "speed of server s is 0.0, expected a number from 1e-100 to 1e[+]100"),
        (2, math.inf, "speed of server s is inf"),
    ],
)
def test_a_server_that_cannot_be_is_refused(cores: float, speed: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Server("s", cores, speed)  # type: ignore[arg-type]


def test_profiles_on_one_server_leave_the_constant_of_the_network_and_say_so() -> None:
    model = CloudModel.fit(RING, CLUSTER)
    assert model.net_constant == 1.0
    assert any("Net_Constant" in note for note in model.notes)


def test_slower_servers_and_shared_cores_take_longer() -> None:
    model = CloudModel.fit(RING, CLUSTER)
    place = np.array([4, 4, 4, 4])
    slow = replace(CLUSTER, servers=(*CLUSTER.servers[:3], Server("slow", 8, speed=0.5)))
    few = replace(CLUSTER, servers=tuple(Server(f"s{i}", 2) for i in range(4)))
    time = model.execution_time(CLUSTER, place)
    assert model.execution_time(slow, place) > 1.6 * time
    assert model.execution_time(few, place) > 1.6 * time


def test_a_ring_sends_less_over_the_network_than_an_even_spread() -> None:
    ring = CloudModel.fit(RING, CLUSTER)
    even = CloudModel.fit([replace(profile, mean_distance=None, dimensions=None) for profile in RING], CLUSTER)
    place = np.array([8, 8, 8, 8])
    assert ring.execution_time(CLUSTER, place) < even.execution_time(CLUSTER, place)


@pytest.mark.parametrize(
    ("form", "value"),
    [("1/n", lambda n: 3.0 / n + 1.0), ("1/n^2", lambda n: 5.0 / n**2), ("1/sqrt n", lambda n: 2.0 / n**0.5)],
)
def test_the_law_that_the_profiles_follow_is_found(form: str, value: object) -> None:
    n = np.array([2.0, 4.0, 8.0])
    law = fit_law(n, value(n), ("1/n", "1/n^2", "1/sqrt n"))  # type: ignore[operator]
    assert law.form == form
    assert law(64) == pytest.approx(value(64.0))  # type: ignore[operator]


@given(st.lists(st.floats(1.0, 1e7), min_size=3, max_size=3))
@example([1072408.0, 1.75, 3.0])
def test_laws_stay_positive_far_beyond_the_profiles(values: list[float]) -> None:
    law = fit_law([2, 4, 8], values, ("1/n", "1/n^2", "1/sqrt n", "ln n"))
    assert np.all(law(np.geomspace(2, 50_000, 40)) > 0)


def counted(distribution: list[int], weights: np.ndarray) -> np.ndarray:
    """Share of messages leaving each server, by going through all pairs."""
    server = np.repeat(np.arange(len(distribution)), distribution)
    out, total = np.zeros(len(distribution)), np.zeros(len(distribution))
    for a, b in product(range(server.size), repeat=2):
        apart = min(abs(a - b), server.size - abs(a - b))
        if a != b:
            # The weight of a distance is shared by the partners at it.
            share = weights[apart - 1] / (1 if 2 * apart == server.size else 2)
            total[server[a]] += share
            out[server[a]] += share * (server[a] != server[b])
    return np.divide(out, total, out=np.zeros_like(out), where=total > 0)


@given(distributions, st.floats(0.0, 3.0))
def test_messages_that_leave_are_those_counted_pair_by_pair(blocks: list[int], exponent: float) -> None:
    found = Locality(exponent).leaving(np.array(blocks))
    assert found == pytest.approx(counted(blocks, distance_law(exponent, sum(blocks))), abs=1e-9)


@given(distributions)
def test_a_grid_of_one_dimension_is_a_ring(blocks: list[int]) -> None:
    # In a ring of two both neighbours are the same process.
    ring = Locality(dimensions=1).leaving(np.array(blocks))
    weights = np.zeros(sum(blocks) // 2)
    weights[0] = 1.0
    assert ring == pytest.approx(counted(blocks, weights))


@given(st.integers(6, 64), st.floats(0.0, 5.0))
def test_the_exponent_is_found_from_the_mean_distance(n: int, exponent: float) -> None:
    law = distance_law(exponent, n)
    assert exponent_of(float(law @ np.arange(1, law.size + 1)), n) == pytest.approx(exponent, abs=1e-6)


def test_a_single_process_does_all_the_work_and_sends_nothing() -> None:
    alone = CloudModel.fit(RING, CLUSTER, method="synchronous").execution_time(CLUSTER, np.array([0, 1, 0, 0]))
    assert alone == pytest.approx(16.12, rel=0.02)


def test_filling_and_spreading_place_all_processes() -> None:
    mixed = Hardware((Server("a", 4), Server("b", 8), Server("c", 2)), 1e-9)
    for n in range(1, 60):
        assert mixed.fill(n).sum() == mixed.spread(n).sum() == n
    assert mixed.fill(28).tolist() == [8, 16, 4]


def test_more_processes_pay_until_the_knee() -> None:
    n = np.array([1, 2, 4, 8, 16])
    scaling = Scaling.of(n, lambda count: 16.0 / count + 0.25 * count)
    # s^2 / n is largest where doubling no longer divides the time by the square root of 2.
    assert scaling.pays_until == 4
    assert scaling.fastest == 8
    assert scaling.efficiency[0] == pytest.approx(1.0)


def test_baseline_is_amdahls_law_with_communication() -> None:
    profiles = [replace(profile, waiting_time=0.0, execution_time=16.0 / profile.processes + 0.1) for profile in RING]
    analysis = ScalabilityAnalysis.fit(profiles)
    assert analysis.serial == pytest.approx(0.1, rel=1e-6)
    expected = 0.1 + 16.0 / 32 + 100.0 * (1e-4 + 1e5 * 8e-9)
    assert analysis.execution_time(CLUSTER, 32) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("profiles", "message"),
    [
        (RING[:2], "2 profiles, expected at least 3"),
        ([RING[0]] * 3, "profiles with 1 different numbers of processes"),
        ([*RING[:2], replace(RING[2], dimensions=2)], "differ in dimensions"),
    ],
)
def test_profiles_that_do_not_suffice_are_refused(profiles: list[Profile], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Workload.of(profiles)


@pytest.mark.parametrize(
    ("field", "value"),
    [("sends", -1.0), ("message_size", math.nan), ("waiting_time", 99.0), ("mean_distance", 9.0), ("dimensions", 0)],
)
def test_a_profile_that_makes_no_sense_is_refused(field: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{field} is .*expected"):
        replace(RING[0], **{field: value})


def test_a_distribution_that_does_not_fit_is_refused() -> None:
    model = CloudModel.fit(RING, CLUSTER)
    with pytest.raises(InputError, match="over 3 servers"):
        model.execution_time(CLUSTER, np.array([1, 1, 1]))
    with pytest.raises(InputError, match="negative"):
        model.execution_time(CLUSTER, np.array([-1, 1, 1, 1]))
    with pytest.raises(InputError, match="processes, expected at most"):
        model.execution_time(CLUSTER, np.array([10**6, 0, 0, 0]))


def test_messages_in_a_process_grid_follow_the_neighbours_that_a_process_has() -> None:
    # Two processes are a side of two and one of one; 8 are 4 by 2, 64 are 8 by 8.
    profiles = [Profile(n, sends, 1e5, 0.01, 8.0 / n + 0.1, dimensions=2) for n, sends in ((2, 80), (4, 160), (8, 160))]
    workload = Workload.of(profiles)
    assert workload.sends([2, 8, 64]).tolist() == pytest.approx([80.0, 160.0, 160.0])
    assert str(workload.sends) == "(40) for each neighbour in 2 dimensions"


def test_few_large_messages_take_as_long_as_many_small_ones() -> None:
    """Only their product counts, below one byte as above."""

    def law(value: float) -> Callable[[int], float]:
        return lambda n: value

    times = [
        published.execution_time(
            SimpleNamespace(message_size=law(size), sends=law(400.0 / size), waiting_share=0.3),  # type: ignore[arg-type]
            CLUSTER, np.array([2, 2, 0, 0]), 1e9, 1e6,
        )
        for size in (0.25, 4.0)
    ]  # fmt: skip
    assert times[0] == pytest.approx(times[1])
    nothing = SimpleNamespace(message_size=law(-1.0), sends=law(400.0), waiting_share=0.3)
    silent = published.execution_time(nothing, CLUSTER, np.array([2, 2, 0, 0]), 1e9, 1e6)  # type: ignore[arg-type]
    assert silent < times[0]
