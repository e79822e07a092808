"""Waits estimated from the queue of a real Slurm, beside those that its jobs really had."""

from __future__ import annotations

import pytest

from tests.system import real_slurm
from tests.system.long_queue import LongQueue

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

#: Slurm looks at its queue once a second and keeps whole seconds, and jobs end a second before their limit (s).
BOUND = 5.0


def test_jobs_start_when_the_queue_was_said_to_let_them(long_queue: LongQueue | None) -> None:
    if long_queue is None:
        pytest.skip(real_slurm.why_not())
    waits = [(each, long_queue.waited(each)) for each in long_queue.waiting]
    for each, actual in waits:
        answer = f"wait estimated {each.estimated:.0f} s, really {actual:.0f} s"
        print(f"{each.processors} processors of {each.partition}: {answer}")
    # Two are first in line, two wait for those as well.
    assert [round(each.estimated, -1) for each, _ in waits] == [60, 120, 60, 120]
    assert all(abs(actual - each.estimated) <= BOUND for each, actual in waits)
