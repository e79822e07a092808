"""Process grids and distances between processes: messages that leave a server, counted pair by pair."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.predictors.analytic.cloud.locality import Locality, distance_law, grid_shape, neighbours

SERVERS = st.lists(st.integers(0, 6), min_size=1, max_size=4).filter(lambda dealt: sum(dealt) >= 2)


def around(one: int, other: int, n: int) -> int:
    return min((one - other) % n, (other - one) % n)


@given(SERVERS, st.integers(1, 3))
def test_in_a_grid_each_process_sends_to_the_next_ones_along_each_side(dealt: list[int], dimensions: int) -> None:
    server = [k for k, count in enumerate(dealt) for _ in range(count)]
    shape = grid_shape(len(server), dimensions)
    places = [*itertools.product(*map(range, shape))]
    number = {place: rank for rank, place in enumerate(places)}
    gone, sent = np.zeros(len(dealt)), 0
    for rank, place in enumerate(places):
        for axis, side in enumerate(shape):
            for step in (1, -1) if side > 1 else ():
                to = number[(*place[:axis], (place[axis] + step) % side, *place[axis + 1 :])]
                gone[server[rank]] += server[to] != server[rank]
                sent += rank == 0
    shares = [each / sent / count if count else 0.0 for each, count in zip(gone, dealt, strict=True)]
    assert Locality(dimensions=dimensions).leaving(np.array(dealt)).tolist() == pytest.approx(shares)
    assert neighbours(len(server), dimensions) == sent


def test_nothing_leaves_where_there_is_nobody_to_send_to() -> None:
    for locality in (Locality(), Locality(dimensions=2)):
        assert locality.leaving(np.array([0, 1, 0])).tolist() == [0.0] * 3
        assert locality.leaving(np.array([0, 5, 0])).tolist() == pytest.approx([0.0, 0.0, 0.0])


@given(st.integers(1, 200), st.integers(1, 4))
def test_a_grid_has_all_processes_and_its_largest_side_first(processes: int, dimensions: int) -> None:
    shape = grid_shape(processes, dimensions)
    assert (math.prod(shape), len(shape)) == (processes, dimensions)
    assert list(shape) == sorted(shape, reverse=True)
    if dimensions == 2:  # no other two sides are nearer to each other
        assert shape[1] == max(each for each in range(1, math.isqrt(processes) + 1) if processes % each == 0)


@pytest.mark.parametrize("processes", [2, 3, 4, 7, 8])
def test_the_distances_of_a_law_are_those_of_all_pairs(processes: int) -> None:
    even = distance_law(0.0, processes)
    counted = np.bincount([around(0, other, processes) for other in range(1, processes)])[1:]
    assert even.tolist() == pytest.approx((counted / counted.sum()).tolist())
    steep = distance_law(2.0, processes)
    by_hand = [count / (distance + 1) ** 2 for distance, count in enumerate(counted)]
    assert steep.tolist() == pytest.approx([each / sum(by_hand) for each in by_hand])
