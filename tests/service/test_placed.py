"""Jobs that were just placed are kept in mind until their own scheduler tells of them, or until they should be over."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from metasched.service.daemon import Daemon
from metasched.service.messages import Ask
from tests.service.made import running


def heard(daemon: Daemon, source: str, at: float) -> None:
    """A scheduler of this name tells of a cluster."""
    described = next(each for each in daemon.board.view.partitions if each.state.name == source)
    daemon.board.put(source, [replace(described, scheduler=source, name="all")], at)


def ask(daemon: Daemon, partition: str, now: float, *, trial: bool = False) -> None:
    asked = Ask(application="cg", problem_size=1800, processors=[4], scheduler=partition, trial=trial)
    assert daemon.placer.answer(asked, now).placed


def minds(daemon: Daemon) -> set[str]:
    return {job.cluster for job in daemon.placer._placed}


def test_a_job_is_forgotten_once_its_own_scheduler_was_heard(tmp_path: Path) -> None:
    with running(tmp_path, mode="act") as daemon:
        daemon._scheduler.pause()
        now = time.time()
        for source in ("east", "west"):
            heard(daemon, source, now)
        daemon.board.put("described", [], now)
        daemon.board.refresh(now)
        for source in ("east", "west"):
            ask(daemon, source, now + 1.0)
        assert minds(daemon) == {"east", "west"}
        heard(daemon, "west", now + 5.0)
        daemon.board.refresh(now + 5.0)
        ask(daemon, "east", now + 5.0, trial=True)
        assert minds(daemon) == {"east"}


def test_a_job_that_should_be_over_is_forgotten(tmp_path: Path) -> None:
    with running(tmp_path, mode="act") as daemon:
        daemon._scheduler.pause()
        now = time.time()
        daemon.board.refresh(now)
        daemon.placer.answer(Ask(application="cg", problem_size=1800, processors=[4]), now)
        assert len(daemon.placer._placed) == 1
        daemon.board.refresh(now + 3600.0)
        daemon.placer.answer(Ask(application="cg", problem_size=1800, processors=[1], trial=True), now + 3600.0)
        assert not daemon.placer._placed
