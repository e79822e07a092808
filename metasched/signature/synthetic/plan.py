"""The plan of the synthetic signature: ranges of the application's processes, and partners for the rest.

The words of a plan are read by ``metasched/tracing/synthetic.c``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Flags, Floats, Ints
from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import Sample, sampled
from metasched.signature.synthetic.collective_times import MEASURED, Collective, collective_of
from metasched.signature.synthetic.message_kinds import MessageKind, kinds_of
from metasched.signature.times.clocked_runs import longest_of, phases_of_sample
from metasched.signature.times.clocks import run
from metasched.signature.times.costs import BlockCosts
from metasched.signature.times.hardware import LABEL, assumed
from metasched.signature.times.trees import RENDEZVOUS
from metasched.signature.traces.exchanges import Exchanges, Operation, exchanges

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
#: Actions in a plan, and words of each.
SLEEP, SEND, RECEIVE, WAIT, TOGETHER, PHASE = range(6)
WORDS = 6


@dataclass(frozen=True)
class Plan:
    """What is run.

    Parameters
    ----------
    processes, cores : of the application, of the synthetic signature.
    measurable : processes that take on ranges of the application's.
    ranges : pairs of ranges of ranks, (begin, end) each, one pair after the other.
    black_holes : of each pair, how many black holes have messages (Eq. 5).
    kinds, kind : of messages; of each message its kind, -1 where only one end is run.
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
    sizes: Floats
    measured: Flags
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
    InputError : when the cores are too few, the rules do not hold, or buffers would be too large.
    """
    if cores < FEWEST_CORES:
        raise InputError(f"{cores} cores are given, the synthetic signature needs at least {FEWEST_CORES}")
    part = _chosen(application, count, per_node)
    sample, found, kinds, kind = part.sample, part.found, part.kinds, part.kind
    half = min((cores - 2) // 4, -(-count // 2))
    half = half // per_node * per_node or half
    ranges, news = _ranges(found, kind, len(kinds), half, count)
    script = _Script(sample, found, half, instruction_time)
    parts = [
        script.iteration(pair, {kinds[each].phase for each in new}) for pair, new in zip(ranges, news, strict=True)
    ]
    measured = np.zeros(len(kinds), dtype=bool)
    measured[[each for new in news for each in new]] = True
    timed = _collectives(sampled(application, count, TURNS), cores)
    largest = max(
        float(found.size.max(initial=0.0)), max((each.buffer(many) for each, many in timed), default=0.0), 1.0
    )
    if largest > MOST_BYTES:
        raise InputError(f"a call of {count} processes needs {largest:.3g} bytes, expected at most {MOST_BYTES}")
    words = [cores, 2 * half, int(RENDEZVOUS), int(largest), len(ranges), len(timed)]
    for each, many in timed:
        words += [MEASURED.index(each.name), int(each.size), many]
    written: list[int] = []
    # What all processes know, and what each measurable one does, in all pairs of ranges.
    for own in ([words], *([part[slot] for part, _ in parts] for slot in range(2 * half))):
        written += [sum(map(len, own)), *itertools.chain.from_iterable(own)]
    whole = np.array(written, dtype=np.int64)
    return Plan(
        count, cores, 2 * half, tuple(ranges), tuple(holes for _, holes in parts), tuple(kinds), kind, found.size,
        measured, whole,
    )  # fmt: skip


@dataclass(frozen=True)
class _Part:
    """What is run of an application: some turns of its loops, as operations, and the kinds of their messages."""

    sample: Sample
    found: Exchanges
    kinds: list[MessageKind]
    kind: Ints

    @classmethod
    def of(cls, sample: Sample, per_node: int) -> _Part:
        found = exchanges(sample.trace, halves=True)
        return cls(sample, found, *kinds_of(sample, found, per_node))


def _chosen(application: Application, count: int, per_node: int) -> _Part:
    """The fewest turns of loops that have all kinds of messages."""
    most = _Part.of(sampled(application, count, longest_of(application, count)), per_node)
    for outer in range(1, TURNS + 1):
        part = _Part.of(sampled(application, count, TURNS, outer), per_node)
        if {*most.kinds} <= {*part.kinds} and _ends(part.sample, part.found):
            return part
    if _ends(most.sample, most.found):
        return most
    # Turns of different loops belong together.
    return _Part.of(sampled(application, count, 0), per_node)


def _ends(sample: Sample, found: Exchanges) -> bool:
    """Whether all processes of the sample run to their end."""
    costs = BlockCosts(assumed().placement(len(sample.trace.processes)), LABEL)
    try:
        run(sample.trace, found, np.zeros(found.event.max(initial=-1) + 1, dtype=np.int64), [costs])
    except InputError:
        return False
    return True


def _ranges(
    found: Exchanges, kind: Ints, kinds: int, half: int, count: int
) -> tuple[list[tuple[tuple[int, int], tuple[int, int]]], list[set[int]]]:
    """Pairs of ranges until every kind of message has been inside one, those with most new kinds first; what is new."""
    here, there = found.source // half, found.target // half
    low, high = np.minimum(here, there), np.maximum(here, there)
    last = -(-count // half) - 1
    inside: dict[tuple[int, int], set[int]] = {}
    for a, b, which in np.unique(np.stack([low, high, kind], axis=1)[kind >= 0], axis=0).tolist():
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
    news: list[set[int]] = []
    while missing and len(chosen) < MOST_ITERATIONS:
        best = max(sorted(covers), key=lambda pair: len(covers[pair] & missing))
        if not covers[best] & missing:
            break
        chosen.append(best)
        news.append(covers[best] & missing)
        missing -= covers[best]

    def ranks(part: int) -> tuple[int, int]:
        return part * half, min((part + 1) * half, count)

    return [(ranks(a), ranks(b) if b > a else (0, 0)) for a, b in chosen], news


def _collectives(sample: Sample, cores: int) -> list[tuple[Collective, int]]:
    """Collective operations to measure, each on growing numbers of processes."""
    sizes: dict[str, set[float]] = {}
    for action in range(len(sample.trace.table.shape)):
        each = collective_of(sample.trace.table, action, len(sample.trace.processes))
        if each is not None:
            # Trees are distinguished from their messages by how long those of one byte take.
            sizes.setdefault(each.name, {1.0} if each.name == "bcast" else set()).add(each.size)
    listed = []
    counts = sorted({*itertools.takewhile(lambda n: n <= cores, (2**k for k in range(1, 20))), cores})
    for name, some in sorted(sizes.items()):
        ordered = sorted(some)
        picked = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), MOST_SIZES)).round().astype(int))
        # Of a broadcast one message of its tree is measured, and two of one sender: who waits for whom is left to the
        # clocks of the run.
        several = (2, 3) if name == "bcast" else counts
        listed += [(Collective(name, ordered[at]), n) for at in picked.tolist() for n in several]
    # By processes, so that each number of them is split off once.
    return sorted(listed, key=lambda one: one[1])


class _Script:
    """The words of the measurable processes, pair of ranges by pair of ranges."""

    def __init__(self, sample: Sample, found: Exchanges, half: int, instruction_time: float) -> None:
        self.found, self.half, self.count = found, half, len(sample.trace.processes)
        table = sample.trace.table
        every = range(len(table.shape))
        _, _, self.phases, self.places = phases_of_sample(sample)
        takes = np.array([round(1e9 * instruction_time * table.instructions(each)) for each in every], dtype=np.int64)
        self.sleeps = takes[found.action]
        self.common = self._common()
        known = np.array([collective_of(table, each, self.count) is not None for each in every], dtype=bool)
        self.together = (found.kind == Operation.collective) & known[found.action]
        # Messages belong to the phase of their sender.
        self.phase = np.zeros(found.size.size, dtype=np.int64)
        sends = np.flatnonzero(found.kind == Operation.send)
        self.phase[found.message[found.request[sends]]] = self.phases[found.event[sends]]
        self.partner = np.where(found.sending, found.target[found.message], found.source[found.message])
        posts = (found.kind == Operation.send) | (found.kind == Operation.receive)
        self.before = np.concatenate([[0], np.cumsum(posts)])[found.first]
        self.noise = self._noise()

    def _common(self) -> Ints:
        """Of each computation, how much all processes do that have one at its place (ns).

        Its place is how many there are before: of the process if all have the same number, else of its phase.
        """
        found = self.found
        common = np.zeros(found.kind.size, dtype=np.int64)
        works = np.flatnonzero(found.kind == Operation.work)
        if not works.size:
            return common
        owner = np.searchsorted(found.first, works, side="right") - 1
        alike = np.unique(np.bincount(owner, minlength=self.count)).size == 1
        phase = np.zeros_like(owner) if alike else self.phases[found.event[works]]
        order = np.lexsort((works, phase, owner))
        starts = np.flatnonzero(np.diff(owner[order], prepend=-1) | np.diff(phase[order], prepend=-1))
        place = np.arange(works.size) - np.repeat(starts, np.diff([*starts, works.size]))
        _, where = np.unique(np.stack([phase[order], place], axis=1), axis=0, return_inverse=True)
        least = np.full(works.size, np.iinfo(np.int64).max)
        np.minimum.at(least, where.reshape(-1), self.sleeps[works[order]])
        common[works[order]] = least[where.reshape(-1)]
        return common

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

    def iteration(self, pair: tuple[tuple[int, int], tuple[int, int]], phases: set[int]) -> tuple[list[list[int]], int]:
        """Words of each measurable process for a pair of ranges, and how many black holes have messages.

        Parameters
        ----------
        pair : ranges of ranks.
        phases : what is run.
        """
        slots = np.full(self.count, -1)
        taken: list[int] = []
        for place, (begin, end) in enumerate(pair):
            slots[begin:end] = place * self.half + np.arange(end - begin)
            taken += [*range(begin, end)]
        rank_of = {int(slots[rank]): rank for rank in taken}
        some = np.fromiter(phases, dtype=np.int64)
        messages, events = np.isin(self.phase, some), np.isin(self.phases, some)
        meetings = np.flatnonzero(self.together[self._steps(taken[0])])
        kept = events[self.found.event[self._steps(taken[0])][meetings]]
        holes = 0
        parts: list[list[int]] = []
        for slot in range(2 * self.half):
            rank = rank_of.get(slot, -1)
            if rank < 0:
                # One without a rank only meets the others.
                actions, outside = [TOGETHER, 0, 0, 0, 0, 0] * int(kept.sum()), False
            else:
                actions, outside = self._process(rank, slot, slots, messages, events, kept)
            holes += outside
            parts.append([len(actions) // WORDS, *actions])
        return parts, holes

    def _steps(self, rank: int) -> slice:
        return slice(int(self.found.first[rank]), int(self.found.first[rank + 1]))

    def _process(
        self, rank: int, slot: int, slots: Ints, messages: Flags, events: Flags,
        meetings: Flags,
    ) -> tuple[list[int], bool]:  # fmt: skip
        """Actions of a process, and whether it has messages with processes outside the ranges.

        Parameters
        ----------
        rank, slot, slots : of the application; who takes it on; of each rank, who takes it on.
        messages, events, meetings : which of them belong to the phases that are run.
        """
        found = self.found
        words: list[int] = []
        outside = False
        hole = 2 * self.half + slot
        started, met = -1, 0
        first, last = int(self.before[rank]), int(self.before[rank + 1])
        # Requests that are posted, by their number.
        posted = np.concatenate([[0], np.cumsum(messages[found.message[first:last]])])
        for step in range(*self._steps(rank).indices(found.kind.size)):
            kind, event = int(found.kind[step]), int(found.event[step])
            phase = int(self.phases[event])
            if slot == 0 and self.places[event] == 0 and event != started and events[event] and phase in self.noise:
                started = event
                words += [PHASE, *self.noise[phase], 0, 0, phase]
            if kind == Operation.collective:
                if self.together[step]:
                    words += [TOGETHER, 0, 0, 0, 0, phase] if meetings[met] else []
                    met += 1
            elif kind == Operation.work:
                if events[event] and self.sleeps[step] > 0:
                    common = int(self.common[step])
                    words += [SLEEP, common, int(self.sleeps[step]) - common, 0, 0, phase]
            elif kind == Operation.wait:
                begin, end = int(found.request[step]), int(found.end[step])
                if end > begin and posted[end - first] > posted[begin - first]:
                    words += [WAIT, int(posted[begin - first]), int(posted[end - first]), 0, 0, phase]
            else:
                request = int(found.request[step])
                message = int(found.message[request])
                if not messages[message]:
                    continue
                peer = -1 if found.half[message] else int(slots[self.partner[request]])
                outside |= peer < 0
                words += [SEND if kind == Operation.send else RECEIVE, hole if peer < 0 else peer]
                words += [message % TAGS, int(found.size[message]), -1 if peer < 0 else message, phase]
        return words, outside
