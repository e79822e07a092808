"""Laws unlike those of the testbed: physical, drawn alike from a seed, and judged row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.learning_curve import STRETCHES
from benchmarks.other_laws import COUNTS, KINDS, PREDICTED, Law, judge


@pytest.mark.parametrize("kind", KINDS)
def test_a_law_takes_longer_for_more_work_and_under_heavier_loads(kind: str) -> None:
    law = replace(Law.drawn(np.random.default_rng(3)), kind=kind)
    size, processors, link = 2.0 * law.size, law.ladder[1], law.link
    idle = law.time(size, processors, 1.0, link)
    assert 0.0 < idle < law.time(1.5 * size, processors, 1.0, link)
    assert idle < law.time(size, processors, 0.5, link)
    assert idle < law.time(size, processors, 1.0, 0.5 * link)


def test_a_campaign_has_runs_to_learn_and_to_predict_and_is_the_same_for_a_seed() -> None:
    one, other = (Law.drawn(rng).campaign(rng) for rng in map(np.random.default_rng, (5, 5)))
    assert one == other
    assert [sum(run.phase == phase for run in one) for phase in ("train", "predict")] == [max(COUNTS), PREDICTED]


def test_errors_fall_with_the_runs_learned_and_every_row_is_judged() -> None:
    found = judge(1)
    assert len(found) == len(COUNTS) + len(STRETCHES)
    assert found[len(COUNTS) - 1]["ppe_mean"] < found[0]["ppe_mean"]
    assert all(0.0 <= one["interval_coverage"] <= 1.0 for one in found)
