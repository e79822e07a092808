"""What the processes of the synthetic signature do: ranges of the application's processes, and partners for the rest.

The words of a plan are read by ``metasched/tracing/synthetic.c``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metasched.records import InputError
from metasched.signature.application import Application
from metasched.signature.exchanges import Exchanges, Operation, exchanges
from metasched.signature.expanding import Sample, sampled
from metasched.signature.synthetic.collective_times import MEASURED, Collective, collective_of
from metasched.signature.synthetic.message_kinds import MessageKind, kinds_of, places_of_sample

Ints = NDArray[np.int64]

#: Turns of each loop that are run.
TURNS = 3
#: Fewest processes: two that measure, their black holes, and two that make noise.
FEWEST_CORES = 6
#: Most pairs of ranges; most sizes of a collective operation; most bytes of a buffer.
MOST_ITERATIONS, MOST_SIZES, MOST_BYTES = 64, 12, 256 * 2**20
#: Most messages of noise at once, and most of their bytes together.
MOST_NOISE, MOST_NOISE_BYTES = 64, 16 * 2**20
#: Tags that every MPI has.
TAGS = 32_768
#: Actions in a plan; each has five words.
SLEEP, SEND, RECEIVE, WAIT, COLLECTIVE, PHASE = range(6)


@dataclass(frozen=True)
class Plan:
    """What is run.

    Parameters
    ----------
    processes, cores : of the application, of the synthetic signature.
    measurable : processes that take on ranges of the application's.
    ranges : pairs of ranges of ranks, (begin, end) each, one pair after the other.
    black_holes : of each pair, how many black holes have messages (Eq. 5).
    kinds, kind : of messages; of each message its kind.
    sizes : bytes of each message.
    measured : of each kind, whether a message of it lies inside a pair of ranges.
    words : for the program.
    """

    processes: int
    cores: int
    measurable: int
    ranges: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
    black_holes: tuple[int, ...]
    kinds: tuple[MessageKind, ...]
    kind: Ints
    sizes: NDArray[np.float64]
    measured: NDArray[np.bool_]
    words: Ints


def planned(application: Application, count: int, cores: int, per_node: int, instruction_time: float) -> Plan:
    """Plan the synthetic signature of an application.

    Parameters
    ----------
    application, count : what, and its processes.
    cores : processes of the synthetic signature.
    per_node : processes of the application on each node, in the order of their ranks.
    instruction_time : seconds of an instruction.

    Raises
    ------
    InputError
        When the cores are too few, the rules do not hold, or buffers would be too large.
    """
    if cores < FEWEST_CORES:
        raise InputError(f"{cores} cores are given, the synthetic signature needs at least {FEWEST_CORES}")
    sample = sampled(application, count, TURNS)
    try:
        found = exchanges(sample.trace)
    except InputError:
        # Turns of different loops belong together.
        sample = sampled(application, count, 0)
        found = exchanges(sample.trace)
    kinds, kind = kinds_of(sample, found, per_node)
    half = min((cores - 2) // 4, -(-count // 2))
    half = half // per_node * per_node or half
    ranges, measured = _ranges(found, kind, len(kinds), half, count)
    script = _Script(sample, found, half, instruction_time)
    parts = [script.iteration(pair) for pair in ranges]
    timed = _collectives(sample, cores)
    largest = max(
        float(found.size.max(initial=0.0)),
        max((each.buffer(many) for each, many in timed), default=0.0),
        script.largest,
        1.0,
    )
    if largest > MOST_BYTES:
        raise InputError(f"a call of {count} processes needs {largest:.3g} bytes, expected at most {MOST_BYTES}")
    words = [cores, 2 * half, int(largest), len(ranges), len(timed)]
    for each, many in timed:
        words += [MEASURED.index(each.name), int(each.size), many]
    whole = np.concatenate([np.array(words, dtype=np.int64), *(words for words, _ in parts)])
    return Plan(
        count, cores, 2 * half, tuple(ranges), tuple(holes for _, holes in parts), tuple(kinds), kind, found.size,
        measured, whole,
    )  # fmt: skip


def _ranges(
    found: Exchanges, kind: Ints, kinds: int, half: int, count: int
) -> tuple[list[tuple[tuple[int, int], tuple[int, int]]], NDArray[np.bool_]]:
    """Pairs of ranges until every kind of message has been inside one, those with most new kinds first."""
    here, there = found.source // half, found.target // half
    low, high = np.minimum(here, there), np.maximum(here, there)
    last = -(-count // half) - 1
    inside: dict[tuple[int, int], set[int]] = {}
    for a, b, which in np.unique(np.stack([low, high, kind], axis=1), axis=0).tolist():
        inside.setdefault((a, b), set()).add(which)
    candidates = {pair for pair in inside if pair[0] != pair[1]}
    candidates |= {(min(a, max(last - 1, 0)), min(a + 1, last)) for a, b in inside if a == b}
    covers = {
        (a, b): inside.get((a, b), set()) | inside.get((a, a), set()) | inside.get((b, b), set()) for a, b in candidates
    }
    for a, b in list(covers):
        # The last range of all has no neighbour behind it.
        if a == b - 1 == last - 1:
            covers[a, b] |= inside.get((last, last), set())
    missing = set(range(kinds))
    chosen: list[tuple[int, int]] = []
    while missing and len(chosen) < MOST_ITERATIONS:
        best = max(sorted(covers), key=lambda pair: len(covers[pair] & missing))
        if not covers[best] & missing:
            break
        chosen.append(best)
        missing -= covers[best]
    if not chosen:
        chosen = [(0, min(1, last))]
    measured = np.ones(kinds, dtype=bool)
    measured[list(missing)] = False

    def ranks(part: int) -> tuple[int, int]:
        return part * half, min((part + 1) * half, count)

    return [(ranks(a), ranks(b) if b > a else (0, 0)) for a, b in chosen], measured


def _collectives(sample: Sample, cores: int) -> list[tuple[Collective, int]]:
    """Collective operations to measure, each on growing numbers of processes."""
    sizes: dict[str, set[float]] = {}
    for action in range(len(sample.trace.table.shape)):
        each = collective_of(sample.trace.table, action, len(sample.trace.processes))
        if each is not None:
            # Trees are distinguished from their messages by how long those of one byte take.
            sizes.setdefault(each.name, {1.0} if each.name == "bcast" else set()).add(each.size)
    counts = sorted({*itertools.takewhile(lambda n: n <= cores, (2**k for k in range(1, 20))), cores})
    listed = []
    for name, some in sorted(sizes.items()):
        ordered = sorted(some)
        picked = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), MOST_SIZES)).round().astype(int))
        # Of a broadcast a message of its tree is measured: who waits for whom is left to the clocks of the run.
        listed += [
            (Collective(name, ordered[at]), n)
            for at in picked.tolist()
            for n in counts[: 1 if name == "bcast" else None]
        ]
    return listed


class _Script:
    """The words of the measurable processes, pair of ranges by pair of ranges."""

    def __init__(self, sample: Sample, found: Exchanges, half: int, instruction_time: float) -> None:
        self.found, self.half, self.count = found, half, len(sample.trace.processes)
        table = sample.trace.table
        every = range(len(table.shape))
        self.sleeps = [round(1e9 * instruction_time * table.instructions(each)) for each in every]
        self.collectives = [collective_of(table, each, self.count) for each in every]
        self.largest = max((each.buffer(2 * half) for each in self.collectives if each is not None), default=0.0)
        self.phases, self.places = places_of_sample(sample)
        self.partner = np.where(found.sending, found.target[found.message], found.source[found.message])
        posts = (found.kind == Operation.send) | (found.kind == Operation.receive)
        self.before = np.concatenate([[0], np.cumsum(posts)])[found.first]
        self.noise = self._noise()

    def _noise(self) -> dict[int, tuple[int, int]]:
        """Of each phase, how many messages processes outside the ranges have under way, and of how many bytes."""
        found = self.found
        posts = np.flatnonzero(found.kind == Operation.send)
        phases = self.phases[found.event[posts]]
        sizes = found.size[found.message[found.request[posts]]]
        outside = max(self.count - 2 * self.half, 0) / self.count
        planned: dict[int, tuple[int, int]] = {}
        for phase in np.unique(phases).tolist():
            some = phases == phase
            begins = np.count_nonzero((self.phases == phase) & (self.places == 0)) / self.count
            size = int(sizes[some].mean())
            many = min(round(outside * np.count_nonzero(some) / max(begins, 1.0)), MOST_NOISE)
            planned[phase] = (min(many, MOST_NOISE_BYTES // max(size, 1)), size)
        return planned

    def iteration(self, pair: tuple[tuple[int, int], tuple[int, int]]) -> tuple[Ints, int]:
        """Words of all measurable processes for a pair of ranges, and how many black holes have messages."""
        slots = np.full(self.count, -1)
        taken: list[int] = []
        for place, (begin, end) in enumerate(pair):
            slots[begin:end] = place * self.half + np.arange(end - begin)
            taken += [*range(begin, end)]
        rank_of = {int(slots[rank]): rank for rank in taken}
        holes = 0
        parts: list[list[int]] = []
        for slot in range(2 * self.half):
            actions, outside = self._process(rank_of.get(slot, -1), slot, slots, taken[0])
            holes += outside
            parts.append([len(actions) // 5, *actions])
        return np.array([word for part in parts for word in part], dtype=np.int64), holes

    def _process(self, rank: int, slot: int, slots: Ints, other: int) -> tuple[list[int], bool]:
        """Actions of a process; one without a rank only takes part in collective operations."""
        found = self.found
        idle = rank < 0
        rank = other if idle else rank
        words: list[int] = []
        outside = False
        hole = 2 * self.half + slot
        started = -1
        first = int(self.before[rank])
        for step in range(int(found.first[rank]), int(found.first[rank + 1])):
            kind, action = int(found.kind[step]), int(found.action[step])
            event = int(found.event[step])
            if slot == 0 and self.places[event] == 0 and event != started and int(self.phases[event]) in self.noise:
                started = event
                words += [PHASE, *self.noise[int(self.phases[event])], 0, 0]
            if kind == Operation.collective:
                each = self.collectives[action]
                if each is not None:
                    words += [COLLECTIVE, MEASURED.index(each.name), int(each.size), 0, 0]
            elif idle:
                continue
            elif kind == Operation.work:
                if self.sleeps[action] > 0:
                    words += [SLEEP, self.sleeps[action], 0, 0, 0]
            elif kind == Operation.wait:
                begin, end = int(found.request[step]), int(found.end[step])
                if end > begin:
                    words += [WAIT, begin - first, end - first, 0, 0]
            else:
                request = int(found.request[step])
                message = int(found.message[request])
                peer = int(slots[self.partner[request]])
                outside |= peer < 0
                words += [SEND if kind == Operation.send else RECEIVE, hole if peer < 0 else peer]
                words += [message % TAGS, int(found.size[message]), -1 if peer < 0 else message]
        return words, outside
