"""Which messages a receive takes, however many wait and whoever sent them together."""

from __future__ import annotations

from collections import deque

from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.simulation.channel import Channel
from metasched.simulation.groups import Sent

#: Progressions of ranks up to 40; those of one rank have step 1.
RANKS = st.builds(
    lambda start, count, step: range(start, start + (count - 1) * step + 1, step if count > 1 else 1),
    st.integers(0, 19), st.integers(1, 7), st.integers(1, 3),
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(st.booleans(), RANKS), max_size=40))
def test_each_receive_takes_the_oldest_message_of_each_sender(steps: list[tuple[bool, range]]) -> None:
    channel = Channel()
    queues: dict[int, deque[int]] = {rank: deque() for rank in range(40)}
    for number, (sends, ranks) in enumerate(steps):
        if sends:
            channel.put(Sent(ranks, 1.0 * number, 1.0, number))
            for rank in ranks:
                queues[rank].append(number)
            continue
        found = channel.first(ranks)
        assert {rank for some in channel.among(ranks) for rank in some} == {rank for rank in ranks if queues[rank]}
        if not all(queues[rank] for rank in ranks):
            assert found is None
            continue
        assert found is not None
        oldest = [(rank, sent.line) for sent in found for rank in sent.ranks]
        assert oldest == [(rank, queues[rank].popleft()) for rank in ranks]
        channel.take(ranks)
    left = [(rank, sent.line) for sent in channel for rank in sent.ranks]
    assert sorted(left) == sorted((rank, number) for rank, queue in queues.items() for number in queue)


def test_thousands_of_messages_whose_steps_do_not_fit_are_taken_apart_once() -> None:
    channel = Channel()
    for number in range(3000):
        channel.put(Sent(range(0, 8, 2), 1.0, 1.0, number))
    channel.put(Sent(range(1, 8, 2), 1.0, 1.0, 3000))
    found = channel.first(range(8))
    assert found is not None
    assert [(sent.ranks.start, sent.line) for sent in found] == [(rank, 3000 * (rank % 2)) for rank in range(8)]
    assert sum(1 for _ in channel) == 4 * 3000 + 4
