"""Placements keep away from what other jobs take."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metasched.advised_placements import Answer, Ask
from metasched.jobs import read_mark
from metasched.placement.clusters.memory_limits import MemoryLimits
from metasched.placement.clusters.partition import Holder, JobLimits, Partition
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.running_jobs import StartedJob
from metasched.predictors.abilities import under
from metasched.predictors.load_doubt import predict_one
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Load, Settings
from metasched.schedulers.settings import SlurmCluster
from metasched.service.advice.rankings import ranked
from metasched.service.configuration import Configuration
from metasched.service.daemon import Daemon
from metasched.service.schemas import RankIn
from metasched.service.state.live_clusters import runner_of
from metasched.store import documents
from metasched.store.database.store import Store
from tests.service.daemons import CLUSTERS, metered_database, running, runs


def test_acting_spreads_a_burst_over_the_nodes(tmp_path: Path) -> None:
    with running(tmp_path, mode="act") as daemon:
        ask = Ask(application="cg", problem_size=1400, processors=[4], per_node=4)
        answers = [daemon.placer.answer(ask, time.time()) for _ in range(4)]
    assert len({answer.nodes for answer in answers}) == 4


@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_no_job_is_placed_by_a_prediction_that_spans_orders_of_magnitude(tmp_path: Path, size: float) -> None:
    with running(tmp_path, mode="act") as daemon:
        near = daemon.placer.answer(Ask(application="cg", problem_size=1400), time.time())
        far = daemon.placer.answer(Ask(application="cg", problem_size=size), time.time())
    assert near.placed
    assert not far.placed
    assert f"the model of cg does not reach to n={size:g}: " in far.message


def test_a_placement_keeps_away_from_jobs_that_fill_the_links(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        ask = Ask(application="cg", problem_size=1900, processors=[4], per_node=1)
        alone = daemon.placer.answer(ask, time.time())
        assert alone.placement is not None
        assert (alone.placement.slowdown, alone.warnings) == (1.0, [])
        nodes = tuple(f"e{index}" for index in range(1, 5))
        jobs = [StartedJob(nodes, (2,) * 4, 1.0, "cg", 9e4), StartedJob(("e1",), (1,), 1.0, "lu", 5.0)]
        daemon.clusters.put_running("cluster east", jobs, time.time())
        daemon.views.refresh()
        shared = daemon.placer.answer(ask, time.time())
        assert shared.placement is not None
        assert shared.placement.slowdown > 1.02
        assert f"{shared.placement.slowdown:.2f} times as long as alone" in shared.message
        assert shared.warnings == ["1 job on east is assumed to share nothing, since it has no model: lu"]


def test_contention_counts_a_silent_node_as_placements_do(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.work.stop()
        now = time.time()
        daemon.clusters.note([
            Load(now - 900.0 * (node == "e1"), node, 0.9 if node == "e1" else 0.5, 80.0)
            for node in daemon.clusters.nodes
        ])  # fmt: skip
        east = daemon.clusters.refresh(now).named("east")
        assert east is not None
        assert east.state.available_cpu[east.state.nodes.index("e1")] == 0.9
        shared = daemon.placer.contention([east], {}, {}, 1900.0, (), daemon.placer.loads(now))
        assert set(shared.clusters["east"].available_cpu.tolist()) == {0.5}

        def first(**asked: float) -> tuple[list[str], float]:
            question = RankIn(
                application="cg", problem_size=900, processors=(1,), clusters=frozenset({"east"}), **asked
            )
            found = ranked(question, daemon.clusters.view, daemon.models, daemon.placer, now)["placements"][0]
            return found["nodes"], found["available_cpu"]

        assert first()[1] == 0.5
        assert first(stale_after=1000.0) == (["e1"], 0.9)


def test_partitions_that_may_all_be_done_first_are_left_to_slurm(tmp_path: Path) -> None:
    with running(tmp_path, mode="act") as daemon:
        (east,) = [each for each in daemon.clusters.view.partitions if each.state.name == "east"]
        (free, held, slow) = (
            replace(east, scheduler="slurm", name=name, state=replace(east.state, name=name, queue_wait=wait))
            for name, wait in (
                ("free", QueueWait.always(0.0)), ("held", QueueWait.always(1.0)), ("slow", QueueWait.always(9e4)),
            )
        )  # fmt: skip
        acting = daemon.placer._configuration
        both = acting.model_copy(update={"several_partitions": True, "slurm": [SlurmCluster(name="slurm")]})
        ask = Ask(application="cg", problem_size=1900, processors=[4], per_node=4, scheduler="slurm", trial=True)

        def answered(*partitions: Partition, configuration: Configuration = both) -> Answer:
            daemon.placer.configure(configuration)
            daemon.clusters.put("slurm", list(partitions), time.time())
            daemon.views.refresh()
            return daemon.placer.answer(ask, time.time())

        several = answered(free, held, slow)
        excluded = daemon.placer.answer(ask.model_copy(update={"clusters": ("free", "slow")}), time.time())
        assert (excluded.partition, excluded.partitions) == ("free", [])
        assert (several.partition, several.partitions, several.steer) == ("free", ["free", "held"], "partition")
        assert "Slurm chooses among free, held, which are near ties" in several.message
        for alone in (
            answered(free, slow),
            answered(free, replace(held, time_limit=1.0)),
            answered(free, replace(held, limits=lambda holder: JobLimits(fewest_nodes=2))),
            answered(free, held, configuration=acting),
            answered(free, held, configuration=both.model_copy(update={"slurm": []})),
        ):
            assert (alone.partition, alone.partitions, alone.steer) == ("free", [], "features")
            assert "near ties" not in alone.message


REFUSED = "no partition admits the job, or it requests more processors than its QOS or its account allows"


def test_no_job_gets_more_than_its_qos_or_account_allows(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        of_qos = {"small": JobLimits(processors=2), "narrow": JobLimits(nodes=1), "short": JobLimits(time=30.0)}

        def limits(holder: Holder) -> JobLimits:
            return JobLimits(processors=1) if holder.account == "poor" else of_qos.get(holder.qos, JobLimits())

        (east,) = [each for each in daemon.clusters.view.partitions if each.state.name == "east"]
        daemon.clusters.put("slurm", [replace(east, limits=limits, scheduler="slurm", name="all")], time.time())
        daemon.views.refresh()
        ask = Ask(application="cg", problem_size=1900, max_processors=8, per_node=1, scheduler="slurm")

        def answered(qos: str, **changed: object) -> Answer:
            return daemon.placer.answer(ask.model_copy(update={"qos": qos, **changed}), time.time())

        free, small, short = answered(""), answered("small"), answered("short")
        assert (free.processors or 0) > 2
        assert (free.time_limit or 0.0) > 30.0
        assert (small.processors, short.processors, short.time_limit) == (2, free.processors, 30.0)
        assert answered("", account="poor").processors == 1
        assert answered("small", threads=2, per_node=2).processors == 1
        refused = answered("", account="poor", threads=2, per_node=2)
        assert refused.message == REFUSED
        assert "not as many nodes as the partition, the QOS and the account" in answered("narrow").message
        refused = answered("small", processors=(4,), max_processors=None)
        assert refused.message == REFUSED
        daemon.clusters.put(
            "slurm",
            [replace(east, limits=lambda _: JobLimits(fewest_nodes=2), scheduler="slurm", name="all")],
            time.time(),
        )
        daemon.views.refresh()
        assert not answered("", processors=(1,), max_processors=None).placed
        assert answered("", processors=(2,), max_processors=None).node_count == 2


def test_a_partition_whose_limit_admits_no_number_that_is_allowed_limits_no_other(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        (east,) = [each for each in daemon.clusters.view.partitions if each.state.name == "east"]
        tight, wide = (
            replace(east, limits=lambda _, most=most: JobLimits(processors=most), scheduler="slurm", name=name,
                    state=replace(east.state, name=name))
            for name, most in (("tight", 6), ("wide", 100))
        )  # fmt: skip
        daemon.clusters.put("slurm", [tight, wide], time.time())
        daemon.views.refresh()
        ask = Ask(application="cg", problem_size=1900, processors=(2, 8), min_processors=4, scheduler="slurm")
        found = daemon.placer.answer(ask, time.time())
    assert (found.partition, found.processors) == ("wide", 8)


def test_as_many_processes_go_on_a_node_as_its_memory_is_for(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        (east,) = [each for each in daemon.clusters.view.partitions if each.state.name == "east"]
        room = np.array([1000.0, 1000.0, 1000.0, np.nan])

        def answered(memory_per_processor: float | None = None, **changed: Any) -> Answer:
            usual = {name: changed.pop(name, None) for name in ("usual", "each")}
            given = replace(
                east, state=replace(east.state, name="slurm/all", memory=room), scheduler="slurm", name="all",
                memory=usual["usual"], memory_per_processor=usual["each"],
            )  # fmt: skip
            daemon.clusters.put("slurm", [given], time.time())
            daemon.views.refresh()
            ask = Ask(
                application="cg", problem_size=1900, scheduler="slurm", memory_per_processor=memory_per_processor,
                **{"processors": [4]} | changed,
            )  # fmt: skip
            return daemon.placer.answer(ask, time.time())

        assert answered().node_count == answered(250.0).node_count == answered(each=250.0).node_count == 1
        assert answered(400.0).node_count == answered(each=400.0).node_count == 2
        assert answered(100.0, each=400.0).node_count == answered(memory=900.0, each=400.0).node_count == 1
        assert answered(500.0, per_node=1).placed is False  # of three nodes with so much
        assert answered(501.0).placed is answered(1001.0).placed is answered(usual=1001.0).placed is False
        assert answered(600.0, processors=[3]).nodes == "e[1-3]"


def test_a_job_without_stated_or_usual_memory_gets_nodes_without_jobs_where_memory_counts(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        (east,) = [each for each in daemon.clusters.view.partitions if each.state.name == "east"]
        state = replace(east.state, name="slurm/all", jobs=np.array([0, 1, 1, 1]), processors=np.full(4, 8))
        found = []
        for counts, usual, stated in ((True, None, None), (False, None, None), (True, 10.0, None), (True, None, 10.0)):
            given = replace(
                east, scheduler="slurm", name="all", counts_memory=counts, memory_per_processor=usual,
                state=replace(state, memory=np.full(4, 900.0)),
            )  # fmt: skip
            daemon.clusters.put("slurm", [given], time.time())
            daemon.views.refresh()
            ask = Ask(application="cg", problem_size=1900, scheduler="slurm", processors=[16],
                      memory_per_processor=stated)  # fmt: skip
            found.append(daemon.placer.answer(ask, time.time()).placed)
    assert found == [False, True, True, True]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One whose partitions each test tells anew; it places in shadow, so that no job takes anything from the next."""
    with running(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon


@pytest.mark.parametrize(
    ("limits", "demanded", "placed"),
    [
        (MemoryLimits(per_processor=250.0), {"memory_per_processor": 250.0}, ["one", "two"]),
        (MemoryLimits(per_processor=250.0), {"memory_per_processor": 251.0}, ["two"]),
        (MemoryLimits(per_processor=250.0), {"memory": 500.0, "per_node": 2}, ["one", "two"]),
        (MemoryLimits(per_processor=250.0), {"memory": 501.0, "per_node": 2}, ["two"]),
        (MemoryLimits(per_processor=250.0), {"memory": 900.0, "exclusive": True}, ["one", "two"]),
        (MemoryLimits(per_node=400.0), {"memory": 401.0}, ["two"]),
        (MemoryLimits(per_node=400.0), {"memory_per_processor": 401.0}, ["two"]),
        (MemoryLimits(per_node=400.0), {"memory": 400.0}, ["one", "two"]),
    ],
)
def test_no_job_is_placed_where_it_would_get_more_processors_for_its_memory_or_never_start(
    daemon: Daemon, limits: MemoryLimits, demanded: dict[str, Any], placed: list[str]
) -> None:
    (east,) = [each for each in daemon.clusters.view.partitions if each.state.name == "east"]
    state = replace(east.state, memory=np.full(4, 1000.0))
    one, two = (
        replace(east, state=replace(state, name=name), scheduler="slurm", name=name, memory_limits=allowed)
        for name, allowed in (("one", limits), ("two", MemoryLimits()))
    )
    daemon.clusters.put("slurm", [one, two], time.time())
    daemon.views.refresh()
    asked = {"application": "cg", "problem_size": 1900, "scheduler": "slurm", "processors": [2]} | demanded
    found = [daemon.placer.answer(Ask(**asked, partitions=[name]), time.time()) for name in ("one", "two")]
    assert [each.partition for each in found if each.placed] == placed


@pytest.mark.parametrize("counts", [True, False])
def test_a_job_waits_for_the_memory_of_jobs_placed_just_now(tmp_path: Path, counts: bool) -> None:
    with running(tmp_path, mode="act") as daemon:
        (east,) = [each for each in daemon.clusters.view.partitions if each.state.name == "east"]
        memory = np.array([900.0, 450.0, 300.0, np.nan])  # for three processors
        state = replace(east.state, name="slurm/all", memory=memory, processors=np.full(4, 8))
        given = replace(east, state=state, scheduler="slurm", name="all", counts_memory=counts)
        daemon.clusters.put("slurm", [given], time.time())
        daemon.views.refresh()
        asked = {"application": "cg", "problem_size": 1900, "scheduler": "slurm", "memory_per_processor": 450.0}
        found = [daemon.placer.answer(Ask(**asked, processors=[count]), time.time()) for count in (2, 2, 1, 2)]
    placements = [each.placement for each in found if each.placement is not None]
    assert [each.queue_wait > 0 for each in placements] == [False, counts, False, counts]


def test_a_parameter_that_was_never_learned_leaves_a_placement_with_its_layout(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        ask = Ask(application="cg", problem_size=1900, processors=[4], threads=2, parameters={"steps": 5})
        answer = daemon.placer.answer(ask, time.time())
    assert answer.placed
    assert answer.placement is not None
    assert (answer.placement.resource_set.threads, answer.node_count) == (2, 2)
    assert any("parameter 'steps' is unknown" in line for line in answer.warnings)


@pytest.fixture
def stating(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with an application ``fem`` whose runs on east have known steps, and those on west none yet."""
    with Store.open(tmp_path / "metasched.db") as store:
        for cluster in ("east", "west"):
            made = [
                replace(each, run=replace(
                    each.run, application="fem", execution_time=each.run.execution_time * steps / 100.0,
                    extra={"parameter:steps": str(steps)} if cluster == "east" else {},
                ))
                for each, steps in zip(runs(cluster), (100, 1000) * 20, strict=True)
            ]  # fmt: skip
            store.runs.add_all(made)
            predictor = RobustPredictor("fem", cluster).fit([each.run for each in made])
            store.models.save(
                "fem", cluster, json.loads(documents.dump(predictor)), learned=[each.uid for each in made]
            )
    with running(tmp_path, learned=False) as daemon:
        yield daemon


def stated(daemon: Daemon, cluster: str = "east", **parameters: float | str) -> Answer:
    ask = Ask(
        application="fem", problem_size=1900, processors=[4], clusters=frozenset({cluster}), parameters=parameters
    )
    return daemon.placer.answer(ask, time.time())


@pytest.mark.parametrize("wrong", [{"stpes": 3.0}, {"solver": "amg"}])
def test_a_misspelt_parameter_leaves_a_job_its_others_and_is_said(stating: Daemon, wrong: dict[str, Any]) -> None:
    right, few, doubted = (
        stated(stating, steps=1000.0),
        stated(stating, steps=100.0),
        stated(stating, steps=1000.0, **wrong),
    )
    expected = [each.placement.prediction.execution_time for each in (right, few, doubted) if each.placement]
    assert expected[0] > 5.0 * expected[1]
    assert expected[2] == expected[0]
    why = f"parameter '{next(iter(wrong))}' is unknown, expected one of steps"
    # Of equal nodes others come first once the view of the cluster is a new one.
    assert doubted.message == f"{right.message}; {why}".replace(f"({right.nodes})", f"({doubted.nodes})")
    assert why in doubted.warnings
    # What it changes is not known.
    assert right.time_limit is not None
    assert doubted.time_limit is None


def test_a_parameter_counts_where_it_is_known_though_another_platform_does_not_know_it(stating: Daemon) -> None:
    def placed(**asked: Any) -> Answer:
        return stating.placer.answer(Ask(application="fem", problem_size=1900, processors=[4], **asked), time.time())

    usual, steps = placed(), {"steps": 1000.0}
    both, east = placed(parameters=steps), stated(stating, "east", **steps)
    assert usual.placement is not None
    assert both.placement is not None
    assert east.placement is not None
    # Where it is placed is decided by what both know: steps that only one counts would make the other look fast.
    assert usual.placement.resource_set.cluster == both.placement.resource_set.cluster == "east"
    assert both.placement.prediction == east.placement.prediction != usual.placement.prediction
    assert (both.message, both.time_limit) == (east.message, east.time_limit)
    why = "parameter 'steps' is unknown, expected none, since the runs learned had none"
    assert f"the other partitions are compared without it: {why}" in both.warnings
    west = placed(parameters=steps, clusters=frozenset({"west"}))
    assert west.message.endswith(why)
    assert west.time_limit is None


def test_a_word_where_numbers_were_is_said_and_widens_the_interval(stating: Daemon) -> None:
    right, doubted = stated(stating, steps=1000.0), stated(stating, steps="many")
    assert "; parameter steps is 'many', expected a number, as in the runs learned" in doubted.message
    assert doubted.time_limit is None
    widths = [each.placement.prediction.interval for each in (right, doubted) if each.placement]
    assert widths[1].high / widths[1].low > 3.0 * widths[0].high / widths[0].low


def test_a_job_with_a_misspelt_parameter_keeps_its_own_clock(tmp_path: Path) -> None:
    metered(tmp_path)
    least = {"policy": "min-energy", "max_slowdown": 0.5, "frequencies": [1200, 2000], "set_frequency": True}
    asked = {"application": "a", "problem_size": 20_000, "clusters": frozenset({"east"}), "processors": [4]}
    with running(tmp_path, learned=False, mode="act", energy=least) as daemon:
        right, doubted, free = (
            daemon.placer.answer(Ask(**asked | more, trial=True), time.time())
            for more in ({"frequency": 2000.0}, {"frequency": 2000.0, "parameters": {"stpes": 3}}, {})
        )
    chosen = [each.placement.resource_set.frequency for each in (right, doubted, free) if each.placement]
    assert chosen == [None, None, 1200.0]


def metered(folder: Path) -> None:
    (folder / "metasched.db").write_bytes(metered_database())


def test_placements_are_made_for_least_energy_at_a_clock_where_the_configuration_says_so(tmp_path: Path) -> None:
    metered(tmp_path)
    ask, answers = Ask(application="a", problem_size=20_000, clusters=frozenset({"east"}), processors=[4]), {}
    choice = {"policy": "min-energy", "max_slowdown": 0.5, "frequencies": [1200, 2000]}
    for name, energy in (("plain", {}), ("chosen", choice), ("set", choice | {"set_frequency": True})):
        with running(tmp_path, learned=False, mode="act", energy=energy) as daemon:
            answers[name] = daemon.placer.answer(ask, time.time())
    plain, chosen, told = (answers[name].placement for name in ("plain", "chosen", "set"))
    assert plain is not None
    assert chosen is not None
    assert told is not None
    assert (plain.resource_set.frequency, chosen.resource_set.frequency) == (None, 1200.0)
    assert chosen.energy is not None
    assert plain.energy is not None
    assert chosen.energy < plain.energy
    assert [answers[name].frequency for name in ("plain", "chosen", "set")] == [None, None, 1200.0]
    assert "at 1200 MHz" in answers["chosen"].message
    # The time limit is of the run at this clock.
    view = under(documents.parse(metered_model(tmp_path), where="a"), Settings(frequency=1200.0))
    sets, level = chosen.resource_set, Configuration().time_limit_level
    found = predict_one(view, 20_000, sets.processors, sets.available_cpu, sets.available_bandwidth, level, None)
    margin, limit = Configuration().time_limit_margin, answers["chosen"].time_limit
    assert limit == 60.0 * math.ceil(margin * found.interval.high / 60.0)
    assert limit > (answers["plain"].time_limit or 0.0)


def test_a_job_with_a_clock_of_its_own_is_given_no_other(tmp_path: Path) -> None:
    metered(tmp_path)
    asked = {"application": "a", "problem_size": 20_000, "clusters": frozenset({"east"}), "processors": [4]}
    least = {"policy": "min-energy", "max_slowdown": 0.5, "frequencies": [1200, 2000], "set_frequency": True}
    answers = []
    with running(tmp_path, learned=False, mode="act", energy=least) as daemon:
        for own in ({}, {"frequency": 1200.0}, {"frequency": 2000.0}, {"keeps_clock": True}):
            answers.append(daemon.placer.answer(Ask(**asked | own), time.time()))
    assert [each.frequency for each in answers] == [1200.0, None, None, None]
    chosen, slow, fast, unknown = (each.placement for each in answers)
    assert chosen is not None
    assert slow is not None
    assert fast is not None
    assert unknown is not None
    assert slow.prediction.execution_time == pytest.approx(chosen.prediction.execution_time)
    assert slow.prediction.execution_time > 1.1 * fast.prediction.execution_time
    assert slow.energy is not None
    assert fast.energy is not None
    assert slow.energy < fast.energy
    assert [each.time_limit is None for each in answers] == [False, False, False, True]


def test_the_time_of_a_job_at_a_clock_whose_effect_is_unknown_is_not_limited(tmp_path: Path) -> None:
    asked = {"application": "cg", "problem_size": 1900, "processors": [4]}
    with running(tmp_path) as daemon:
        found = [
            daemon.placer.answer(Ask(**asked | own), time.time())
            for own in ({}, {"frequency": 1200.0}, {"keeps_clock": True})
        ]
    assert [each.placed for each in found] == [True, True, True]
    assert [each.time_limit is None for each in found] == [False, True, True]


@pytest.mark.parametrize(
    ("energy", "clock"),
    [({}, 1200.0), ({"power_cap": 900.0}, None), ({"power_cap": 900.0, "set_frequency": True}, 1200.0)],
    ids=str,
)
def test_under_a_cap_only_clocks_that_are_set_are_chosen(
    energy: dict[str, object], clock: float | None, tmp_path: Path
) -> None:
    metered(tmp_path)
    ask = Ask(application="a", problem_size=20_000, clusters=frozenset({"east"}), processors=[4])
    least = {"policy": "min-energy", "max_slowdown": 0.5, "frequencies": [1200, 2000]} | energy
    with running(tmp_path, learned=False, mode="act", energy=least) as daemon:
        answer = daemon.placer.answer(ask, time.time())
    assert answer.placement is not None
    assert answer.placement.resource_set.frequency == clock


def metered_model(folder: Path) -> str:
    """The model that :func:`metered` stored."""
    with Store.open(folder / "metasched.db") as store:
        return json.dumps(store.models.document("a", "east"))


def test_a_cap_that_the_cluster_draws_without_the_job_is_named(tmp_path: Path) -> None:
    metered(tmp_path)
    described = CLUSTERS.replace('name = "east"', 'name = "east"\nidle_watts = 50')
    ask = Ask(application="a", problem_size=900, clusters=frozenset({"east"}))
    with running(tmp_path, learned=False, clusters=described, energy={"power_cap": 150.0}) as daemon:
        answer = daemon.placer.answer(ask, time.time())
        question = RankIn(application="a", problem_size=900, clusters=frozenset({"east"}), power_cap=1000.0)

        def why(**changed: float) -> str:
            asked = question.model_copy(update=changed)
            return str(ranked(asked, daemon.clusters.view, daemon.models, daemon.placer, time.time()).get("why", ""))

        assert not why()
        assert "the power cap of 150 W is below what east draws without the job" in why(power_cap=150.0)
        jobs = [StartedJob((f"e{number}",), (1,), 1.0, "a", 900.0) for number in range(1, 5)]
        daemon.clusters.put_running("cluster east", jobs, time.time())
        daemon.views.refresh()
        assert "by jobs that run" in why(power_cap=201.0)
    assert not answer.placed
    assert "the power cap of 150 W is below what east draws without the job" in answer.message


SLOW = {"policy": "min-energy", "max_slowdown": 0.5, "frequencies": [1200, 2000], "set_frequency": True}


@pytest.mark.parametrize(
    ("energy", "own", "clock", "as_placed"),
    [
        ({}, {}, "", True),
        ({}, {}, "frequency=1200", False),
        (SLOW, {}, "frequency=1200", True),
        (SLOW, {}, "frequency=2000", False),
        (SLOW, {}, "", False),
        (SLOW, {"frequency": 2000.0}, "frequency=2000", True),
        (SLOW, {"frequency": 2000.0}, "frequency=1200", False),
    ],
)
def test_a_placed_job_that_runs_at_its_clock_counts_with_the_power_of_its_placement(
    energy: dict[str, object], own: dict[str, float], clock: str, as_placed: bool, tmp_path: Path
) -> None:
    metered(tmp_path)
    asked = {"application": "a", "problem_size": 900, "clusters": frozenset({"east"}), "processors": [2]}
    with running(tmp_path, learned=False, mode="act", energy=energy) as daemon:
        answer = daemon.placer.answer(Ask(**asked | own), time.time())
        assert answer.placement is not None
        view = daemon.clusters.view
        (east,) = [each for each in view.partitions if each.state.name == "east"]
        nodes, powers = answer.placement.resource_set.nodes, []
        for uid in (answer.id, "0" * 32):
            comment = f"metasched:app=a,n=20000,placement={uid}{clock and ','}{clock}"
            mark = read_mark(comment)
            assert mark is not None
            job = StartedJob(
                nodes, (2 // len(nodes),) * len(nodes), 0.0, "a", 20_000.0, comment=comment, settings=mark.settings
            )
            daemon.clusters.view = replace(view, running={runner_of(east): (job,)})
            (counted,) = daemon.placer.running([east])[0]["east"]
            powers.append((counted.power, counted.power_doubt))
    placed, by_model = powers
    told = (answer.placement.power_middle, answer.placement.power_doubt)
    assert by_model != told
    assert placed == (told if as_placed else by_model)
