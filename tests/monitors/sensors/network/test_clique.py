"""The round of a token among three members, step by step: who is probed, who is passed to, and who makes a new one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from monitors.sensors.network import clique
from monitors.sensors.network.clique import Clique
from monitors.sensors.network.probe import BandwidthProbe, Link

MEMBERS = {name: (f"host-{name}", port) for port, name in enumerate("bca", 7000)}


class Waits:
    """Stands for the condition that a member waits by: nothing ever comes, and the clock moves on."""

    def __init__(self, round_: Round) -> None:
        self.round, self.waited = round_, list[float]()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def wait_for(self, holds: Callable[[], bool], timeout: float) -> None:
        if not holds():
            self.waited.append(timeout)
            self.round.now += timeout

    def notify_all(self) -> None:
        pass


class Round:
    """A member, a network of others that take a token or do not, and a clock that moves by what probes take."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch, takers: str = "", probe_takes: float = 1.0) -> None:
        self.now, self.takers, self.probe_takes = 50.0, takers, probe_takes
        self.probed: list[str] = []
        self.passed: list[tuple[str, object]] = []
        self.found: list[tuple[str, Link]] = []
        probe: Any = SimpleNamespace(measure=self.measure)
        self.member = Clique(name, MEMBERS, probe, b"secret", lambda *what: self.found.append(what), 120.0)
        self.waits = Waits(self)
        monkeypatch.setattr(self.member, "_changed", self.waits)
        monkeypatch.setattr(clique, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(clique.Channel, "call", self.call)

    def measure(self, host: str, port: int) -> Link:
        name = host.removeprefix("host-")
        assert MEMBERS[name] == (host, port)
        self.probed.append(name)
        self.now += self.probe_takes
        if name == "c":
            raise ConnectionError("away")
        return Link(100.0, 0.001, 7)

    def call(self, host: str, port: int, secret: bytes) -> Any:
        assert (MEMBERS[host.removeprefix("host-")], secret) == ((host, port), b"secret")
        name = host.removeprefix("host-")
        if name == "a":
            raise ConnectionError("away")
        round_ = self

        class Called:
            def __enter__(self) -> Called:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def send(self, message: object) -> None:
                round_.passed.append((name, message))

            def receive(self) -> dict[str, bool]:
                return {"done": True} if name in round_.takers else {}

        return Called()


def token(number: int) -> dict[str, object]:
    return {"verb": "token", "token": {"number": number}}


def test_a_turn_probes_each_other_member_lasts_its_part_of_the_period_and_passes_the_token_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    around = Round("a", monkeypatch, takers="bc")
    assert around.member.take({"number": 5})
    around.member._turn()
    assert around.probed == ["b", "c"]
    assert around.found == [("b", Link(100.0, 0.001, 7))]
    assert around.waits.waited == [38.0]  # a third of 120 s, less two probes
    assert around.passed == [("b", token(6))]
    # What it has passed on has a number that is not new to it.
    assert [around.member.take({"number": number}) for number in (5, 6, 7)] == [False, False, True]


def test_a_turn_that_is_over_goes_on_next_time_where_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    around = Round("a", monkeypatch, takers="bc", probe_takes=40.0)
    for number in (1, 11, 21):
        around.member.take({"number": number})
        around.member._turn()
    assert around.probed == ["b", "c", "b"]
    assert [now for now in around.waits.waited if now] == []
    around.probe_takes = 39.9
    around.member.take({"number": 31})
    around.member._turn()
    assert around.probed[3:] == ["c", "b"]


@pytest.mark.parametrize(
    ("name", "takers", "asked"),
    [("b", "c", "c"), ("c", "b", "b"), ("a", "c", "bc"), ("b", "", "c"), ("a", "", "bc")],
)
def test_the_token_goes_to_the_next_in_order_that_takes_it_and_else_stays(
    name: str, takers: str, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three members in a ring; a is away for all others."""
    around = Round(name, monkeypatch, takers=takers)
    around.member.take({"number": 0})
    around.member._turn()
    assert around.passed == [(other, token(1)) for other in asked]
    # It holds it still, and need not wait, where nobody took it.
    around.waits.waited.clear()
    assert around.member._wait()
    assert around.waits.waited == ([] if not takers else [120.0 * (2 + "abc".index(name))])


@pytest.mark.parametrize(
    ("name", "seen", "waited", "made"),
    [
        ("a", None, 0.0, 3),  # the first in order begins: minus one and one and three
        ("b", None, 360.0, 3),
        ("c", None, 480.0, 3),
        ("a", 10, 240.0, 14),
        ("b", 10, 360.0, 14),
    ],
)
def test_a_token_that_is_missing_is_made_anew_by_the_first_that_has_waited_its_time(
    name: str, seen: int | None, waited: float, made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    around = Round(name, monkeypatch, takers="bc")
    if seen is not None:
        around.member.take({"number": seen - 1})
        around.member._turn()
        around.waits.waited.clear()
        around.passed.clear()
    assert around.member._wait()
    assert around.waits.waited == [waited]
    around.member._turn()
    assert around.passed[0][1] == token(made + 1)


def test_one_that_stops_takes_no_token_and_probes_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    around = Round("a", monkeypatch, takers="bc")
    around.member.take({"number": 0})
    measure = around.measure

    def last(host: str, port: int) -> Link:
        around.member.stop()
        return measure(host, port)

    probe: Any = SimpleNamespace(measure=last)
    monkeypatch.setattr(around.member, "_probe", probe)
    around.member._turn()
    assert (around.probed, around.waits.waited) == (["b"], [])
    assert not around.member._wait()
    assert not around.member.take({"number": 9})
    around.member.run()  # ends at once


def test_numbers_of_tokens_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    member = Round("a", monkeypatch).member
    assert [member.take({"number": number}) for number in (None, True, 1.0, "1")] == [False] * 4
    assert [member.take({"number": number}) for number in (0, 0, 1)] == [True, False, True]


def test_a_name_that_is_no_member_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^d is no member of the clique, expected one of a, b, c$"):
        Clique("d", MEMBERS, BandwidthProbe(b""), b"", lambda *_: None, 1.0)


@pytest.mark.parametrize("place", ["b..c", "b" * 64])
def test_a_member_whose_place_is_no_name_is_passed_over(place: str, caplog: pytest.LogCaptureFixture) -> None:
    """Else the token would end with the member before it, which takes each new one."""
    secret = b"sixteen bytes of secret"
    members = {"a": ("127.0.0.1", 1), "b": (place, 1)}
    member = Clique("a", members, BandwidthProbe(secret), secret, lambda *what: None, 0.01)
    assert member._wait()
    member._turn()
    assert member._held is not None
    assert "the token cannot be passed to b" in caplog.text
