"""Counters corrected by probes."""

from __future__ import annotations

import math
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from monitors.sensors.network import corrected
from monitors.sensors.network.corrected import LOOPBACK, LOOPBACK_SPEED, CorrectedLink, outward_interface


def test_a_probe_scales_what_the_counters_say() -> None:
    link = CorrectedLink(LOOPBACK, speed=1e6)
    time.sleep(0.02)
    link.learn(5e5, 0)
    time.sleep(0.02)
    assert link.read() == pytest.approx(5e5, rel=0.05)  # next to nothing passes: the counters leave all of the speed


def test_a_reading_at_the_same_moment_tells_nothing_and_the_next_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([10.0, 10.0, 10.0, 11.0])
    monkeypatch.setattr(corrected, "time", SimpleNamespace(monotonic=lambda: next(moments)))  # of no other thread
    link = CorrectedLink(LOOPBACK, speed=1e6)
    assert math.isnan(link.read())
    link.learn(5e5, 0)
    assert link.read() == pytest.approx(1e6, rel=0.05)


class Gigabit:
    """A link of 1,000 Mbit/s over which a little, or much, passes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.sent = 0.0, 0
        monkeypatch.setattr(corrected, "time", SimpleNamespace(monotonic=lambda: self.now))  # of no other thread
        monkeypatch.setattr(
            psutil, "net_io_counters",
            lambda pernic: {LOOPBACK: SimpleNamespace(bytes_sent=self.sent, bytes_recv=0)},
        )  # fmt: skip
        self.link = CorrectedLink(LOOPBACK, speed=1000.0)

    def passes(self, seconds: float, rate: float = 0.0) -> None:
        self.now += seconds
        self.sent += int(seconds * rate * 125_000)


@pytest.mark.parametrize("before", [0.001, 0.1, 0.24, 5.0])
def test_a_probe_is_no_load_also_where_a_reading_comes_while_it_is_under_way(
    before: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transfer of a quarter of a second on an idle link; a reading comes so long before it ends."""
    node = Gigabit(monkeypatch)
    for _ in range(2):
        node.passes(10.0)
        node.link.read()
        node.passes(10.0 - max(0.25 - before, 0.0))
        node.passes(max(0.25 - before, 0.0), 940.0)
        node.link.read()
        node.passes(max(before - 0.25, 0.0))
        node.passes(min(before, 0.25), 940.0)
        node.link.learn(940.0, transferred=29_375_000)
        assert node.link.factor == pytest.approx(0.94)
        node.passes(10.0)
        assert node.link.read() == pytest.approx(940.0, rel=1e-3)


def test_a_probe_that_took_its_rate_from_others_makes_an_idle_link_no_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Gigabit(monkeypatch)
    node.passes(10.0, 990.0)
    assert node.link.read() == pytest.approx(10.0)
    node.passes(1.0, 990.0)
    node.link.learn(400.0, 0)
    node.link.read()
    node.passes(10.0, 500.0)
    assert node.link.read() == pytest.approx(500.0)
    node.passes(10.0)
    assert node.link.read() == pytest.approx(1000.0)


def test_a_probe_that_is_faster_than_the_interface_says_to_be_tells_its_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Gigabit(monkeypatch)
    node.passes(10.0, 1000.0)
    node.link.learn(8400.0, 0)
    node.link.read()
    node.passes(10.0, 400.0)
    assert node.link.read() == pytest.approx(9000.0)


