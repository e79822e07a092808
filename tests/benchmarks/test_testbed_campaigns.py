"""The committed campaigns, and that the simulator makes the same ones again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.testbed import campaign as campaigns
from benchmarks.testbed import catalogue, oracle
from benchmarks.testbed.checking import check
from benchmarks.testbed.clusters import CLUSTERS, node_of, write_platform
from benchmarks.testbed.loading import dedicated_loading
from benchmarks.testbed.monitoring import Samples
from benchmarks.testbed.simulator import Job, available, driver, simulate
from benchmarks.testbed.timeline import Series, Timeline
from metasched.store.files.campaigns import read_campaign
from metasched.store.files.runs import read_runs, write_runs

FOLDER = catalogue.DESIGN.folder
BOTH = [catalogue.DESIGN, catalogue.JUDGED]
needs_simgrid = pytest.mark.skipif(not available(), reason="SimGrid with SMPI is not installed")
every = pytest.mark.parametrize(
    ("collection", "scenario"),
    [
        pytest.param(collection, scenario, id=f"{scenario.name}-{scenario.seed}")
        for collection in BOTH
        for scenario in catalogue.scenarios(collection)
    ],
)


def test_no_run_of_the_design_judges() -> None:
    design, judged = (
        {
            (scenario.name, run.nodes, run.problem_size, run.start_time)
            for scenario in catalogue.scenarios(collection)
            for run in read_runs(collection.folder / scenario.name / "runs.csv")
        }
        for collection in BOTH
    )
    assert len(judged) > 1000
    assert not design & judged


def test_the_committed_campaigns_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 10e6


@every
def test_a_campaign_trains_then_predicts_one_run_after_the_other(
    collection: catalogue.Collection, scenario: campaigns.Scenario
) -> None:
    runs = read_runs(collection.folder / scenario.name / "runs.csv")
    assert Counter(run.processors for run in runs[:60]) == {1: 20, 2: 20, 4: 10, 8: 10}
    assert [run.phase for run in runs] == ["train"] * 60 + ["predict"] * scenario.predictions
    assert max(run.processors for run in runs) == len(scenario.cluster.processors)
    for run, following in pairwise(runs):
        assert run.start_time + run.execution_time < following.start_time + 0.1 * run.execution_time
        assert run.start_time < following.start_time


@pytest.mark.parametrize("name", ["md-intel-random", "ssor-amd-grid"])
def test_recorded_minima_follow_from_the_recorded_loads(name: str) -> None:
    campaign = read_campaign(FOLDER / name)
    times, cpu, bandwidth = campaign.loads.grid()
    column = {node: index for index, node in enumerate(campaign.loads.nodes)}
    period = float(times[0])
    assert campaign.runs
    samples = Samples(
        period,
        2,
        times,
        {node: cpu[:, index] for node, index in column.items()},
        {node_of(node): bandwidth[:, index] for node, index in column.items()},
    )
    for run in campaign.runs:
        # the recorded end carries the error of the measured time, the averages were taken up to the true one
        found = samples.minima(run.nodes, run.start_time, run.start_time + run.execution_time)
        assert found == pytest.approx((run.min_avg_avail_cpu, run.min_avg_avail_bw), rel=0.05)


def test_loads_slow_runs_down_and_never_speed_them_up() -> None:
    every = [(one, scenario) for one in BOTH for scenario in catalogue.scenarios(one)]
    assert every
    for collection, scenario in every:
        runs = read_runs(collection.folder / scenario.name / "runs.csv")
        ratio = np.array([run.execution_time / float(run.extra["dedicated_time"]) for run in runs])
        assert ratio.min() > 0.93  # four standard deviations of the time's error
        if scenario.loading != "dedicated":
            assert np.median(ratio) > 1.2


@pytest.mark.parametrize("collection", BOTH, ids=["design", "judged"])
@pytest.mark.parametrize(
    "row", dict.fromkeys([*catalogue.TABLE_3, *catalogue.TABLE_4, *catalogue.DEDICATED]), ids="-".join
)
def test_a_model_of_the_true_form_predicts_half_the_runs_within_seven_per_cent(
    row: tuple[str, str, str], collection: catalogue.Collection
) -> None:
    scenario = catalogue.scenario(*row, collection)
    runs = read_runs(collection.folder / scenario.name / "runs.csv")
    assert np.median(oracle.errors(scenario.application.name, scenario.cluster, runs)) < 7.0


def test_phases_of_a_run_last_as_long_as_their_slowest_process_and_add_up_to_the_run() -> None:
    folder = FOLDER / "twophase-intel-random"
    table = np.genfromtxt(folder / "phases.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    runs = read_runs(folder / "runs.csv")
    assert set(table["run"]) == set(range(len(runs)))
    for index, run in enumerate(runs):
        own = table[table["run"] == index]
        assert Counter(own["phase"]) == {1: run.processors, 2: run.processors}
        total = sum(own["execution_time"][own["phase"] == phase].max() for phase in (1, 2))
        assert total == pytest.approx(run.execution_time, rel=0.1)


def test_co_scheduled_jobs_slow_each_other_only_where_they_share() -> None:
    assert catalogue.pairings()
    for pairing in catalogue.pairings():
        runs = read_runs(FOLDER / pairing.name / "runs.csv")
        assert len(runs) == 2 * pairing.pairs
        slowdown = np.array([run.execution_time / float(run.extra["alone_time"]) for run in runs])
        sharing = np.array([run.extra["sharing"] for run in runs])
        assert slowdown[sharing == "nothing"] == pytest.approx(1.0, abs=0.1)
        assert slowdown[sharing == "nodes"].max() > 1.8
        nothing, links, nodes = (slowdown[sharing == kind].mean() for kind in ("nothing", "links", "nodes"))
        # Both times of a job carry the measurement's error; on fast links it is more than what sharing them costs.
        error = 2.0 * np.sqrt(2.0) * campaigns.TIME_ERROR / np.sqrt((sharing == "links").sum())
        assert nodes > links > nothing - error
        if pairing.cluster.bandwidth <= 100.0:  # only slow links are worth fighting for
            assert links > 1.02


@pytest.mark.parametrize("collection", BOTH, ids=["design", "judged"])
@pytest.mark.parametrize("scenario", catalogue.portings(), ids=lambda scenario: scenario.name)
def test_porting_has_idle_runs_on_one_and_two_processors(
    scenario: campaigns.Scenario, collection: catalogue.Collection
) -> None:
    runs = read_runs(collection.folder / "porting" / f"{scenario.application.name}-{scenario.cluster.name}.csv")
    assert Counter(run.processors for run in runs) == catalogue.PORTING
    assert all(run.min_avg_avail_cpu == 1.0 for run in runs)


@needs_simgrid
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_campaign_made_again_is_the_committed_one_to_the_byte(tmp_path: Path) -> None:
    scenario = catalogue.scenario("md", "intel", "random")
    campaigns.write(scenario, campaigns.make(scenario, workers=2), tmp_path)
    committed = FOLDER / scenario.name
    paths = sorted(committed.iterdir())
    assert [path.name for path in paths if (tmp_path / path.name).read_bytes() != path.read_bytes()] == []
    assert "runs.csv" in {path.name for path in paths}


@needs_simgrid
@pytest.mark.slow
@pytest.mark.timeout(300)
@every
def test_runs_of_every_campaign_simulated_again_are_the_committed_ones(
    collection: catalogue.Collection, scenario: campaigns.Scenario
) -> None:
    found = check(scenario, read_runs(collection.folder / scenario.name / "runs.csv"), count=6)
    assert found.passed, found


@needs_simgrid
@pytest.mark.slow
def test_a_run_that_is_not_what_the_simulator_makes_is_found() -> None:
    scenario = catalogue.scenario("cg", "intel", "random")
    runs = list(read_runs(FOLDER / scenario.name / "runs.csv"))
    runs[-1] = replace(runs[-1], execution_time=1.002 * runs[-1].execution_time)
    found = check(scenario, runs, count=2)
    assert found.loaded == pytest.approx(0.002, rel=0.1)
    assert not found.passed


@needs_simgrid
@pytest.mark.slow
def test_idle_runs_made_again_with_any_number_of_workers_are_the_committed_ones(tmp_path: Path) -> None:
    for workers in (1, 3):
        scenario = catalogue.scenario("cg", "amd", "dedicated")
        made = campaigns.make(scenario, workers, draw=catalogue.porting_requests)
        write_runs(tmp_path / "runs.csv", made.runs)
        assert (tmp_path / "runs.csv").read_bytes() == (FOLDER / "porting" / "cg-amd.csv").read_bytes()


@needs_simgrid
@pytest.mark.slow
def test_half_a_processor_takes_twice_as_long_from_the_moment_it_is_halved(tmp_path: Path) -> None:
    cluster = CLUSTERS["intel"]
    idle = dedicated_loading(cluster, 1, 10_000.0)
    job = Job("md", 6_000, 0.0, ("n0",))
    whole = simulate(driver(), write_platform(cluster, None, tmp_path), [job])[0].execution_time
    halved = Timeline({**idle.cpu, "n0": Series(np.array([0.0, 40.0]), np.array([1.0, 0.5]))}, idle.bandwidth, 10_000.0)
    loaded = simulate(driver(), write_platform(cluster, halved, tmp_path), [job])[0].execution_time
    assert loaded == pytest.approx(40.0 + 2.0 * (whole - 40.0), rel=1e-6)


@needs_simgrid
@pytest.mark.slow
def test_two_equal_jobs_on_the_same_processors_take_twice_as_long_as_one(tmp_path: Path) -> None:
    cluster = CLUSTERS["intel"]
    platform = write_platform(cluster, None, tmp_path)
    job = Job("md", 8_000, 0.0, ("n0", "n1"))
    (alone,) = simulate(driver(), platform, [job])
    times = [outcome.execution_time for outcome in simulate(driver(), platform, [job, job])]
    assert times == pytest.approx([2.0 * alone.execution_time] * 2, rel=0.02)


@needs_simgrid
@pytest.mark.slow
def test_work_that_leaves_the_cache_runs_slower(tmp_path: Path) -> None:
    platform = write_platform(CLUSTERS["intel"], None, tmp_path)

    def time_per_point(side: int) -> float:
        (outcome,) = simulate(driver(), platform, [Job("poisson", side, 0.0, ("n0",))])
        return outcome.execution_time / side**2

    assert time_per_point(2_000) > 2.0 * time_per_point(150)


@pytest.mark.parametrize("collection", BOTH, ids=["design", "judged"])
def test_campaigns_of_layouts_tell_processes_per_node(
    collection: catalogue.Collection,
) -> None:
    runs = [
        run
        for scenario in catalogue.laid_out(collection)
        for run in read_runs(collection.folder / "layouts" / scenario.name / "runs.csv")
    ]
    most = [max(Counter(map(node_of, run.nodes)).values()) for run in runs]
    assert [run.settings.processes_per_node for run in runs] == most
    assert Counter(run.phase for run in runs) == {phase: 60 * len(catalogue.LAYOUTS) for phase in ("train", "predict")}
