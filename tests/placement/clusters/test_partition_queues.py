"""The queues of partitions: what is ahead in them, and what of it holds processors that come free."""

from __future__ import annotations

import pytest

from metasched.history.queue import QueuedJob
from metasched.placement.clusters import partition_queues
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.partition_queues import partition_lines
from metasched.placement.clusters.state import ClusterState

NODES = ("n1", "n2")


def partition(free: tuple[int, int] = (0, 0), up: tuple[bool, bool] = (True, True)) -> Partition:
    """Two nodes of four processors each."""
    state = ClusterState.make("c/p", NODES, processors=free, up=up)
    return Partition(state, "c", "c", "p", total=4 * sum(up))


def running(nodes: tuple[str, ...] = NODES, *, limit: float | None = 600.0, ran: float = 500.0) -> QueuedJob:
    return QueuedJob("1", frozenset("p"), 4 * len(nodes), limit, ran=ran, nodes=nodes)


def array(tasks: int) -> QueuedJob:
    return QueuedJob("2", frozenset("p"), 4, 100.0, tasks=tasks)


@pytest.mark.parametrize(("tasks", "last", "wait"), [(1, 100.0, 100.0), (2, 100.0, 200.0), (7, 400.0, 400.0)])
def test_all_tasks_of_an_array_are_ahead_of_what_comes_after_it(tasks: int, last: float, wait: float) -> None:
    line = partition_lines([partition()], [running(), array(tasks)])["p"]
    assert line.starts() == {"2": last}
    assert line.wait(4, 100.0) == wait


def test_of_endless_arrays_no_more_is_simulated_than_is_affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_queues, "MOST_WAITING", 5)
    line = partition_lines([partition()], [running(), array(3), array(1000), array(1)])["p"]
    assert line.wait(8, 100.0) == 400.0  # after five tasks, two at a time


def test_what_runs_on_a_node_that_is_being_drained_leaves_nothing_and_takes_nothing_from_the_others() -> None:
    drains = partition((4, 0), (True, False))
    line = partition_lines([drains], [running(("n2",)), array(1)])["p"]
    assert line.processors == 4
    assert line.starts() == {"2": 0.0}
    assert line.wait(8, 60.0) == float("inf")
    half = partition_lines([partition((0, 0), (True, False))], [running()])["p"]
    assert (half.processors, half.wait(4, 60.0)) == (4, 100.0)