def test_the_busier_direction_is_what_is_taken_from_the_speed_down_to_a_hundredth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a link of 100 Mbit/s, over two seconds each."""
    moments = iter([10.0, 12.0, 14.0, 16.0, 18.0])
    counted = iter([(0, 0), (1_000_000, 500_000), (1_000_000, 3_000_000), (90_000_000, 3_000_000), (0, 0)])
    monkeypatch.setattr(corrected, "time", SimpleNamespace(monotonic=lambda: next(moments)))  # of no other thread
    sent = SimpleNamespace
    monkeypatch.setattr(
        psutil, "net_io_counters",
        lambda pernic: {LOOPBACK: sent(**dict(zip(("bytes_sent", "bytes_recv"), next(counted), strict=True)))},
    )  # fmt: skip
    link = CorrectedLink(LOOPBACK, speed=100.0)
    assert [link.read() for _ in range(4)] == pytest.approx([96.0, 90.0, 1.0, 100.0])


def test_the_outward_interface_is_that_of_the_nearest_default_route(tmp_path: Path) -> None:
    routes = tmp_path / "route"
    head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
    far = "wlan0 00000000 010200C0 0003 0 0 600 00000000 0 0 0\n"
    near = "eth7 00000000 010200C0 0003 0 0 100 00000000 0 0 0\n"
    inner = "eth1 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"
    routes.write_text(head + inner + far + near)
    assert outward_interface(routes) == "eth7"
    routes.write_text(head + inner)
    assert outward_interface(routes) == outward_interface(tmp_path / "missing") == LOOPBACK


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_bandwidth_that_cannot_be_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        CorrectedLink(LOOPBACK).learn(bad, 0)


def test_a_slow_probe_and_the_only_route_count_too(tmp_path: Path) -> None:
    link = CorrectedLink(LOOPBACK, speed=1.0)
    time.sleep(0.02)
    link.learn(0.5, 0)
    assert link.factor >= 0.5
    routes = tmp_path / "route"
    routes.write_text("Iface Destination Gateway Flags\neth7 00000000 0100000A 0003 0 0 100 00000000 0 0 0\n")
    assert outward_interface(routes) == "eth7"


def test_an_interface_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="nosuch0"):
        CorrectedLink("nosuch0")


def test_traffic_takes_from_what_the_loopback_link_has_to_spare() -> None:
    link = CorrectedLink(LOOPBACK)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sender:
        receiver, _ = server.accept()
        sink = threading.Thread(target=lambda: [None for _ in iter(lambda: receiver.recv(1 << 16), b"")])
        sink.start()
        link.read()
        begin = time.monotonic()
        sender.sendall(bytes(20_000_000))
        sender.shutdown(socket.SHUT_WR)
        sink.join()
        receiver.close()
        spare = link.read()
        rate = 160 / (time.monotonic() - begin)
    assert 0.01 * LOOPBACK_SPEED <= spare <= max(LOOPBACK_SPEED - 0.9 * rate, 0.01 * LOOPBACK_SPEED)


def test_a_speed_that_is_known_better_than_the_kernel_knows_it_counts() -> None:
    link = CorrectedLink(LOOPBACK, 1e9)
    time.sleep(0.01)
    assert 0.9e9 < link.read() <= 1e9


class Interfaces:
    """Interfaces of a host with their speeds (Mbit/s), and which of them the default route has."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **speeds: int) -> None:
        self.now, self.speeds, self.outward = 0.0, speeds, LOOPBACK
        monkeypatch.setattr(corrected, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(corrected, "outward_interface", lambda: self.outward)
        monkeypatch.setattr(psutil, "net_if_stats", self.stats)
        counters = SimpleNamespace(bytes_sent=0, bytes_recv=0)
        monkeypatch.setattr(psutil, "net_io_counters", lambda pernic: dict.fromkeys(self.speeds, counters))

    def stats(self) -> dict[str, SimpleNamespace]:
        return {
            name: SimpleNamespace(speed=speed, flags="up,loopback" if name == LOOPBACK else "up")
            for name, speed in self.speeds.items()
        }

    def reading(self, link: CorrectedLink) -> float:
        self.now += 10.0
        return link.read()


def test_an_agent_that_was_started_before_its_network_measures_it_once_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Interfaces(monkeypatch, lo=0, eth0=100)
    link = CorrectedLink(None)
    assert host.reading(link) == LOOPBACK_SPEED
    host.outward = "eth0"
    assert math.isnan(host.reading(link))
    assert host.reading(link) == 100.0
    host.outward = LOOPBACK  # the route is away for a while
    assert host.reading(link) == 100.0
    assert host.reading(CorrectedLink(LOOPBACK)) == LOOPBACK_SPEED


def test_a_speed_that_is_negotiated_later_counts_from_then_on_without_what_was_learned_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Interfaces(monkeypatch, eth0=0)
    link = CorrectedLink("eth0")
    assert host.reading(link) == 1000.0
    link.learn(500.0, 0)
    for speed, expected in ((10_000, math.nan), (10_000, 1e4), (0, 1e4), (10_000, 1e4), (100, math.nan), (100, 100.0)):
        host.speeds["eth0"] = speed
        assert host.reading(link) == pytest.approx(expected, nan_ok=True)
    known = CorrectedLink("eth0", speed=40.0)
    host.speeds["eth0"] = 1000
    assert math.isnan(host.reading(known))
    assert host.reading(known) == 40.0


def test_an_interface_that_goes_is_named_and_measured_when_it_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Interfaces(monkeypatch, lo=0, eth0=1000)
    link = CorrectedLink("eth0")
    del host.speeds["eth0"]
    with pytest.raises(ValueError, match="there is no network interface eth0, expected one of lo"):
        host.reading(link)
    host.speeds["eth0"] = 1000
    assert host.reading(link) == 1000.0
