"""Advised placements as JSON: what is written reads back, of this and of earlier versions."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from metasched.advised_placements import AdvisedPlacement, Answer, Ask, Demands, Outcome
from metasched.placement.clusters.constraints import Constraints
from metasched.records import InputError, Interval, Placement, Prediction, ResourceSet

PREDICTION = Prediction(10.0, Interval(8.0, 12.0, 0.9), "a model", ("a warning",))
PLACEMENT = Placement(ResourceSet("c8", ("n1", "n2"), 4, 0.5, 90.0), PREDICTION, 3.0, 1.5, "the least loaded")
ASK = Ask(application="cg", problem_size=900, processors=[4], features=["fast"])
ANSWER = Answer(id="0a", mode="act", steer="nodes", placed=True, message="here", placement=PLACEMENT, nodes="n[1-2]")
OUTCOME = Outcome("c8", "p", ("n1", "n2"), 4, 11.0, 0, PREDICTION, "17", "c8", 5.0, 0.5, 90.0)
ADVISED = AdvisedPlacement(4.0, ASK, ANSWER, OUTCOME)


def read(document: dict[str, Any]) -> AdvisedPlacement:
    answer = json.loads(json.dumps(document))
    return AdvisedPlacement.read(
        answer["id"], answer["made_at"], answer["question"], answer["answer"], answer["outcome"]
    )


def test_what_is_written_reads_back() -> None:
    assert read(ADVISED.as_dict()) == ADVISED


def test_an_interval_without_an_end_is_written_as_json_and_reads_back() -> None:
    unbounded = replace(PREDICTION, interval=Interval(8.0, math.inf, 0.9))
    answer = ANSWER.model_copy(update={"placement": replace(PLACEMENT, prediction=unbounded)})
    advised = AdvisedPlacement(4.0, ASK, answer, replace(OUTCOME, predicted=unbounded))
    written = json.dumps(advised.as_dict(), allow_nan=False)
    assert read(json.loads(written)) == advised
    earlier = written.replace('"high": null', '"high": Infinity')  # as versions wrote it that used SQLite
    assert read(json.loads(earlier)) == advised


def test_a_placement_is_spelled_as_rank_spells_it() -> None:
    assert ADVISED.as_dict()["answer"]["placement"] == PLACEMENT.as_dict()
    assert json.loads(ANSWER.model_dump_json())["placement"] == json.loads(json.dumps(PLACEMENT.as_dict()))


def test_documents_of_other_versions_are_read_as_far_as_they_are_known() -> None:
    document = ADVISED.as_dict()
    del document["outcome"]["scheduler"], document["outcome"]["start"], document["outcome"]["job"]
    del document["question"]["features"]
    document["answer"]["of_the_future"] = document["question"]["of_the_future"] = document["outcome"][
        "of_the_future"
    ] = 1
    found = read(document)
    assert found.answer == ANSWER
    assert found.question.model_dump() == ASK.model_copy(update={"features": ()}).model_dump()
    assert found.outcome is not None
    assert (found.outcome.scheduler, found.outcome.start, found.outcome.nodes) == ("", None, ("n1", "n2"))


def test_what_is_no_placement_is_named() -> None:
    document = ADVISED.as_dict()
    document["question"]["problem_size"] = "large"
    with pytest.raises(InputError, match="placement 0a: problem_size is 'large'"):
        read(document)


@pytest.mark.parametrize(
    ("asked", "per_node"),
    [
        ({"processes_per_node": 2}, 2),
        ({"processes_per_node": 2, "threads": 4}, 8),  # of what is described: processors, not processes
        ({"processes_per_node": 2, "per_node": 3}, 3),
        ({"processes_per_node": None}, 8),
        ({}, 8),
    ],
)
def test_processes_per_node_limit_the_processors_of_a_node_where_each_takes_one(
    asked: dict[str, Any], per_node: int
) -> None:
    demands = Demands(application="cg", problem_size=900, **asked)
    assert demands.constraints(Constraints(per_node=8, min_processors=3)).per_node == per_node
    assert demands.constraints(Constraints(per_node=8, min_processors=3)).min_processors == 3
    assert demands.settings.threads == asked.get("threads", 1)
