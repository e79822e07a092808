"""Transfers that come in at given moments: their seconds and their rate, compared with a line fitted by numpy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from monitors.sensors.network import server
from monitors.sensors.network.server import timed_intake


class Arriving:
    """A connection by which pieces arrive, each at its moment; it keeps how much was asked for at a time."""

    def __init__(self, *pieces: tuple[float, int]) -> None:
        self.pieces, self.now, self.asked = iter(pieces), 0.0, list[int]()

    def recv_into(self, view: memoryview) -> int:
        self.asked.append(len(view))
        self.now, count = next(self.pieces)
        return count


def taken_in(monkeypatch: pytest.MonkeyPatch, size: int, arriving: Arriving, timeout: float = 10.0) -> dict[str, float]:
    monkeypatch.setattr(server, "time", SimpleNamespace(perf_counter=lambda: arriving.now))
    channel: Any = SimpleNamespace(connection=arriving)
    return timed_intake(channel, size, timeout)


@pytest.mark.parametrize(
    ("pieces", "counted"),
    [
        # At an even pace, from a quarter on.
        ([(1.0 + 0.1 * k, 100) for k in range(8)], slice(1, None)),
        # The piece that makes the quarter full counts, one byte less does not.
        ([(1.0, 199), (1.5, 1), (2.0, 300), (2.1, 300)], slice(1, None)),
        ([(1.0, 200), (1.5, 50), (2.0, 250), (2.1, 300)], slice(0, None)),
        # A lost piece holds all others back.
        ([(1.0, 200), (1.1, 100), (3.0, 400), (3.001, 100)], slice(0, None)),
    ],
)
def test_the_rate_is_the_slope_of_what_has_arrived_after_the_first_quarter(
    pieces: list[tuple[float, int]], counted: slice, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = taken_in(monkeypatch, 800, Arriving(*pieces))
    moments, totals = np.array([moment for moment, _ in pieces]), np.cumsum([count for _, count in pieces])
    slope = np.polyfit(moments[counted], totals[counted], 1)[0]
    assert found == {"seconds": pytest.approx(moments[-1] - moments[0]), "rate": pytest.approx(8 * slope)}


@pytest.mark.parametrize("pieces", [[(1.0, 800)], [(1.0, 199), (3.0, 601)], [(1.0, 200), (1.0, 600)]])
def test_what_arrives_in_one_moment_has_no_rate(
    pieces: list[tuple[float, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert taken_in(monkeypatch, 800, Arriving(*pieces)) == {"seconds": pieces[-1][0] - 1.0, "rate": 0.0}


@pytest.mark.parametrize(
    ("size", "piece"), [(2, 2), (64, 64), (5000, 4096), (64 * 4096, 4096), (64 * 5000, 5000), (1 << 28, 1 << 18)]
)
def test_a_64th_is_read_at_a_time_from_4_to_256_kilobytes_and_no_more_than_is_left(
    size: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arriving = Arriving((1.0, size - 1), (2.0, 1))
    taken_in(monkeypatch, size, arriving)
    assert arriving.asked == [piece, 1]


def test_a_transfer_may_take_its_time_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert taken_in(monkeypatch, 800, Arriving((5.0, 400), (15.0, 400)))["seconds"] == 10.0
    with pytest.raises(TimeoutError, match=r"^the transfer took too long$"):
        taken_in(monkeypatch, 800, Arriving((5.0, 400), (15.1, 1), (15.2, 399)))


def test_a_transfer_that_is_cut_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectionError, match=r"^the transfer was cut$"):
        taken_in(monkeypatch, 800, Arriving((5.0, 799), (6.0, 0)))
