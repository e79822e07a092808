"""Probes between members on the loopback interface: who is let in, what is measured, and that none collide."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from itertools import pairwise

import pytest

from monitors.sensors.network import probe as probing
from monitors.sensors.network.channel import Channel, MembershipError
from monitors.sensors.network.clique import Clique
from monitors.sensors.network.probe import BandwidthProbe, BusyPeerError, Link
from monitors.sensors.network.server import LARGEST_TRANSFER, ProbeServer

SECRET = b"sixteen bytes of secret"


@pytest.fixture
def server() -> Iterator[ProbeServer]:
    with ProbeServer(("127.0.0.1", 0), SECRET, timeout=2.0) as server:
        server.start()
        yield server
        server.shutdown()


def test_a_member_measures_bandwidth_and_round_trip(server: ProbeServer) -> None:
    probe = BandwidthProbe(SECRET)
    link = probe.measure("127.0.0.1", server.port)
    assert link.bandwidth > 50  # even a crowded machine copies memory faster than that
    assert 0 < link.round_trip < 1.0
    again = probe.measure("127.0.0.1", server.port)
    assert again.transferred >= 64 << 10


@pytest.mark.parametrize(("mbit", "sizes"), [(1.0, 1), (100.0, 3), (1e7, 5)])
def test_transfers_grow_until_one_takes_long_enough_or_is_the_largest(
    server: ProbeServer, monkeypatch: pytest.MonkeyPatch, mbit: float, sizes: int
) -> None:
    tried: list[int] = []

    def transfer(channel: Channel, size: int, ends: float) -> tuple[float, float]:
        tried.append(size)
        return 8e-6 * size / mbit, 1e6 * mbit

    monkeypatch.setattr(probing, "_transfer", transfer)
    monkeypatch.setattr(probing, "_echo", lambda channel: 1e-4)
    link = BandwidthProbe(SECRET).measure("127.0.0.1", server.port)
    assert (link.bandwidth, link.transferred, len(tried)) == (pytest.approx(mbit), sum(tried), sizes)
    assert 8e-6 * tried[-1] / mbit >= probing.TOO_SHORT or tried[-1] == LARGEST_TRANSFER


def test_a_stranger_is_not_answered(server: ProbeServer) -> None:
    with pytest.raises(MembershipError):
        BandwidthProbe(b"another secret of enough bytes").measure("127.0.0.1", server.port)


def test_a_caller_who_sends_our_challenge_back_learns_nothing(server: ProbeServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=2.0) as stranger:
        challenge = stranger.recv(32)
        stranger.sendall(challenge)
        assert stranger.recv(32) == b""


def test_a_silent_caller_is_dropped_and_others_are_still_answered(server: ProbeServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as silent:
        with Channel.call("127.0.0.1", server.port, SECRET) as member:
            member.send({"verb": "echo"})
            assert member.receive()["done"]
        silent.settimeout(5.0)
        while silent.recv(64):
            pass


def test_silent_callers_of_two_hosts_leave_room_for_members() -> None:
    with ProbeServer(("127.0.0.1", 0), SECRET, timeout=60.0) as server, ExitStack() as stack:
        server.start()
        for own in ("127.0.0.2", "127.0.0.3"):
            for _ in range(8):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port), source_address=(own, 0)))
        with Channel.call("127.0.0.1", server.port, SECRET) as member:
            for own in ("127.0.0.4", "127.0.0.5"):  # a member is no stranger, and stays
                for _ in range(8):
                    stack.enter_context(socket.create_connection(("127.0.0.1", server.port), source_address=(own, 0)))
            member.send({"verb": "echo"})
            assert member.receive()["done"]
        server.shutdown()


def drip(connection: socket.socket, data: bytes) -> None:
    """Send single bytes, each well within the time that the other end waits for one."""
    for byte in data:
        time.sleep(0.02)
        connection.sendall(bytes([byte]))


@pytest.mark.parametrize("member", [False, True])
def test_a_caller_whose_bytes_drip_in_is_dropped(member: bool) -> None:
    with ProbeServer(("127.0.0.1", 0), SECRET, timeout=0.2) as server:
        server.start()
        with Channel.call("127.0.0.1", server.port, SECRET) if member else nullcontext() as channel:
            caller = channel.connection if channel else socket.create_connection(("127.0.0.1", server.port))
            with caller, pytest.raises(ConnectionError):
                drip(caller, b"\0\0\1\0" + bytes(56))
        server.shutdown()


def test_a_server_whose_bytes_drip_in_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as others:
        served = others.submit(lambda: drip(listening.accept()[0], bytes(60)))
        with pytest.raises(TimeoutError):
            Channel.call("127.0.0.1", listening.getsockname()[1], SECRET, timeout=0.2)
        assert isinstance(served.exception(), ConnectionError)


def test_a_forged_message_ends_the_conversation(server: ProbeServer) -> None:
    with Channel.call("127.0.0.1", server.port, SECRET) as member:
        body = b'{"verb": "echo"}'
        member.connection.sendall(len(body).to_bytes(4, "big") + bytes(32) + body)
        with pytest.raises(MembershipError):
            member.receive()


@pytest.mark.parametrize("size", [0, 1, -5, LARGEST_TRANSFER + 1, "many", None, True])
def test_a_transfer_of_an_impossible_size_is_refused(server: ProbeServer, size: object) -> None:
    with Channel.call("127.0.0.1", server.port, SECRET) as member:
        member.send({"verb": "transfer", "bytes": size})
        assert not member.receive()["done"]


@pytest.mark.parametrize(
    "sent",
    [
        {}, {"verb": 5}, {"verb": "a"}, {"verb": "u", "token": {"number": 1}, "bytes": 9},
        {"verb": "token", "token": 1}, {"verb": "transfers", "bytes": 9},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_request_is_answered_as_unknown(server: ProbeServer, sent: dict[str, object]) -> None:
    with Channel.call("127.0.0.1", server.port, SECRET) as member:
        member.send(sent)
        assert member.receive() == {"done": False, "reason": "unknown request"}


def test_a_second_transfer_at_the_same_time_is_refused(server: ProbeServer) -> None:
    with Channel.call("127.0.0.1", server.port, SECRET) as first:
        first.send({"verb": "transfer", "bytes": 1000})
        assert first.receive()["done"]
        with pytest.raises(BusyPeerError):
            BandwidthProbe(SECRET).measure("127.0.0.1", server.port)


def test_a_short_secret_is_refused() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ValueError, match="at least 16"):
        Channel(ours, b"short", server=False)


class Recorder(BandwidthProbe):
    """Probes for real, and keeps when each probe began and ended."""

    spans: list[tuple[float, float]]

    def measure(self, host: str, port: int) -> Link:
        start = time.monotonic()
        link = super().measure(host, port)
        self.spans.append((start, time.monotonic()))
        return link


def clique(names: list[str], period: float) -> tuple[dict[str, Clique], dict[str, ProbeServer], Recorder, list[str]]:
    """Members on this host, each with a server of its own, not running yet."""
    probe, found = Recorder(SECRET, timeout=2.0), []
    probe.spans = []
    servers: dict[str, ProbeServer] = {}
    cliques: dict[str, Clique] = {}
    for name in names:
        take = lambda token, name=name: cliques[name].take(token)  # noqa: E731
        servers[name] = ProbeServer(("127.0.0.1", 0), SECRET, take_token=take, timeout=2.0)
        servers[name].start()
    members = {name: ("127.0.0.1", server.port) for name, server in servers.items()}
    for name in names:
        note = lambda other, link, name=name: found.append(f"{name}-{other}")  # noqa: E731
        cliques[name] = Clique(name, members, probe, SECRET, note, period)
    return cliques, servers, probe, found


def test_every_pair_is_probed_and_no_two_probes_overlap() -> None:
    cliques, servers, probe, found = clique(["a", "b", "c"], period=3.0)
    threads = [threading.Thread(target=member.run, daemon=True) for member in cliques.values()]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 120
    while len(set(found)) < 6 and time.monotonic() < deadline:
        time.sleep(0.05)
    for member in cliques.values():
        member.stop()
    for thread in threads:
        thread.join(timeout=10)
    for server in servers.values():
        server.shutdown()
        server.server_close()
    assert set(found) == {"a-b", "a-c", "b-a", "b-c", "c-a", "c-b"}
    ordered = sorted(probe.spans)
    assert all(end <= start for (_, end), (start, _) in pairwise(ordered))


def test_a_token_lost_with_its_holder_is_made_anew() -> None:
    cliques, servers, _, found = clique(["a", "b", "c"], period=0.3)
    servers["a"].shutdown()
    servers["a"].server_close()  # the one that would start the round is not there
    threads = [threading.Thread(target=cliques[name].run, daemon=True) for name in ("b", "c")]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 120
    while not {"b-c", "c-b"} <= set(found) and time.monotonic() < deadline:
        time.sleep(0.05)
    for member in cliques.values():
        member.stop()
    for name in ("b", "c"):
        servers[name].shutdown()
        servers[name].server_close()
    assert {"b-c", "c-b"} <= set(found)


def test_an_old_token_is_refused() -> None:
    cliques, servers, _, _ = clique(["a", "b"], period=1.0)
    assert cliques["b"].take({"number": 5})
    assert not cliques["b"].take({"number": 5})
    assert not cliques["b"].take({"number": 4})
    assert not cliques["b"].take({"number": "6"})
    for server in servers.values():
        server.server_close()


class Liar(ProbeServer):
    """A member that takes a transfer in and reports whatever it likes."""

    report: object = None

    def _take_in(self, channel: Channel, size: object) -> dict[str, object]:
        super()._take_in(channel, size)
        return self.report  # type: ignore[return-value]


@pytest.fixture
def liar() -> Iterator[Liar]:
    with Liar(("127.0.0.1", 0), SECRET, timeout=2.0) as server:
        server.start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    "report",
    [
        {}, {"done": True}, {"seconds": 1.0}, {"seconds": "1", "rate": 1e6}, {"seconds": 1.0, "rate": None},
        {"seconds": True, "rate": True}, {"seconds": 1.0, "rate": -5.0}, {"seconds": 1.0, "rate": 10**400},
        {"seconds": [], "rate": {}},
    ],
    ids=str,
)  # fmt: skip
def test_a_member_that_reports_nonsense_is_a_failed_probe(liar: Liar, report: object) -> None:
    liar.report = report
    with pytest.raises(ConnectionError, match="reports"):
        BandwidthProbe(SECRET).measure("127.0.0.1", liar.port)


@pytest.mark.parametrize("body", [b"NaN", b"[" * 16_000, b"\xff", b"{", b"7"], ids=lambda body: repr(body[:4]))
def test_a_message_that_is_no_object_is_a_lost_member(body: bytes) -> None:
    made: list[Channel] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        answer = lambda: made.append(Channel(listening.accept()[0], SECRET, server=True))  # noqa: E731
        thread = threading.Thread(target=answer)
        thread.start()
        caller = Channel.call("127.0.0.1", listening.getsockname()[1], SECRET)
        thread.join()
    with caller, made[0]:
        made[0].connection.sendall(struct.pack("!I", len(body)) + made[0]._seal(True, 0, body) + body)
        with pytest.raises(MembershipError):
            caller.receive()


def test_a_member_that_claims_more_than_it_took_in_is_believed_no_further_than_the_time_it_took(liar: Liar) -> None:
    liar.report = {"done": True, "seconds": 1.0, "rate": 1e15}
    probe = BandwidthProbe(SECRET)
    began = time.perf_counter()
    link = probe.measure("127.0.0.1", liar.port)
    least = 8e-6 * link.transferred / (time.perf_counter() - began)
    assert least <= link.bandwidth < 1e9


def test_a_member_that_takes_nothing_in_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(30.0)
                channel = Channel(connection, SECRET, server=True)
                while channel.receive()["verb"] == "echo":
                    channel.send({"done": True})
                channel.send({"done": True})
                while connection.recv(1):  # byte by byte, for ever
                    time.sleep(0.02)

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(OSError):
            BandwidthProbe(SECRET, timeout=0.5).measure("127.0.0.1", listening.getsockname()[1])


def test_a_member_that_probes_badly_does_not_end_the_round() -> None:
    class Broken(BandwidthProbe):
        def measure(self, host: str, port: int) -> Link:
            raise RuntimeError("a defect")

    cliques, servers, _, _ = clique(["a", "b"], period=0.2)
    a = cliques["a"]
    a._probe = Broken(SECRET)
    thread = threading.Thread(target=a.run, daemon=True)
    thread.start()
    while cliques["b"]._highest < 0:  # until the token was passed on
        time.sleep(0.02)
    a.stop()
    thread.join(10)
    for server in servers.values():
        server.shutdown()
        server.server_close()
    assert not thread.is_alive()
