"""What docs/schedulers.md claims: a scheduler of one class is placed on, learned from, let go and survived."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from waiting import until

from metasched.advised_placements import AdvisedPlacement, Ask
from metasched.schedulers.contract import BoundJob, Source
from metasched.service.configuration import Configuration
from metasched.service.daemon import Daemon
from metasched.store.database.store import Store
from tests.schedulers.toy import Toy, ended
from tests.service.daemons import learned_database

PERIODS = {"partitions": 0.2, "confirm": 0.1, "release": 0.2}


@contextmanager
def serving(folder: Path, *toys: Source, mode: str = "act") -> Iterator[Daemon]:
    (folder / "metasched.db").write_bytes(learned_database())
    with Store.open(folder / "metasched.db") as store:
        configuration = Configuration.model_validate({"mode": mode, "periods": PERIODS})
        daemon = Daemon(configuration, store, toys)
        daemon.start()
        try:
            until(lambda: bool(daemon.clusters.view.partitions))
            yield daemon
        finally:
            daemon.stop()


def ask() -> Ask:
    return Ask(application="cg", problem_size=900, processors=[2], scheduler="toy", user="1000")


def test_jobs_are_placed_on_its_nodes_in_its_words(tmp_path: Path) -> None:
    with serving(tmp_path, Toy()) as daemon:
        answer = daemon.placer.answer(ask(), time.time())
        assert (answer.scheduler, answer.partition, answer.processors) == ("toy", "main", 2)
        assert answer.nodes.startswith("t")
        assert answer.time_limit is not None
        assert answer.time_limit <= 3600.0


def test_jobs_that_ended_are_learned_once_and_failed_ones_stored_only(tmp_path: Path) -> None:
    with serving(tmp_path, Toy(ended=[ended("7"), ended("8", exit_status=3)])) as daemon:
        until(lambda: stored(daemon) == ["7", "8"])
        until(lambda: "7" in {run.extra.get("job") for run in daemon.store.runs.learnable()})
        time.sleep(0.3)  # it is asked for again
        assert stored(daemon) == ["7", "8"]
        assert "8" not in {run.extra.get("job") for run in daemon.store.runs.learnable()}


def stored(daemon: Daemon) -> list[str]:
    return sorted(record.run.extra["job"] for record in daemon.store.runs.all() if "job" in record.run.extra)


def test_a_job_that_waits_for_nodes_that_it_was_sent_to_is_let_go(tmp_path: Path) -> None:
    toy = Toy()
    with serving(tmp_path, toy) as daemon:
        answer = daemon.placer.answer(ask(), time.time())
        daemon.writes.placements([AdvisedPlacement(time.time(), ask(), answer)]).result()
        nodes = frozenset(answer.placement.resource_set.nodes) if answer.placement else frozenset()
        toy.waiting = [BoundJob("9", answer.id, nodes, "main", since=time.time() - 60.0)]
        until(lambda: bool(toy.released))
        assert set(toy.released) == {"9"}


@pytest.mark.parametrize("mode", ["shadow", "act"])
def test_one_that_does_not_answer_holds_up_no_other_and_is_taken_up_again(mode: str, tmp_path: Path) -> None:
    silent = Toy("silent", broken=True)
    with serving(tmp_path, silent, Toy(), mode=mode) as daemon:
        assert daemon.placer.answer(ask(), time.time()).placed
        silent.broken = False
        until(lambda: "silent" in daemon.clusters.seen_at)
