"""Laws that hold for every closed network, on networks drawn at random, and brute force on tiny ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.queueing import solver
from metasched.queueing.bounds import throughput_bounds
from metasched.queueing.multi_class import solve_exactly
from metasched.queueing.network import JobClass, Network, Station
from metasched.queueing.single_class import convolution, mean_value_analysis
from metasched.queueing.solution import PrecisionError, Solution
from metasched.queueing.solver import solve

law = settings(max_examples=40, deadline=None)

TIMES = st.floats(0.01, 10.0)
DEMANDS = st.one_of(st.just(0.0), TIMES)


@st.composite
def networks(draw: st.DrawFn, *, classes: int = 3, stations: int = 4, jobs: int = 4) -> Network:
    count = draw(st.integers(1, classes))
    kinds = draw(st.lists(st.sampled_from(["one", "many", "delay", "rates"]), min_size=1, max_size=stations))
    made = []
    for index, kind in enumerate(kinds):
        service = tuple(draw(st.lists(DEMANDS, min_size=count, max_size=count)))
        visits = tuple(draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=count, max_size=count)))
        plain = Station(f"s{index}", service, visits)
        made.append(
            {
                "one": plain,
                "many": replace(plain, servers=draw(st.integers(2, 5))),
                "delay": replace(plain, kind="delay"),
                # Each further job adds no more speed than the one before: otherwise times might shrink as jobs come.
                "rates": replace(
                    plain,
                    rates=tuple(
                        np.cumsum(sorted(draw(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5)))[::-1]).tolist()
                    ),
                ),
            }[kind]
        )
    populations = draw(st.lists(st.integers(0, jobs), min_size=count, max_size=count))
    # A little think time lets every class circulate.
    thinks = draw(st.lists(st.floats(0.1, 10.0), min_size=count, max_size=count))
    pairs = enumerate(zip(populations, thinks, strict=True))
    return Network("drawn", tuple(made), tuple(JobClass(f"c{i}", jobs, think) for i, (jobs, think) in pairs))


def _with_populations(network: Network, populations: np.ndarray) -> Network:
    pairs = zip(network.classes, populations, strict=True)
    return replace(network, classes=tuple(replace(entry, population=int(jobs)) for entry, jobs in pairs))


@law
@given(networks())
def test_every_job_is_at_a_station_or_thinking(network: Network) -> None:
    solution = solve(network, "exact")
    found = solution.queue_length.sum(axis=0) + solution.throughput * network.think_time
    np.testing.assert_allclose(found, network.population, rtol=1e-10)


@law
@given(networks())
def test_littles_law_and_the_utilization_law_hold(network: Network) -> None:
    solution = solve(network, "exact")
    np.testing.assert_allclose(
        solution.queue_length, solution.throughput * network.visits * solution.response_time, rtol=1e-12
    )
    cycles = np.where(network.population > 0, network.think_time + solution.cycle_time, 1.0)
    np.testing.assert_allclose(solution.throughput, network.population / cycles, rtol=1e-10)
    assert np.all(solution.utilization.sum(axis=1) <= 1 + 1e-12)
    for row, station in enumerate(network.stations):
        if station.kind == "queue" and not station.rates:
            served = solution.throughput * network.demands[row] / station.servers
            np.testing.assert_allclose(solution.utilization[row], served)


@law
@given(networks())
def test_bounds_hold(network: Network) -> None:
    exact, bounds = solve(network, "exact").throughput, throughput_bounds(network)
    assert np.all(bounds.lower <= exact * (1 + 1e-10))
    assert np.all(exact <= bounds.upper * (1 + 1e-10))


@law
@given(networks(classes=1), st.integers(1, 20))
def test_balanced_job_bounds_hold_for_larger_populations(network: Network, jobs: int) -> None:
    network = _with_populations(network, np.array([jobs]))
    exact, bounds = solve(network, "exact").throughput, throughput_bounds(network)
    assert bounds.kind == "balanced job"
    assert np.all(bounds.lower <= exact * (1 + 1e-10))
    assert np.all(exact <= bounds.upper * (1 + 1e-10))


@law
@given(networks(classes=1), st.integers(2, 30))
def test_throughput_of_one_class_grows_with_its_population(network: Network, jobs: int) -> None:
    rates = np.stack([station.rates_up_to(jobs) for station in network.stations])
    curve = convolution(network.demands[:, 0], network.think_time[0], rates)
    assert np.all(np.diff(curve.throughput) >= -1e-12 * curve.throughput[1:])
    response_time = curve.queue_length.sum(axis=-2) / curve.throughput  # Little's law
    assert np.all(np.diff(response_time) >= -1e-9 * response_time[1:])


@law
@given(networks(), st.integers(0, 2))
def test_one_job_more_of_a_class_raises_its_throughput(network: Network, which: int) -> None:
    one_more = network.population.copy()
    one_more[which % one_more.size] += 1
    index = which % one_more.size
    before = solve(network, "exact").throughput[index]
    assert solve(_with_populations(network, one_more), "exact").throughput[index] >= before * (1 - 1e-10)


@law
@given(networks(classes=2, jobs=3))
def test_splitting_a_class_in_two_changes_nothing_but_names(network: Network) -> None:
    first = network.classes[0]
    split = Network(
        "split",
        tuple(
            replace(
                station, service=(station.service[0], *station.service), visits=(station.visits[0], *station.visits)
            )
            for station in network.stations
        ),
        (replace(first, name="half", population=2), *network.classes),
    )
    whole = _with_populations(network, network.population + np.eye(len(network.classes), dtype=int)[0] * 2)
    halves, one = solve(split, "exact"), solve(whole, "exact")
    np.testing.assert_allclose(halves.throughput[:2].sum(), one.throughput[0], rtol=1e-9)
    np.testing.assert_allclose(halves.queue_length[:, :2].sum(axis=1), one.queue_length[:, 0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("jobs", "stations", "exact"), [(3, 2, True), (4000, 2, False), (2000, 4, False)])
def test_what_an_exact_solution_would_take_long_for_is_approximated(jobs: int, stations: int, exact: bool) -> None:
    places = tuple(Station(f"s{at}", (0.1, 0.2), (1.0, 1.0), servers=2) for at in range(stations))
    network = Network("large", places, (JobClass("c1", jobs, 1.0), JobClass("c2", jobs, 2.0)))
    assert (solve(network, memory=1 << 50).bounds is None) is exact


@pytest.mark.parametrize(
    ("jobs", "exact"), [((10_000,), True), ((1_000_000,), False), ((5_000, 2), True), ((300_000, 2), False)]
)
def test_what_takes_very_many_short_steps_is_approximated(jobs: tuple[int, ...], exact: bool) -> None:
    one = (1.0,) * len(jobs)
    classes = tuple(JobClass(f"c{number}", count, 500.0) for number, count in enumerate(jobs))
    network = Network("large", (Station("s", one, one), Station("t", one, one)), classes)
    solution = solve(network)
    assert (solution.bounds is None) is exact
    assert 0.9 < solution.utilization[0].sum() <= 1.0 + 1e-6


def test_where_the_approximation_does_not_settle_the_exact_solution_answers_if_it_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(solver, "_CHEAP", 1)
    stations = tuple(Station(name, (seconds,), (1.0,)) for name, seconds in (("s", 1.0), ("t", 0.9999)))
    network = Network("nearly balanced", stations, (JobClass("c", 10_000),))
    with pytest.raises(PrecisionError, match="did not converge"):
        solve(network, "approximate")
    assert solve(network).bounds is None
    with pytest.raises(PrecisionError, match="did not converge"):
        solve(network, memory=1)


def test_where_linearizer_breaks_a_law_the_next_coarser_one_answers() -> None:
    stations = (
        Station("s1", service=(0.0, 5.0), visits=(0.5, 1.0)),
        Station("s2", service=(1.0, 0.5), visits=(1.0, 0.5), rates=(0.125,)),
    )
    network = Network("near saturation", stations, (JobClass("c1", 3, 1.0), JobClass("c2", 2, 1.0)))
    assert solve(network, "approximate").method == "schweitzer"


@law
@given(networks(classes=3, jobs=6))
def test_the_approximation_is_near_and_keeps_its_own_sums(network: Network) -> None:
    exact, near = solve(network, "exact"), solve(network, "approximate")
    np.testing.assert_allclose(near.throughput, exact.throughput, rtol=0.25)


@law
@given(st.integers(1, 40), st.lists(TIMES, min_size=1, max_size=6), st.floats(0.0, 10.0))
def test_both_exact_ways_agree_for_one_class(jobs: int, demands: list[float], think: float) -> None:
    by_values = mean_value_analysis(demands, think, jobs)
    by_constants = convolution(demands, think, np.ones((len(demands), jobs)))
    np.testing.assert_allclose(by_constants.throughput, by_values.throughput, rtol=1e-12)
    np.testing.assert_allclose(by_constants.queue_length, by_values.queue_length, rtol=1e-11)


def test_a_batch_solves_each_network_as_if_it_were_alone() -> None:
    generator = np.random.default_rng(7)
    demands, think = generator.uniform(0, 2, (5, 4)), generator.uniform(0, 3, 5)
    rates = np.stack([np.ones(9), np.minimum(np.arange(1, 10), 3.0), np.arange(1.0, 10), np.sqrt(np.arange(1, 10))])
    batch = convolution(demands, think, rates)
    for index in range(5):
        alone = convolution(demands[index], think[index], rates)
        np.testing.assert_allclose(batch.throughput[index], alone.throughput, rtol=1e-13)
        np.testing.assert_allclose(batch.queue_length[index], alone.queue_length, rtol=1e-12)

    demands, think = generator.uniform(0, 2, (5, 4, 2)), generator.uniform(0, 3, (5, 2))
    several = solve_exactly(demands, think, [3, 6], rates)
    for index in range(5):
        alone = solve_exactly(demands[index], think[index], [3, 6], rates)
        np.testing.assert_allclose(several.throughput[index], alone.throughput, rtol=1e-13)
        np.testing.assert_allclose(several.queue_length[index], alone.queue_length, rtol=1e-12)


@pytest.mark.parametrize("servers", [16, 64, 1000])
@pytest.mark.parametrize("think", [0.0, 5.0, 5000.0])
def test_thousands_of_jobs_at_many_servers_lose_no_digits(servers: int, think: float) -> None:
    jobs = 3000
    demands = np.array([0.1, 0.25, 0.3 * servers, 0.15])
    rates = np.ones((4, jobs))
    rates[2] = np.minimum(np.arange(1, jobs + 1), servers)
    curve = convolution(demands, think, rates)
    found = curve.queue_length.sum(axis=0) + curve.throughput * think
    # Queues and throughputs come from different sums, so that a lost digit in either would show here.
    np.testing.assert_allclose(found, np.arange(1, jobs + 1), rtol=1e-9)
    assert np.all(np.diff(curve.throughput) >= -1e-12)
    assert curve.throughput[-1] <= 1 / 0.3 * (1 + 1e-12)


def test_numbers_that_break_a_law_are_refused() -> None:
    network = Network("n", (Station("s", (1.0,), (1.0,)),), (JobClass("c", 2),))
    good = solve(network, "exact")
    for throughput, queue in [(1.0, 2.1), (1.5, 2.0), (-1.0, 2.0), (float("nan"), 2.0), (1.0, -2.0)]:
        with pytest.raises(PrecisionError, match="could not be solved within 1e-06"):
            Solution(network, good.method, np.array([throughput]), np.array([[queue]]))
