"""What a probe sends and what it makes of the answers, by a member whose answers and whose clock are given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from monitors.sensors.network import probe
from monitors.sensors.network.probe import BandwidthProbe, BusyPeerError, Link

#: Bytes of the first transfer, and of the largest.
SMALLEST, LARGEST = 65_536, 268_435_456


class Member:
    """A member behind a link of a rate (bit/s): it answers as one does, and its clock moves by what that takes."""

    def __init__(self, rate: float, round_trips: list[float], told: float = 1.0) -> None:
        self.rate, self.round_trips, self.told = rate, round_trips, told
        self.now, self.size, self.sizes, self.limits = 100.0, 0, list[int](), list[float]()
        self.connection: Any = self
        self.answers: list[dict[str, Any]] = []
        self.echoes = 0

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def send(self, message: dict[str, Any]) -> None:
        if message == {"verb": "echo"}:
            self.now += self.round_trips[self.echoes % len(self.round_trips)]
            self.echoes += 1
            self.answers.append({"done": True})
        else:
            assert message == {"verb": "transfer", "bytes": message["bytes"]}
            self.sizes.append(message["bytes"])
            self.size = message["bytes"]
            self.answers.append({"done": True})

    def receive(self) -> dict[str, Any]:
        return self.answers.pop(0)

    def settimeout(self, seconds: float) -> None:
        self.limits.append(seconds)

    def sendall(self, data: bytes) -> None:
        assert 0 < len(data) <= 262_144
        self.size -= len(data)
        self.now += 8 * len(data) / self.rate
        if self.size == 0:
            seconds = 8 * self.sizes[-1] / self.rate
            self.answers.append({"done": True, "seconds": seconds, "rate": self.told * self.rate})


def probing(monkeypatch: pytest.MonkeyPatch, member: Member, *, timeout: float = 10.0) -> BandwidthProbe:
    clock = SimpleNamespace(monotonic=lambda: member.now, perf_counter=lambda: member.now)
    monkeypatch.setattr(probe, "time", clock)
    monkeypatch.setattr(probe.Channel, "call", lambda *_: member)
    return BandwidthProbe(b"", timeout)


@pytest.mark.parametrize(
    ("mbit", "round_trip", "first", "second"),
    [
        # 65,536 bytes take 0.1 s or more: one is enough, and the next takes a quarter of a second.
        (5.2, 0.001, [SMALLEST], [162_500]),
        (1.0, 0.001, [SMALLEST], [SMALLEST]),
        # 0.0524 s are too short: a quarter of a second is aimed at.
        (10.0, 0.001, [SMALLEST, 312_500], [312_500]),
        # A hundred times as fast: at most eight times as much at once.
        (1_000.0, 0.001, [SMALLEST, 8 * SMALLEST, 64 * SMALLEST, 31_250_000], [31_250_000]),
        # At least eight round trips, and twice as much is aimed at: 0.4 s here, and 0.8 s.
        (5.2, 0.05, [SMALLEST, 8 * 65_000], [8 * 65_000]),
        # The largest is enough however short it takes.
        (1e6, 0.001, [SMALLEST, *(8**k * SMALLEST for k in (1, 2, 3)), LARGEST], [LARGEST]),
    ],
)
def test_transfers_grow_to_a_quarter_of_a_second_and_the_next_probe_begins_with_the_last_size(
    mbit: float, round_trip: float, first: list[int], second: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    member = Member(1e6 * mbit, [round_trip, 2 * round_trip])
    measuring = probing(monkeypatch, member)
    found = measuring.measure("n1", 7)
    assert member.sizes == pytest.approx(first, abs=1)
    assert found == Link(pytest.approx(mbit), pytest.approx(round_trip), sum(member.sizes))
    assert member.echoes == 5
    member.sizes.clear()
    assert measuring.measure("n1", 7).transferred == sum(member.sizes)
    assert member.sizes == pytest.approx(second, abs=1)
    # Of another member nothing is known.
    member.sizes.clear()
    measuring.measure("n1", 8)
    assert member.sizes[0] == SMALLEST


@pytest.mark.parametrize(("told", "believed"), [(0.5, 0.5), (3.9, 3.9), (4.0, 4.0), (4.1, 4.0), (1e9, 4.0)])
def test_a_rate_is_believed_up_to_four_times_that_of_the_whole_transfer(
    told: float, believed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    measuring = probing(monkeypatch, Member(2e6, [0.001], told))
    assert measuring.measure("n1", 7).bandwidth == pytest.approx(2.0 * believed)


def test_a_transfer_has_the_time_of_a_probe_and_all_together_three_times_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # At 0.8 Mbit/s a block of 262,144 bytes takes 2.62144 s, and the five echoes take 5 s.
    member = Member(0.8e6, [1.0])
    with pytest.raises(TimeoutError, match=r"^the transfer took too long$"):
        probing(monkeypatch, member, timeout=5.0).measure("n1", 7)
    assert member.sizes == pytest.approx([SMALLEST, 8 * SMALLEST, 1_600_000], abs=1)
    # The third begins after 5 + 0.65536 + 5.24288 of 15 s.
    left = 15.0 - 5.0 - 0.65536 - 5.24288
    assert member.limits == pytest.approx([5.0, 5.0, 5.0 - 2.62144, left, left - 2.62144])


def test_a_member_that_is_busy_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    for answer, said in (({"done": False, "reason": "another"}, "another"), ({}, "refused")):
        member = Member(1e6, [0.001])
        monkeypatch.setattr(member, "receive", lambda answer=answer: answer)
        with pytest.raises(BusyPeerError, match=f"^{said}$"):
            probing(monkeypatch, member).measure("n1", 7)


@pytest.mark.parametrize("value", [0, 0.0, 7, 0.5, 9.9e17])
def test_a_number_that_can_be_is_taken(value: float) -> None:
    assert probe._reported({"rate": value}, "rate") == value


@pytest.mark.parametrize("value", [-1e-9, 1e18, float("nan"), "x" * 99])
def test_one_that_cannot_be_is_quoted_up_to_its_40th_letter(value: object) -> None:
    with pytest.raises(ConnectionError) as wrong:
        probe._reported({"rate": value}, "rate")
    assert str(wrong.value) == f"the other end reports {str(value)[:40]} rate of a transfer"
