"""Which messages a receive takes, however many wait."""

from __future__ import annotations

from metasched.simulation.channel import planned
from metasched.simulation.groups import Sent


def test_thousands_of_messages_whose_steps_do_not_fit_are_taken_apart_one_after_the_other() -> None:
    queue = [Sent(range(0, 8, 2), 1.0, 1.0, number) for number in range(3000)]
    queue.append(Sent(range(1, 8, 2), 1.0, 1.0, 3000))
    found = planned(queue, range(8))
    assert found is not None
    assert [(sent.ranks.start, sent.line) for sent, _ in found] == [(rank, 3000 * (rank % 2)) for rank in range(8)]
    assert len(queue) == 4 * 3000 + 4
