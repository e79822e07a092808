"""Questions as the ranker asks them: one or two jobs run already; where should another one go.

Each question comes with alternative placements of the candidate that share all of its processors with a job already
there, other processors of the same nodes and so only their links, some of each, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.testbed.applications import APPLICATIONS
from benchmarks.testbed.clusters import ClusterModel
from benchmarks.testbed.simulator import Job

COUNTS = (2, 4, 6)


@dataclass(frozen=True)
class Question:
    """Jobs that run, a candidate without processors yet, and where it could go.

    Parameters
    ----------
    cluster : where.
    running : jobs that run already, started at 0.
    candidate : the job that is to be placed.
    placements : pairs of what is shared and the candidate's processors.
    """

    cluster: ClusterModel
    running: tuple[Job, ...]
    candidate: Job
    placements: tuple[tuple[str, tuple[str, ...]], ...]

    def candidates(self) -> list[Job]:
        """The candidate on each of its placements."""
        return [replace(self.candidate, processors=processors) for _, processors in self.placements]


def draw(cluster: ClusterModel, running: int, rng: np.random.Generator) -> Question:
    """Draw a question with ``running`` jobs there already."""
    counts = rng.choice(COUNTS, running + 1)
    while counts[:-1].sum() > cluster.node_count:
        counts = rng.choice(COUNTS, running + 1)
    first = np.array(cluster.processors[: cluster.node_count])
    second = np.array(cluster.processors[cluster.node_count : 2 * cluster.node_count])
    order = rng.permutation(cluster.node_count)
    jobs, taken = [], 0
    for count in counts[:-1]:
        # Jobs there already overlap in one node now and then.
        start = max(taken - int(rng.integers(0, 2)), 0)
        jobs.append(_job(tuple(first[order[start : start + count]]), rng))
        taken = start + int(count)
    busy, free = order[:taken], order[taken:]
    candidate = _job((), rng)
    return Question(cluster, tuple(jobs), candidate, _placements(int(counts[-1]), first, second, busy, free, rng))


def _job(processors: tuple[str, ...], rng: np.random.Generator) -> Job:
    application = APPLICATIONS[str(rng.choice(sorted(APPLICATIONS)))]
    size = np.exp(rng.uniform(np.log(application.smallest), np.log(application.largest)))
    return Job(application.name, round(float(size)), 0.0, processors)


def _placements(
    count: int,
    first: np.ndarray,
    second: np.ndarray,
    busy: np.ndarray,
    free: np.ndarray,
    rng: np.random.Generator,
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """``first`` and ``second`` processors of every node; jobs are on the first ones of the ``busy`` nodes."""
    busy, free = rng.permutation(busy), rng.permutation(free)
    made: list[tuple[str, tuple[str, ...]]] = []

    def add(kind: str, processors: np.ndarray) -> None:
        if len(processors) == count:
            made.append((kind, tuple(str(name) for name in processors)))

    half = min(count // 2, busy.size)
    add("nothing", first[free[:count]])
    add("nodes", first[busy[:count]])
    add("links", second[busy[:count]])
    add("both", np.concatenate([first[busy[:half]], second[busy[half:count]]]))
    add("some nodes", np.concatenate([first[busy[:half]], first[free[: count - half]]]))
    add("some links", np.concatenate([second[busy[:half]], first[free[: count - half]]]))
    return tuple(made)
