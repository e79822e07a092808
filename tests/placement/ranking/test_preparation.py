"""What comes before a ranking: the order of equal nodes, and the horizon that the loads are forecast over."""

from __future__ import annotations

import pytest

from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.counted import Loads
from metasched.placement.ranking.efficiency import longest
from metasched.placement.ranking.monotonicity import non_monotone
from metasched.placement.ranking.preparation import at_its_own_horizon, rotated

FORECASTING = Loads(lambda cluster, seconds: cluster, first_horizon=50.0)


def test_each_word_turns_the_nodes_of_each_cluster_its_own_way() -> None:
    clusters = [ClusterState.make(name, [f"{name}{k}" for k in range(9)]) for name in "ab"]
    turns = {}
    for word in ("one", "two"):
        for cluster in clusters:
            turn = rotated(cluster, word).turn
            assert turn is not None
            assert sorted(turn.tolist()) == list(range(9))
            assert turn.tolist() == rotated(cluster, word).turn.tolist()  # type: ignore[union-attr]
            turns[word, cluster.name] = tuple(turn.tolist())
    assert len(set(turns.values())) == 4
    assert rotated(clusters[0], None) is clusters[0]


def horizons(completion: dict[float | None, float] | float, loads: Loads = FORECASTING) -> list[float | None]:
    """The horizons that are ranked at, where the best placement is complete after some seconds."""
    asked: list[float | None] = []

    def ranked(horizon: float | None) -> float:
        asked.append(horizon)
        return completion if isinstance(completion, float) else completion[horizon]

    at_its_own_horizon(loads, ranked, lambda found: found)
    return [None if each is None else round(each, 9) for each in asked]


def test_without_forecasts_the_loads_of_now_count() -> None:
    assert horizons(200.0, Loads(first_horizon=50.0)) == [None]


@pytest.mark.parametrize(
    ("seconds", "tried"),
    [
        (50.0, [50.0]),
        (54.9, [50.0]),  # agrees: e to the power of 0.1 is 1.105
        (55.3, [50.0, 55.3]),
        (45.3, [50.0]),
        (45.2, [50.0, 45.2]),
        (0.0, [50.0, 0.001]),  # shorter ones are no horizon
        (2e-3, [50.0, 0.002]),
    ],
)
def test_the_horizon_is_sought_until_it_agrees_with_the_time_by_a_tenth(seconds: float, tried: list[float]) -> None:
    assert horizons(seconds) == tried


def test_after_four_rankings_the_nearest_counts() -> None:
    asked: list[float | None] = []

    def ranked(horizon: float | None) -> float:
        asked.append(horizon)
        return [1e3, 1e6, 2.0, 7e8][len(asked) - 1]

    assert at_its_own_horizon(FORECASTING, ranked, lambda found: found) in (1e3, 1e6, 2.0, 7e8)
    assert len(asked) == 4


def test_the_longest_time_of_a_floor_is_the_fewests_share_and_rounding() -> None:
    assert longest([1, 2, 8], [100.0, 100.0, 40.0], 0.5).tolist() == pytest.approx([200.0, 100.0, 10.0], rel=1e-8)
    assert (longest([2, 8], 100.0, 0.5) > [100.0, 25.0]).all()
    assert (longest([2, 8], 100.0, 0.5) < [100.0 * (1 + 2e-9), 25.0 * (1 + 2e-9)]).all()
    assert longest([1, 2], float("inf"), 0.5).tolist() == [float("inf")] * 2


@pytest.mark.parametrize(
    ("cpu", "bandwidth", "lines"),
    [
        ([10.0, 20.0], [10.0, 20.0], []),
        ([10.0, 20.0 * (1.0 + 5e-10)], [10.0 * (1.0 + 5e-10), 20.0], []),  # by rounding
        ([10.0, 20.0 * (1.0 + 2e-9)], [10.0, 20.0], ["CPU"]),
        ([10.0, 20.0], [10.0 * (1.0 + 2e-9), 1.0], ["bandwidth"]),
        ([11.0, 1.0], [1.0, 21.0], ["CPU", "bandwidth"]),
    ],
)
def test_a_model_is_named_that_predicts_longer_times_for_more(
    cpu: list[float], bandwidth: list[float], lines: list[str]
) -> None:
    said = [f"the model for cluster c predicts longer times for more {what}" for what in lines]
    assert non_monotone("c", [10.0, 20.0], cpu, bandwidth) == said
