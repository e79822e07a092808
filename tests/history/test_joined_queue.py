"""Waits of jobs that join a queue together: the same as those of a simulation for each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.replay.plain_waits import possible_waits
from metasched.history import backfill_order
from metasched.history.backfilling import Backfilling
from metasched.history.joined_queue import JoinedQueue

PROCESSORS = 8
#: Processors, how long it may hold them, its place in the order of backfill, and two possible run times.
TIME = st.integers(1, 30)
JOB = st.tuples(st.integers(1, PROCESSORS), TIME, st.integers(0, 9), TIME, TIME)
ROUNDS = st.lists(st.tuples(st.integers(0, 12), st.lists(JOB, min_size=1, max_size=9)), min_size=1, max_size=4)


@pytest.mark.parametrize("few", [1, 64])
@settings(max_examples=150)
@given(rounds=ROUNDS, asked=st.integers(1, 3), in_order=st.booleans())
def test_waits_are_those_that_a_simulation_for_each_job_leads_to(
    few: int, rounds: list[tuple[int, list[Any]]], asked: int, in_order: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backfill_order, "FEW", few)
        cluster, runs, now, number = Backfilling(PROCESSORS), dict[int, tuple[int, int]](), 0.0, 0

        def left(job: int, ran: float) -> list[float]:
            return [max(run - ran, 1.0) for run in runs[job]]

        queue, found, expected = JoinedQueue(left), [], []
        for later, jobs in rounds:
            now += later
            for job in [job for job, start in cluster.started.items() if start + runs[job][0] <= now]:
                cluster.end(job)
            for processors, hold, order, *run in jobs:
                runs[number] = run[0], run[1]
                cluster.submit(number, processors, hold, number if in_order else order, number)
                if number % asked == 0:
                    found.append(queue.waits(cluster, number, now))
                    expected.append(possible_waits(cluster, number, now, left))
                number += 1
            cluster.schedule(now)
        assert found == expected


def test_alike_jobs_that_join_together_take_one_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = 0

    def counted(cluster: Backfilling) -> Backfilling:
        nonlocal copies
        copies += 1
        return copy(cluster)

    copy = Backfilling.copy
    monkeypatch.setattr(Backfilling, "copy", counted)
    cluster, queue = Backfilling(PROCESSORS), JoinedQueue(lambda job, ran: [100.0 + job % 7 - ran])
    waits = []
    for number in range(500):
        cluster.submit(number, 1, 600.0, number, number)
        waits += queue.waits(cluster, number, 0.0)
    assert copies == 1
    assert waits == sorted(waits)
    assert waits[PROCESSORS - 1] == 0.0 < waits[PROCESSORS]
