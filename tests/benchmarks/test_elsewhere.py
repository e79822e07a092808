"""Every number of runs is drawn as often as any other, except none, of which there is only one draw."""

from __future__ import annotations

from benchmarks.elsewhere import FIRST, SEEDS, seeds


def test_one_run_is_drawn_as_often_as_three() -> None:
    assert {count: len(seeds(count)) for count in FIRST} == {0: 1, 1: len(SEEDS), 3: len(SEEDS)}
    assert len(set(SEEDS)) == len(SEEDS) > 1
