"""Slowdowns of jobs drawn at random, which :mod:`tests.contention.test_whole_answers` compares with those known.

``make answers`` writes them down anew; read the difference before it is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from whole_documents import written_down

from metasched.contention.effort import Effort, EffortError
from metasched.contention.equal_shares import equal_shares
from metasched.contention.shared_cluster import SharedCluster, Work
from metasched.contention.slowdown import effects, time_to_end


def answer(number: int) -> dict[str, Any]:
    """What a job does to those on some nodes of two racks or of one switch, and they to it; also with little effort."""
    source = np.random.default_rng(number)
    nodes, jobs, places = int(source.integers(2, 7)), int(source.integers(1, 4)), int(source.integers(1, 4))
    racks = source.integers(0, 2, nodes)
    processors, cpu = source.integers(1, 4, nodes), source.choice([0.4, 0.8, 1.0], nodes)
    widths = [40.0, 100.0, *source.choice([50.0, 200.0], nodes)]
    cluster = SharedCluster(processors, cpu, 2 + np.arange(nodes), widths, [-1, -1, *racks])
    if number % 4 == 0:
        cluster = SharedCluster.star(processors, 100.0, cpu)

    def work(count: int) -> Work:
        processes = source.integers(0, 3, (count, nodes))
        processes[:, int(source.integers(nodes))] += 1
        if number % 3:
            sends = source.choice([0.0, 5.0, 20.0], count)
        else:  # each process sends as much
            sends = 300.0 * (cluster.crossing(processes.astype(float)) / cluster.width).max(axis=-1)
        left = source.choice([10.0, 100.0], count) if number % 5 == 0 else None
        return Work.of(cluster, processes, source.choice([1.0, 10.0, 40.0], count), sends, remaining=left)

    there, asked = work(jobs), work(places)
    found: dict[str, Any] = {
        "alone": (asked.computing.max(axis=-1) + asked.sending.max(axis=-1)).tolist(),
        "flows": asked.flows.tolist(),
    }
    for name, more in (
        ("exact", {}), ("equal shares", {"stretched": equal_shares}), ("nothing lost", {"lost": False}),
        ("little effort", {"effort": Effort(float(source.choice([30.0, 300.0, 3000.0])))}),
    ):  # fmt: skip
        try:
            each = effects(cluster, there, asked, **more)
            found[name] = [each.slowdown.tolist(), each.caused.tolist(), each.lost.tolist()]
        except EffortError as error:
            found[name] = str(error)
    together = Work(*(np.asarray(getattr(there, name))[None] for name in Work.__slots__))
    found["ends"] = time_to_end(cluster, together).tolist()
    return found


def answers() -> dict[str, Any]:
    """All answers by name."""
    return {f"jobs {number}": answer(number) for number in range(40)}


if __name__ == "__main__":
    print(written_down(answers(), 8))
