"""Broadcasts and reductions along trees, and messages that share links, beside plain computations of the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.signature.times.trees import RENDEZVOUS, broadcast, ends_on_shared_links, messages_sent, reduction

STARTS = st.lists(st.floats(0.0, 10.0), min_size=1, max_size=6)


def one_by_one(starts: list[float], busy: float) -> list[float]:
    """Ends of messages of one link, by what is left of each."""
    left, ends, now = dict.fromkeys(range(len(starts)), busy), {}, 0.0
    while left:
        active = [each for each in left if starts[each] <= now]
        coming = min((starts[each] for each in left if starts[each] > now), default=np.inf)
        if not active:
            now = coming
            continue
        step = min(min(left[each] for each in active) * len(active), coming - now)
        for each in active:
            left[each] -= step / len(active)
        now = coming if step == coming - now else now + step
        for each in active:
            if left[each] <= 1e-12:
                ends[each] = now
                del left[each]
    return [ends[each] for each in range(len(starts))]


@given(st.lists(STARTS, min_size=1, max_size=4), st.floats(0.01, 5.0))
def test_messages_share_a_link_as_if_followed_one_by_one(links: list[list[float]], busy: float) -> None:
    many = max(map(len, links))
    starts = np.array([each + [np.inf] * (many - len(each)) for each in links])
    found = ends_on_shared_links(starts, busy)
    assert len(found) == len(links)
    for row, each in zip(found, links, strict=True):
        assert row[: len(each)] == pytest.approx(one_by_one(each, busy), rel=1e-6, abs=1e-6)
        assert np.all(np.isinf(row[len(each) :]))


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=40), st.integers(0, 39), st.sampled_from([8.0, RENDEZVOUS]))
def test_nobody_goes_on_before_what_it_needs(entered: list[float], root: int, size: float) -> None:
    clock = np.array(entered)
    root %= clock.size
    down, up = broadcast(clock, root, size, 1.0, 0.5), reduction(clock, root, size, 1.5)
    assert np.all(down >= clock)
    assert np.all(down[np.arange(clock.size) != root] >= clock[root] + 1.5)
    assert np.all(up >= clock)
    assert up[root] >= clock.max()
    # Later entries let nobody go on earlier, but for messages that then have a link to themselves.
    later = clock + np.arange(clock.size) % 3
    assert size < RENDEZVOUS or np.all(broadcast(later, root, size, 1.0, 0.5) >= down - 1e-9)
    assert np.all(reduction(later, root, size, 1.5) >= up - 1e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 100])
def test_each_but_the_root_gets_one_message(count: int) -> None:
    assert messages_sent(count, count // 2).sum() == count - 1


def test_a_root_that_collects_again_and_again_receives_each_time() -> None:
    clock = np.zeros(8)
    for turn in range(1, 4):
        clock = reduction(clock, 0, 8.0, 1.5)
        assert clock[0] == pytest.approx(3 * 1.5 * turn)
