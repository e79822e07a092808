"""Solutions of networks drawn at random, which :mod:`tests.queueing.test_whole_answers` compares with those known.

``make answers`` writes them down anew; read the difference before it is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from whole_documents import written_down

from metasched.queueing.approximate import solve_approximately
from metasched.queueing.network import JobClass, Network, Station
from metasched.queueing.solver import solve
from metasched.records import InputError

#: Stations: one server, three, one that slows down where many queue, and a delay.
KINDS: tuple[dict[str, Any], ...] = ({}, {"servers": 3}, {"rates": (1.0, 1.6, 1.2)}, {"kind": "delay"})


def network(source: np.random.Generator) -> Network:
    """A network with some classes that pass by some stations, and perhaps a class without jobs."""
    stations, classes = int(source.integers(1, 5)), int(source.integers(1, 4))
    service = source.choice([0.0, 0.1, 0.5, 2.0], (stations, classes)) + 0.01 * source.random((stations, classes))
    places = (
        Station(f"s{at}", tuple(own), tuple(source.choice([0.5, 1.0, 3.0], classes).tolist()), **KINDS[kind])
        for at, (own, kind) in enumerate(zip(service.tolist(), source.integers(len(KINDS), size=stations), strict=True))
    )
    jobs, idle = source.integers(0, 6, classes).tolist(), source.choice([0.5, 4.0], classes).tolist()
    pairs = enumerate(zip(jobs, idle, strict=True))
    return Network("drawn", tuple(places), tuple(JobClass(f"c{at}", *pair) for at, pair in pairs))


def answer(number: int) -> dict[str, Any]:
    """A network by each approximation, exactly, and as the solver chooses where it may take little memory."""
    drawn = network(np.random.default_rng(number))
    found: dict[str, Any] = {}
    for method, memory in (("exact", 1 << 30), ("exact", 900), ("approximate", 900), ("auto", 900), ("auto", 4000)):
        try:
            found[f"{method}, {memory}"] = solve(drawn, method, memory=memory).as_dict()  # type: ignore[arg-type]
        except InputError as error:
            found[f"{method}, {memory}"] = str(error)
    present = drawn.population > 0
    if present.any():
        kinds = [() if each.kind == "delay" else each.listed_rates for each in drawn.stations]
        steady = solve_approximately(
            drawn.demands[:, present], drawn.think_time[present], drawn.population[present], kinds, "bard"
        )
        found["bard"] = [steady.throughput.tolist(), steady.queue_length.tolist()]
    return found


def answers() -> dict[str, Any]:
    """All answers by name."""
    return {f"network {number}": answer(number) for number in range(20)}


if __name__ == "__main__":
    print(written_down(answers(), 8))
