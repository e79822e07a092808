"""Tasks of workflows get a partition and a run time, those of the workflow where the daemon gives no sound advice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from metasched.client import Workflow, workflows
from metasched.client.workflows import FRESH
from tests.client.test_advice import GOOD
from tests.system.bad_daemons import FAULTS, Bad, http


@contextmanager
def asking(asked: list[int], **answer: Any) -> Iterator[Workflow]:
    """A workflow whose daemon answers so, and counts how often it was asked."""
    body = http(json.dumps(GOOD | answer).encode())

    def once(link: Any) -> None:
        asked.append(1)
        link.sendall(body)

    with closing(Bad(once)) as daemon:
        yield Workflow(f"http://{daemon.address}", partition="batch", minutes=60, timeout=5.0)


def size(wildcards: Any) -> float:
    return float(wildcards["n"])


def test_a_task_gets_the_partition_and_the_time_of_one_answer() -> None:
    asked: list[int] = []
    with asking(asked, time_limit=121.0) as tasks:
        assert tasks.partition("cg", size)({"n": "500"}, threads=2) == "new"
        assert tasks.minutes("cg", size)({"n": "500"}, threads=2, attempt=1) == 3
        assert len(asked) == 1
        assert tasks.partition("cg", size)({"n": "600"}, threads=2) == "new"
    assert len(asked) == 2


def test_a_task_that_is_tried_again_gets_what_the_workflow_says() -> None:
    asked: list[int] = []
    with asking(asked) as tasks:
        assert tasks.minutes("cg", size)({"n": "500"}, threads=2, attempt=3) == 180
    assert asked == []


def test_without_a_time_or_a_partition_in_the_answer_the_workflows_are_taken() -> None:
    with asking([], time_limit=None, partition="") as tasks:
        assert tasks.minutes("cg", size)({"n": "500"}, threads=2, attempt=1) == 60
        assert tasks.partition("cg", size)({"n": "500"}, threads=2) == "batch"


def test_a_choice_is_one_of_those_that_were_given() -> None:
    choices = {"new": "htex_new", "old": "htex_old"}
    with asking([]) as tasks:
        assert tasks.choose("cg", 500, 2, choices, "htex_old") == "htex_new"
    with asking([], partition="gold") as tasks:
        assert tasks.choose("cg", 500, 2, choices, "htex_old") == "htex_old"


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_the_daemon_does_a_task_goes_on(fault: str) -> None:
    with closing(Bad(FAULTS[fault])) as daemon:
        tasks = Workflow(f"http://{daemon.address}", partition="batch", minutes=60, timeout=0.3, partitions=("other",))
        assert tasks.partition("cg", size)({"n": "500"}, threads=2) == "batch"
        assert tasks.minutes("cg", size)({"n": "500"}, threads=2, attempt=1) == 60


def test_an_answer_counts_for_its_own_question_and_as_long_as_it_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = [100.0], list[tuple[Any, ...]]()

    def advice(address: str, application: str, problem_size: float, **more: Any) -> Any:
        partitions = more.get("partitions", ["any"])
        asked.append((address, application, problem_size, more))
        return SimpleNamespace(partition=partitions[-1], time_limit=60.0 * len(asked) + 1.0)

    monkeypatch.setattr(workflows, "advice", advice)
    monkeypatch.setattr(workflows, "time", SimpleNamespace(monotonic=lambda: now[0]))
    link = {"token": "t", "verify": "file", "timeout": 3.0}
    tasks = Workflow("a", partition="batch", minutes=7, partitions=("p", "q"), token="t", verify="file", timeout=3.0)
    choices = {"new": 1, "old": 2}
    assert tasks.partition("cg", size)({"n": "5"}, threads=2) == "q"
    assert tasks.choose("cg", 5.0, 2, choices, 0) == 2
    assert tasks.choose("cg", 5.0, 2, {"old": 2, "new": 1}, 0) == 1
    assert tasks.choose("cg", 5.0, 2, {}, 9) == 9
    assert Workflow("a", partition="batch", minutes=7).partition("cg", size)({"n": "5"}, threads=4) == "any"
    demands = {"processors": [2]}
    assert asked[:3] == [
        ("a", "cg", 5.0, link | demands | {"partitions": ["p", "q"]}),
        ("a", "cg", 5.0, link | demands | {"partitions": ["new", "old"]}),
        ("a", "cg", 5.0, link | demands | {"partitions": ["old", "new"]}),
    ]
    assert asked[3:] == [("a", "cg", 5.0, {"token": None, "verify": True, "timeout": 2.0, "processors": [4]})]
    minutes = tasks.minutes("cg", size)
    assert minutes({"n": "5"}, threads=2, attempt=1) == 2
    assert (minutes({"n": "5"}, threads=2, attempt=2), minutes({"n": "5"}, threads=2, attempt=0)) == (14, 0)
    now[0] += FRESH
    assert (minutes({"n": "5"}, threads=2, attempt=1), len(asked)) == (2, 4)
    now[0] += 0.1
    assert (minutes({"n": "5"}, threads=2, attempt=1), len(asked)) == (6, 5)
