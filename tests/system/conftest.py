"""What is measured here are servers that answer within milliseconds: other work on this machine must wait for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.system import real_slurm
from tests.system.long_queue import LongQueue, queueing
from tests.system.slow_clients import SlowClients, dripping

#: What takes its time without taking much of the machine: begun before the first test, looked at by its own.
EARLY = ("long_queue", "slow_clients")


@pytest.fixture(scope="session", autouse=True)
def first_in_line() -> Iterator[None]:
    """Give the tests and all that they start the highest priority where that is allowed."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    yield
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, before)


@pytest.fixture(scope="session", autouse=True)
def begun_early(request: pytest.FixtureRequest, first_in_line: None) -> None:
    """Begin what some test of this run will look at, so that it goes on while others run."""
    wanted = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    for name in EARLY:
        if name in wanted:
            request.getfixturevalue(name)


@pytest.fixture(scope="session")
def long_queue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LongQueue | None]:
    """A Slurm with a queue; None where there is no Slurm."""
    if real_slurm.why_not():
        yield None
        return
    with queueing(tmp_path_factory.mktemp("queue")) as queue:
        yield queue


@pytest.fixture(scope="session")
def slow_clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowClients]:
    """A daemon beset by clients that send byte by byte."""
    with dripping(tmp_path_factory.mktemp("slow")) as clients:
        yield clients
