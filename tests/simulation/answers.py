"""Runs of made-up applications on made-up systems, which :mod:`tests.simulation.test_whole_answers` compares.

``make answers`` writes them down anew; read the difference before it is kept.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from textwrap import indent
from typing import Any

import numpy as np
from whole_documents import written_down

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.records import InputError
from metasched.simulation.language import parse
from metasched.simulation.outcome import simulate
from metasched.simulation.parts import bandwidth, parts
from metasched.simulation.simgrid import platform_xml
from metasched.simulation.system import Network, Nodes, System
from metasched.store.files.hardware import read_entry

#: What workers do between a message from their master and one to it. Every part ends, whatever the system.
PARTS = (
    "compute({n} * (rank + 1), data ** 1.2, 1.5)",
    "if rank % 3 == 1:\n    compute({n})\nelse:\n    compute({m}, data + rank)",
    "send(w[(rank + {k}) % size], {m} * (1 + rank % 2))\nrecv(w[(rank - {k}) % size])",
    "for i in range({k}, 0, -1):\n    if i == 2:\n        continue\n    compute({n} / i)\n    barrier()",
    "turn = 0\nwhile turn < {k} and not rank < 0:\n    turn += 1\n    bcast({m} + turn)\n"
    "    if turn >= 3:\n        break",
    "scatter({m})\ngather({m}, w)\nalltoall({k} * 1000)",
    "read({m} + rank % 2)\nwrite(max({m}, {n} / 100, 10 * rank))",
    "compute(abs(ceil({n} / 3) - floor({m} / 7) * sqrt(size) + log2(rank + 2) - int(2.5 * rank)))",
    "for i in range(50):\n    compute({n})\n    if rank > 0:\n        send(w[rank - 1], {m})\n"
    "    if rank < size - 1:\n        recv(w[rank + 1])",
)
TEXT = """
def master():
    for i in range(len(w)):
        send(w[i], {m} + 1000 * i)
    bcast({m}, master, w)
    for i in range(len(w)):
        recv(w[i])

def w():
    recv(master)
{parts}
    bcast({m}, w, master)
    send(master, {m})
"""
GALERA, NFS = read_entry("galera-plus"), read_entry("nfs-kask")


def made(name: str, kind: Kind, **values: tuple[float, str]) -> Entry:
    """An entry with such values, each with its unit."""
    return Entry(name, kind, "", {key: Quantity(*each, "made") for key, each in values.items()})


DEVICES = (
    made("peak", Kind.cpu, peak_double=(2e9, "flop/s"), tdp=(90, "W"), idle_power=(20, "W"), cores=(4, "1")),
    made("speed", Kind.cpu, speed=(3e9, "flop/s"), tdp=(60, "W"), cores=(2, "1")),
    GALERA,
    made("single", Kind.gpu, peak_single=(9e9, "flop/s")),
)
BUSES = (
    None, made("bus", Kind.bus, bandwidth=(1e9, "B/s")),
    made("slow", Kind.bus, bandwidth=(2e7, "B/s"), latency=(0.1, "ms")),
)  # fmt: skip
LAN = made("lan", Kind.link, bandwidth=(1e8, "B/s"), latency=(0.2, "ms"))
WAN = made("wan", Kind.link, bandwidth=(1e6, "B/s"), latency=(20, "ms"))
NETWORKS = (Network("wan", WAN), Network("east", GALERA, "wan"), Network("west", LAN, "wan"))


def system(source: np.random.Generator) -> System:
    """Three kinds of nodes on two networks within a third, with whatever devices, buses, disks and rates of failure."""

    def one_of(choice: Any) -> Any:
        return choice[int(source.integers(len(choice)))]

    nodes = [
        Nodes(
            f"n{number}", int(source.integers(1, 4)), ("east", "west")[number % 2], one_of(DEVICES),
            {"w": int(source.integers(1, 4))} | ({"master": 1} if number == 1 else {}), one_of(BUSES),
            one_of((LAN, NFS)), one_of((None, 1e-6, 1e-6)),
        )
        for number in range(3)
    ]  # fmt: skip
    return System("made", NETWORKS, tuple(nodes), waiting=one_of((True, False)))


def answer(number: int) -> dict[str, Any]:
    """What becomes of one application on one system, and the system as a platform file."""
    source = np.random.default_rng(number)
    where = system(source)
    amounts = {
        "n": int(source.integers(10**6, 10**9)), "m": int(source.integers(1, 10**6)), "k": int(source.integers(1, 5)),
    }  # fmt: skip
    chosen = source.choice(len(PARTS), 2, replace=False)
    lines = "\n".join(PARTS[each].format(**amounts) for each in chosen)
    application = parse(TEXT.format(parts=indent(lines, "    "), **amounts))
    processes = {"master": 1, "w": int(source.integers(2, where.slots("w") + 1))}
    found = simulate(where, application, processes)
    document: dict[str, Any] = asdict(found) | {"labels": {name: asdict(each) for name, each in found.labels.items()}}
    del document["groups"]
    document["times"], document["power"] = found.times[::5].tolist(), found.power[::5].tolist()
    document["parts"] = parts(where, application, processes).tolist()
    document["bandwidth"] = bandwidth(where, "w")
    try:
        document["platform"] = hashlib.sha256(platform_xml(where).encode()).hexdigest()[:12]
    except InputError as error:
        document["platform"] = str(error)
    return document


def answers() -> dict[str, Any]:
    """All answers by name."""
    return {f"run {number}": answer(number) for number in range(60)}


if __name__ == "__main__":
    print(written_down(answers(), 10))
