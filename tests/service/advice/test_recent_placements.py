"""Jobs that were just placed are kept in mind until their own scheduler tells of them, or until they should be over."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from metasched.advised_placements import Ask
from metasched.service.daemon import Daemon
from metasched.service.dashboard.health import checks
from tests.service.daemons import running


def heard(daemon: Daemon, source: str, at: float) -> None:
    """A scheduler of this name tells of a cluster."""
    described = next(each for each in daemon.clusters.view.partitions if each.state.name == source)
    daemon.clusters.put(source, [replace(described, scheduler=source, name="all")], at)


def ask(daemon: Daemon, partition: str, now: float, *, trial: bool = False) -> None:
    asked = Ask(application="cg", problem_size=1800, processors=[4], scheduler=partition, trial=trial)
    assert daemon.placer.answer(asked, now).placed


def minds(daemon: Daemon) -> set[str]:
    return {job.cluster for job in daemon.placer.loads(0.0).recent}


def test_a_job_is_forgotten_once_its_own_scheduler_was_heard(tmp_path: Path) -> None:
    with running(tmp_path, mode="act") as daemon:
        daemon.work.stop()
        now = time.time()
        for source in ("east", "west"):
            heard(daemon, source, now)
        daemon.clusters.put("described", [], now)
        daemon.clusters.refresh(now)
        for source in ("east", "west"):
            ask(daemon, source, now + 1.0)
        assert minds(daemon) == {"east", "west"}
        heard(daemon, "west", now + 5.0)
        daemon.clusters.refresh(now + 5.0)
        ask(daemon, "east", now + 5.0, trial=True)
        assert minds(daemon) == {"east"}


def test_a_job_that_should_be_over_is_forgotten(tmp_path: Path) -> None:
    with running(tmp_path, mode="act") as daemon:
        daemon.work.stop()
        now = time.time()
        daemon.clusters.refresh(now)
        daemon.placer.answer(Ask(application="cg", problem_size=1800, processors=[4]), now)
        assert len(daemon.placer.loads(0.0).recent) == 1
        daemon.clusters.refresh(now + 3600.0)
        daemon.placer.answer(Ask(application="cg", problem_size=1800, processors=[1], trial=True), now + 3600.0)
        assert not daemon.placer.loads(0.0).recent


def test_a_job_that_was_placed_before_the_clock_was_set_back_counts_no_longer_than_it_runs(tmp_path: Path) -> None:
    with running(tmp_path, mode="act") as daemon:
        daemon.work.stop()
        now, job = time.time(), Ask(application="cg", problem_size=1800, processors=[4])
        daemon.clusters.refresh(now)
        daemon.placer.answer(job, now)
        [placed] = daemon.placer.loads(0.0).recent
        for since, counts in ((-3600.0, 1), (placed.execution_time - 3601.0, 1), (placed.execution_time - 3599.0, 0)):
            daemon.clusters.refresh(now + since)
            daemon.placer.answer(job.model_copy(update={"trial": True}), now + since)
            assert len(daemon.placer.loads(0.0).recent) == counts


def overlapping(daemon: Daemon, now: float) -> None:
    """One scheduler with two racks of one node each, and a partition of both; four processors on a node."""
    east = next(each for each in daemon.clusters.view.partitions if each.state.name == "east")
    nodes = {"racka": [0], "rackb": [1], "all": [0, 1]}
    partitions = [
        replace(east, state=replace(east.state.select(own), name=f"s/{name}"), scheduler="s", name=name)
        for name, own in nodes.items()
    ]
    daemon.clusters.put("described", [], now)
    daemon.clusters.put("s", partitions, now)
    daemon.clusters.refresh(now)


def test_partitions_that_share_nodes_give_no_processor_twice(tmp_path: Path) -> None:
    with running(tmp_path, mode="act") as daemon:
        daemon.work.stop()
        now = time.time()
        overlapping(daemon, now)
        named = ([], ["racka"], ["all"], ["rackb"], ["racka", "rackb"], ["all"], [], ["all"])
        answers = [
            daemon.placer.answer(Ask(application="cg", problem_size=1800, processors=[2], partitions=where), now)
            for where in named
        ]
        health = next(check for check in checks(daemon, now) if check.name == "nodes")
    assert all(answer.placement for answer in answers)
    taken = Counter(node for answer in answers[:4] for node in (answer.nodes,))
    waits = [answer.placement.queue_wait for answer in answers if answer.placement]
    assert waits[:4] == [0.0] * 4
    assert set(taken) <= {"e1", "e2", "e[1-2]"}
    assert all(wait > 0.0 for wait in waits[4:])
    assert waits[7] > waits[4]
    assert health.found.startswith("2 nodes,")


def test_a_job_takes_of_each_node_what_its_layout_takes_there(tmp_path: Path) -> None:
    with running(tmp_path, mode="act") as daemon:
        daemon.work.stop()
        now = time.time()
        overlapping(daemon, now)
        for layout, taken in (
            ({"processors": [2]}, [2]),
            ({"processors": [4], "per_node": 2}, [2, 2]),
            ({"processors": [4], "processes_per_node": 2}, [2, 2]),
            ({"processors": [1], "threads": 2}, [2]),
            ({"processors": [2], "processes_per_node": 1, "threads": 2}, [2, 2]),
        ):
            daemon.clusters.refresh(now := now + 3600.0)
            placed = daemon.placer.answer(Ask(application="cg", problem_size=1800, partitions=["all"], **layout), now)
            assert placed.placed, placed.message
            assert list(daemon.placer.loads(now).recent[-1].processors) == taken
