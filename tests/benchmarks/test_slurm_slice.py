"""The slice of a log for real Slurms: no job can reach its limit, and it brings the load that is asked for."""

from __future__ import annotations

import pytest

from benchmarks.replay.made_log import made_log
from benchmarks.replay.slurm_slice import BEFORE, LONGEST, MOST_NICE, PROCESSORS, SHORTEST, WIDEST, nice_of, slice_of


@pytest.mark.parametrize("first", [0, 300])
def test_no_job_of_a_slice_reaches_its_limit_and_the_load_is_as_asked(first: int) -> None:
    made = slice_of(made_log(600, seed=1), 64, first, 200, 100.0, 0.9)
    assert made.submit.size == 200
    assert made.submit[0] == 0.0
    assert SHORTEST <= made.run.min() <= made.run.max() <= LONGEST
    assert (60 * made.minutes > made.run + 5).all()
    assert 1 <= made.width.min() <= made.width.max() <= WIDEST
    assert (made.run * made.width).sum() / made.submit[-1] / PROCESSORS == pytest.approx(0.9)
    assert made.first == min(first, BEFORE)
    assert len(made.log) == made.first + 200


def test_the_longer_a_job_the_more_places_it_loses_but_never_more_than_most() -> None:
    nices = [nice_of(10.0**power) for power in range(8)]
    assert nices == sorted(nices)
    assert (nices[0], nices[-1]) == (0, MOST_NICE)
