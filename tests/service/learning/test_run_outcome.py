"""What becomes of an ended job: the run, whether it may be learned, and the loads that its nodes had."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from known_model import Known

from metasched.jobs import UNKNOWN_DEVICES, EndedJob, Fate, Mark
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.records import Load, Request, Run, Settings
from metasched.service.learning.run_outcome import as_reported, conclude, observed, with_devices
from metasched.service.state.load_names import LoadNames
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        ({"n1": [(-300.0, 0.5, 90.0)]}, (0.5, 90.0)),  # one holds until the next
        ({"n1": [(-300.5, 0.5, 90.0)]}, None),
        ({"n1": [(-5.0, 0.2, 10.0), (5.0, 0.6, 50.0)]}, (0.4, 30.0)),
        ({"n1": [(-20.0, 0.9, 90.0), (-5.0, 0.2, 10.0)]}, (0.2, 10.0)),
        ({"n1": [(2.0, 0.2, 10.0), (6.0, 0.7, 60.0)]}, (0.4, 30.0)),  # the first counts from the start
        ({"n1": [(2.0, 0.2, 10.0), (10.0, 0.7, 60.0)]}, (0.2, 10.0)),  # what comes at the end counts no more
        ({"n1": [(0.0, 0.5, 90.0)], "n2": [(0.0, 0.8, 40.0)]}, (0.5, 40.0)),
        ({"n1": [(0.0, 0.5, 90.0)], "n2": []}, (0.5, 90.0)),
        ({"n1": [(0.0, 0.5, 90.0)], "n2": [], "n3": []}, None),
        ({"n1": [(0.0, 0.0, 0.0)]}, (0.01, 0.001)),
        ({}, None),
    ],
)
def test_the_smallest_average_over_the_run_of_any_node_counts_where_half_of_them_were_measured(
    loads: dict[str, list[tuple[float, float, float]]], expected: tuple[float, float] | None, tmp_path: Path
) -> None:
    with Store.open(tmp_path / "metasched.db") as store:
        store.loads.add(Load(NOW + at, node, *each) for node, rows in loads.items() for at, *each in rows)
        found = observed(tuple(loads), NOW, NOW + 10.0, store)
    assert found == pytest.approx(expected or (math.nan, math.nan), nan_ok=True)


JOB = EndedJob("east", "7", "", "p", ("n1", "n2"), 4, NOW, NOW + 9.0, 0)
NEVER = {"unlearned": "yes"}
MARK = Mark("cg", 900.0)


@pytest.mark.parametrize(
    ("job", "mark", "processors", "learnable", "extra"),
    [
        ({}, {"processors": 2}, 4, True, {}),  # the scheduler's count goes before a comment's
        ({"kind": "unknown"}, {"processors": 2}, 4, False, NEVER),
        ({"kind": "unknown"}, {"processors": 4}, 4, True, {}),
        ({"kind": "unadvised"}, {"processors": 2}, 4, False, NEVER),
        ({"kind": "unadvised"}, {"processors": 4}, 4, True, {}),
        ({"processors": None}, {"processors": 3}, 3, True, {}),
        ({"processors": None}, {}, 2, False, NEVER),
        ({"processors": None, "nodes": ()}, {}, 1, False, NEVER),
        ({"exit_status": 1}, {}, 4, False, {}),
        ({}, {"done": 0.25}, 4, False, NEVER | {"done": "0.25"}),
        ({}, {"placement": "ab"}, 4, True, {"placement": "ab"}),
        ({"processes_per_node": 2, "threads": 3}, {}, 4, True, {"processes_per_node": "2", "threads": "3"}),
        ({"energy": 5.5, "energy_covers": "node", "user": "9"}, {}, 4, True,
         {"energy": "5.5", "energy_covers": "node", "user": "9"}),
        ({"devices": UNKNOWN_DEVICES}, {}, 4, False, NEVER),
        ({"devices": (("gpu", "a100"),)}, {}, 4, True, {"parameter:gpu": "a100"}),
    ],
)  # fmt: skip
def test_a_job_becomes_a_run_that_is_learned_where_all_of_it_is_known(
    job: dict[str, Any], mark: dict[str, Any], processors: int, learnable: bool, extra: dict[str, str], tmp_path: Path
) -> None:
    partition = Partition(ClusterState.make("p", ["n1", "n2"]), "alike", "east", "p")
    view = SimpleNamespace(find=lambda name, part: partition if part == "p" else None, names=LoadNames())
    board: Any = SimpleNamespace(view=view)
    models: Any = SimpleNamespace(predictor=lambda *_: None)
    ended, stated = replace(JOB, **job), replace(MARK, **mark)
    with Store.open(tmp_path / "metasched.db") as store:
        found = conclude(ended, stated, board, models, store)
        elsewhere = conclude(replace(ended, partition="q"), stated, board, models, store)
    run, outcome = found.record.run, found.outcome
    assert outcome is not None
    assert (run.processors, outcome.processors, found.record.learnable) == (processors, processors, learnable)
    assert dict(run.extra) == {"job": "7", "scheduler": "east", "partition": "p"} | extra
    assert (run.cluster, outcome.platform, elsewhere.record.run.cluster) == ("alike", "alike", "east")
    assert (run.execution_time, run.start_time, outcome.start, outcome.energy) == (9.0, NOW, NOW, ended.energy)
    assert (found.placement, outcome.available_cpu, outcome.predicted) == (stated.placement, None, None)


@pytest.mark.parametrize(
    ("job", "total", "loads", "cpu"),
    [
        ({}, 8, [(5.0, 0.5)], 2 / 3),  # two processes on four processors of each node: others compete too
        ({}, 4, [(5.0, 2 / 3)], 1.0),  # two on two
        ({"threads": 2}, 8, [(5.0, 0.8)], 1.0),
        ({}, None, [(5.0, 0.8)], 0.8),  # how many there are is not known
        ({}, 4, [(-5.0, 0.5), (5.0, 0.4)], 7 / 12),  # what was measured before the job started is of others
        ({"nodes": ()}, 4, [(5.0, 0.8)], math.nan),
    ],
)
def test_a_job_is_no_load_to_itself(
    job: dict[str, Any], total: int | None, loads: list[tuple[float, float]], cpu: float, tmp_path: Path
) -> None:
    partition = Partition(ClusterState.make("p", ["n1", "n2"], processors=0), "alike", "east", "p", total=total)
    board: Any = SimpleNamespace(view=SimpleNamespace(find=lambda *_: partition, names=LoadNames()))
    models: Any = SimpleNamespace(predictor=lambda *_: None)
    with Store.open(tmp_path / "metasched.db") as store:
        store.loads.add(Load(NOW + at, node, each, 90.0) for node in ("n1", "n2") for at, each in loads)
        found = conclude(replace(JOB, end=NOW + 10.0, **job), MARK, board, models, store)
    assert found.record.run.min_avg_avail_cpu == pytest.approx(cpu, nan_ok=True)


@pytest.mark.parametrize(("scheduler", "cpu"), [("east", 0.8), ("west", 0.4)])
def test_a_job_met_the_loads_of_its_own_schedulers_nodes(scheduler: str, cpu: float, tmp_path: Path) -> None:
    names = LoadNames({"west": "w-"}).having("east", JOB.nodes).having("west", JOB.nodes)
    board: Any = SimpleNamespace(view=SimpleNamespace(find=lambda *_: None, names=names))
    models: Any = SimpleNamespace(predictor=lambda *_: None)
    with Store.open(tmp_path / "metasched.db") as store:
        store.loads.add(Load(NOW - 5.0, f"{prefix}n1", each, 90.0) for prefix, each in (("", 0.8), ("w-", 0.4)))
        found = conclude(replace(JOB, scheduler=scheduler), MARK, board, models, store)
    assert found.record.run.min_avg_avail_cpu == pytest.approx(cpu)


def test_a_job_is_compared_with_what_its_users_own_model_expected(tmp_path: Path) -> None:
    own = {"": Known(work=100.0), "9": Known(work=300.0)}
    board: Any = SimpleNamespace(view=SimpleNamespace(find=lambda *_: None, names=LoadNames()))
    models: Any = SimpleNamespace(predictor=lambda application, platform, user: own[user])
    with Store.open(tmp_path / "metasched.db") as store:
        store.loads.add(Load(NOW - 5.0, node, 1.0, 90.0) for node in JOB.nodes)
        outcome = conclude(replace(JOB, user="9"), MARK, board, models, store).outcome
    assert outcome is not None
    assert outcome.predicted == own["9"].predict(Request(900.0, 4, 1.0, 90.0))


@pytest.mark.parametrize(
    ("stated", "devices", "found", "known"),
    [
        ({"gpu": "v100"}, None, {"gpu": "v100"}, True),
        ({"gpu": "v100"}, UNKNOWN_DEVICES, {"gpu": "v100"}, True),
        ({"steps": 5.0}, UNKNOWN_DEVICES, {"steps": 5.0}, False),
        ({"gpu": "v100", "gpus": 4.0, "steps": 5.0}, (), {"steps": 5.0}, True),
        ({"gres": "none"}, (("gpu", "a100"),), {"gpu": "a100"}, True),
    ],
)
def test_the_devices_that_the_scheduler_reports_count_before_those_that_a_comment_states(
    stated: dict[str, Any], devices: Any, found: dict[str, Any], known: bool
) -> None:
    settings, sure = with_devices(Settings.of(parameters=stated), devices, "7 of c")
    assert (dict(settings.parameters), sure) == (found, known)


@pytest.mark.parametrize(
    ("fate", "processors", "cells", "learnable"),
    [
        (Fate(True), 4, {"threads": "2", "parameter:steps": "5"}, True),
        (Fate(True, processes=6, threads=3), 6, {"threads": "3", "parameter:steps": "5"}, True),
        (Fate(True, devices=UNKNOWN_DEVICES), 4, {"threads": "2", "parameter:steps": "5"}, False),
    ],
)
def test_a_stored_run_becomes_what_its_scheduler_reports_afterwards(
    fate: Fate, processors: int, cells: dict[str, str], learnable: bool
) -> None:
    of = {"job": "7", "scheduler": "c", "user": "9"}
    run = Run("cg", "c", 900.0, 4, 0.5, 90.0, 9.0, extra=of | {"threads": "2", "parameter:steps": "5"})
    found = as_reported(RecordedRun(run, 0, learnable=False), fate)
    assert (found.run.processors, dict(found.run.extra), found.learnable) == (processors, of | cells, learnable)
