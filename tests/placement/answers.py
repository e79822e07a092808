"""Rankings and moves on made-up clusters, which :mod:`tests.placement.test_whole_answers` compares with those known.

``make answers`` writes them down anew; read the difference before it is kept.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
from known_model import Known
from metered_runs import made
from whole_documents import written_down

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.placement.clusters.running_jobs import RunningJob
from metasched.placement.clusters.state import ClusterState
from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.explaining.breakdown import explained
from metasched.placement.explaining.documents import (
    explanation_document,
    infeasible_document,
    placement_document,
    ranking_document,
)
from metasched.placement.explaining.what_if import scaling
from metasched.placement.loads.counted import Loads
from metasched.placement.loads.recent_placements import RecentPlacement
from metasched.placement.moving.decision import Costs
from metasched.placement.moving.elsewhere import Mover, advise_running
from metasched.placement.ranking.co_scheduling import Coscheduled
from metasched.placement.ranking.objective import Objective
from metasched.placement.ranking.query import InfeasibleError, Question
from metasched.placement.ranking.ranker import rank
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.records import InputError, Settings

SOURCE = "made"
HARDWARE = Entry(
    "made", Kind.cpu, "", {"tdp": Quantity(100.0, "W", SOURCE), "idle_power": Quantity(20.0, "W", SOURCE)},
)  # fmt: skip


def cluster(name: str, source: np.random.Generator) -> ClusterState:
    """A cluster of six to ten nodes in three racks, with whatever loads there are."""
    count = int(source.integers(6, 11))
    racks = Topology(
        ("r1", "r2", "r3", "top"), np.array([3, 3, 3, -1]),
        np.array([*source.choice([80.0, 300.0, 900.0], 3), np.inf]), source.integers(0, 3, count),
    )  # fmt: skip
    return ClusterState.make(
        name,
        [f"{name}{number}" for number in range(count)],
        processors=source.integers(0, 9, count),
        available_cpu=source.choice([0.15, 0.4, 0.8, 1.0], count),
        available_bandwidth=source.choice([50.0, 200.0, 900.0], count),
        speed=source.choice([1.0, 1.3], count),
        memory=source.choice([np.nan, 2000.0, 8000.0], count),
        jobs=source.integers(0, 2, count),
        up=source.random(count) < 0.9,
        age=source.choice([0.0, 100.0, 5000.0], count),
        features=[frozenset({"ib"} if ib else ()) for ib in source.random(count) < 0.7],
        network=racks,
        queue_wait=QueueWait(np.array([1, 5]), source.choice([0.0, 20.0, 60.0], 2)),
        hardware=HARDWARE if source.random() < 0.6 else None,
    )


def question(source: np.random.Generator, states: list[ClusterState]) -> Question:
    """A question with some of all demands, prices and loads."""

    def some(value: Any, share: float = 0.3) -> Any:
        return value if source.random() < share else None

    asked = {
        "min_processors": int(source.integers(1, 4)), "max_processors": some(int(source.integers(4, 20))),
        "per_node": some(int(source.integers(1, 5))), "memory": some(1000.0, 0.15), "features": ("ib",) * bool(some(1)),
        "exclusive": bool(some(1, 0.15)), "exclude": some(f"{states[0].name}[0-1]") or "",
        "least_efficiency": float(source.choice([0.0, 0.25, 0.6])),
    }  # fmt: skip
    metered = all(each.hardware for each in states)
    prices = {"core_hours": 30.0, "risk": 0.5, "saving": 0.1} | ({"energy": 1e-3} if metered else {})
    first = states[0]
    recent = [RecentPlacement(first.name, first.nodes[:2], (1, 2), 990.0, 300.0, dedicated=bool(some(1, 0.5)))]
    return Question(
        float(source.choice([0.5, 3.0, 20.0])),
        Constraints(**asked),
        Objective(
            **{name: price for name, price in prices.items() if some(1) and (name != "energy" or states[0].hardware)}
        ),
        top=int(source.integers(1, 6)),
        scope="top" if some(1) else "processors",
        level=float(source.choice([0.5, 0.9])),
        pareto=bool(some(1, 0.2)),
        tolerance=some(0.05) or 0.0,
        rotation=some("job 7"),
        loads=Loads(recent=recent if some(1, 0.5) else (), now=1000.0),
        max_slowdown=some(0.3, 0.15) if metered else None,
        power_cap=some(5000.0, 0.15) if metered else None,
    )


def answer(number: int) -> dict[str, Any]:
    """What is said of one made-up question: the placements, why, and what else could be."""
    source = np.random.default_rng(number)
    states = [cluster(name, source) for name in ("a", "b")[: 1 + number % 2]]
    models: dict[str, Any] = {
        each.name: Known(float(source.choice([50.0, 200.0])), float(source.choice([100.0, 5000.0]))) for each in states
    }
    asked = question(source, states)
    if number % 8 == 7:
        asked = replace(asked, constraints=asked.constraints.model_copy(update={"min_processors": 10 * number}))
    running = {states[0].name: (RunningJob(states[0].nodes[:2], (1, 1), 200.0, 50.0, running_for=60.0),)}
    contention = Coscheduled(running, asked.problem_size) if number % 3 == 0 else None
    if contention is not None:
        asked = replace(asked, contention=contention)
    try:
        found = rank(states, models, asked)
    except InfeasibleError as error:
        return infeasible_document("made", asked.problem_size, error)
    except InputError as error:
        return {"refused": str(error)}
    best = found.placements[0]
    where = best.resource_set.cluster
    told = explained(best, models[where], asked.problem_size, found.clusters[where])
    document = ranking_document("made", asked.problem_size, found)
    document["by_processors"] = document["by_processors"][::6]  # enough to see a change
    document["explanation"] = explanation_document(told, found.costs[0])
    if found.curve.processors.size:
        shown = scaling(found.curve, best.resource_set.processors)
        document["scaling"] = [shown.fastest, list(map(int, shown.processors)), list(map(float, shown.efficiency))]
    return document


def move(number: int) -> dict[str, Any]:
    """What a job that runs is advised."""
    source = np.random.default_rng(number)
    states = [cluster(name, source) for name in ("a", "b")]
    shared = Known(float(source.choice([500.0, 2000.0])), float(source.choice([100.0, 5000.0])))
    models: dict[str, Any] = {"a": shared, "b": shared if number % 2 else Known(300.0, 100.0)}
    job = Mover(
        float(source.choice([1.0, 20.0])),
        "a",
        states[0].nodes[:2],
        (2, 1),
        elapsed=float(source.choice([0.0, 50.0, 900.0])),
        done=float(source.choice([0.0, 0.4])),
        moved_ago=source.choice([None, 100.0]),
        met_cpu=source.choice([None, 0.5]),
        met_bandwidth=source.choice([None, 80.0]),
        overlapping=frozenset({"b"} if number % 5 == 0 else ()),
        dedicated=number % 4 != 0,
    )
    try:
        found = advise_running(job, states, models, lambda name: Costs(5.0, 10.0 if name == "b" else 0.0, 3.0))
    except InputError as error:
        return {"refused": str(error)}
    where = None if found.placement is None else [*found.placement.resource_set.nodes, found.placement.queue_wait]
    return {
        "decision": asdict(found.decision), "cpu": found.available_cpu, "bandwidth": found.available_bandwidth,
        "where": where, "warnings": list(found.warnings),
    }  # fmt: skip


def clocked(number: int, learned: MeteredPredictor) -> dict[str, Any]:
    """Placements at a clock, with energy that was learned."""
    source = np.random.default_rng(number)
    states = [cluster("a", source)]
    settings = tuple(Settings(frequency=clock) for clock in (1200.0, 1600.0, 2000.0))
    asked = Question(
        900.0, Constraints(max_processors=8), Objective(time=0.0, energy=1.0) if number % 2 else Objective(energy=0.1),
        top=3, settings=settings, max_slowdown=0.2 if number % 3 == 0 else None,
    )  # fmt: skip
    try:
        found = rank(states, {"a": learned}, asked)
    except (InfeasibleError, InputError) as error:
        return {"refused": str(error)}
    return {"placements": [placement_document(*each) for each in zip(found.placements, found.costs, strict=True)]}


def answers() -> dict[str, Any]:
    """All answers by name."""
    learned = MeteredPredictor("a", "c").fit(made(30, seed=1))
    return {
        **{f"ranking {number}": answer(number) for number in range(40)},
        **{f"move {number}": move(number) for number in range(30)},
        **{f"clocks {number}": clocked(number, learned) for number in range(12)},
    }


if __name__ == "__main__":
    print(written_down(answers(), 8))
