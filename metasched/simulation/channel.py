"""The messages on their way from one label to another over one distance: which of them a receive takes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np

from metasched.simulation.groups import Sent, common, positions, progressions, without


class Channel:
    """Queues of messages, each of senders that no other queue has; those asked for are at the heads of theirs.

    A queue whose senders differ from those of a new message, or of a receive, is split.
    """

    def __init__(self) -> None:
        self._queues: dict[range, deque[Sent]] = {}
        #: Those of several senders, of which a single one may have to be split off.
        self._groups: set[range] = set()

    def __iter__(self) -> Iterator[Sent]:
        """The messages in the order of their senders, the oldest of each first."""
        for ranks in sorted(self._queues, key=_place):
            yield from self._queues[ranks]

    def put(self, sent: Sent) -> None:
        """Add a message of each of some senders."""
        held = self.among(sent.ranks)
        for ranks in held:
            self._queues[ranks].append(sent.cut(ranks))
        rest = [sent.ranks]
        if held:
            new = np.ones(len(sent.ranks), dtype=np.bool_)
            for ranks in held:
                new[positions(sent.ranks, ranks)] = False
            rest = progressions(sent.ranks, new)
        for ranks in rest:
            self._hold(ranks, deque([sent.cut(ranks)]))

    def first(self, senders: range) -> list[Sent] | None:
        """The oldest message of each of some senders, in their order; None if one has none."""
        held = self.among(senders)
        if sum(len(ranks) for ranks in held) < len(senders):
            return None
        return [self._queues[ranks][0] for ranks in held]

    def take(self, senders: range) -> None:
        """Remove the oldest message of each of some senders, which all have one."""
        for ranks in self.among(senders):
            queue = self._queues[ranks]
            queue.popleft()
            if not queue:
                self._drop(ranks)

    def among(self, senders: range) -> list[range]:
        """Those of some senders that have sent messages, in order, as the queues hold them after they were split."""
        if senders in self._queues:
            return [senders]
        found = []
        for ranks in [*(self._groups if len(senders) == 1 else self._queues)]:
            if ranks[-1] < senders.start or senders[-1] < ranks.start:
                continue
            if len(ranks) > 1 < len(senders) and ranks.step != senders.step:
                # Steps that do not fit: each sender by itself.
                parts = [range(rank, rank + 1) for rank in ranks]
            else:
                shared = common(ranks, senders)
                parts = [shared, *without(ranks, shared)] if len(shared) else [ranks]
            if len(parts) > 1:
                queue = self._drop(ranks)
                for part in parts:
                    self._hold(part, deque(sent.cut(part) for sent in queue))
            found += [part for part in parts if part.start in senders]
        return sorted(found, key=_place)

    def _hold(self, ranks: range, queue: deque[Sent]) -> None:
        self._queues[ranks] = queue
        if len(ranks) > 1:
            self._groups.add(ranks)

    def _drop(self, ranks: range) -> deque[Sent]:
        self._groups.discard(ranks)
        return self._queues.pop(ranks)


def _place(ranks: range) -> tuple[int, int]:
    return ranks.start, ranks.step
