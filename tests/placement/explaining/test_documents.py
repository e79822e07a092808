"""Rankings as JSON: what is written reads back as the records that were ranked."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from known_model import Known

from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.state import ClusterState
from metasched.placement.explaining.documents import PlacementTable, RankingTable, ranking_document
from metasched.placement.ranking.query import Question, Ranking
from metasched.placement.ranking.ranker import rank
from metasched.records import Interval


def ranked() -> Ranking:
    cluster = ClusterState.make(
        "c", ["a", "b", "d"], processors=2, available_cpu=[1.0, 0.7, 0.5], queue_wait=QueueWait.always(7.0)
    )
    return rank([cluster], Known(), Question(10.0, top=4))


def read(ranking: Ranking) -> RankingTable:
    return RankingTable.model_validate_json(json.dumps(ranking_document("cg", 10.0, ranking), allow_nan=False))


def test_placements_and_the_curve_read_back() -> None:
    ranking = ranked()
    table = read(ranking)
    assert (table.application, table.problem_size, table.compared) == ("cg", 10.0, ranking.compared)
    assert [each.rank for each in table.placements] == [1, 2, 3, 4]
    for written, placement in zip(table.placements, ranking.placements, strict=True):
        assert replace(written.record(), reason="") == replace(placement, reason="")
    curve = table.curve()
    assert curve.processors.tolist() == ranking.curve.processors.tolist() == [1, 2, 3, 4, 5, 6]
    for name in ("execution_time", "low", "high", "completion"):
        assert getattr(curve, name).tolist() == pytest.approx(getattr(ranking.curve, name).tolist())


def test_an_open_interval_reads_back_open_on_its_own_side() -> None:
    ranking = ranked()
    open_above, open_below = (
        replace(
            ranking,
            placements=(replace(placement, prediction=replace(placement.prediction, interval=interval)),),
            costs=ranking.costs[:1],
            curve=replace(
                ranking.curve,
                low=np.full_like(ranking.curve.low, interval.low),
                high=np.full_like(ranking.curve.high, interval.high),
            ),
        )
        for placement in ranking.placements[:1]
        for interval in (Interval(3.0, math.inf, 0.9), Interval(-math.inf, 30.0, 0.9))
    )
    for written, ends in ((read(open_above), (3.0, math.inf)), (read(open_below), (-math.inf, 30.0))):
        interval = written.placements[0].record().prediction.interval
        assert (interval.low, interval.high) == ends
        assert set(written.curve().low.tolist()) == {ends[0]}
        assert set(written.curve().high.tolist()) == {ends[1]}


def test_what_nothing_is_predicted_for_is_left_out_of_the_curve() -> None:
    ranking = ranked()
    time = ranking.curve.execution_time.copy()
    time[2] = np.nan
    table = read(replace(ranking, curve=replace(ranking.curve, execution_time=time)))
    assert table.curve().processors.tolist() == [1, 2, 4, 5, 6]


def test_a_placement_that_stands_alone_is_the_first() -> None:
    document = ranking_document("cg", 10.0, ranked())["placements"][0]
    alone = PlacementTable.model_validate({name: value for name, value in document.items() if name != "rank"})
    assert alone.rank == 1
