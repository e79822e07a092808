"""Messages between members as other releases write and read them: by a peer that follows the protocol's description."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import secrets
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from monitors.reached_hosts import reached
from monitors.sensors.network import channel
from monitors.sensors.network.channel import Channel, MembershipError

SECRET = b"exactly 16 bytes"


def code(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()


class Peer:
    """The other end of a channel, written down once more.

    Both send a challenge of 32 bytes, then a code of their role and both challenges, the caller's first. A message has
    a length of four bytes, a code of the sender's letter and the message's number in eight bytes, and an object.
    """

    def __init__(self, connection: socket.socket, secret: bytes, role: str) -> None:
        self.connection = connection
        self.file = connection.makefile("rwb", buffering=0)
        self.letter, other = (b"s:", "caller") if role == "server" else (b"c:", "server")
        own = secrets.token_bytes(32)
        self.file.write(own)
        theirs = self.file.read(32)
        both = theirs + own if role == "server" else own + theirs
        self.file.write(code(secret, f"{role}:".encode() + both))
        assert self.file.read(32) == code(secret, f"{other}:".encode() + both)
        self.key = code(secret, b"session:" + both)

    def send(self, body: bytes, number: int, letter: bytes = b"") -> None:
        seal = code(self.key, (letter or self.letter) + number.to_bytes(8, "big") + body)
        self.file.write(len(body).to_bytes(4, "big") + seal + body)

    def receive(self, number: int) -> object:
        length = int.from_bytes(self.file.read(4), "big")
        seal, body = self.file.read(32), self.file.read(length)
        theirs = b"c:" if self.letter == b"s:" else b"s:"
        assert seal == code(self.key, theirs + number.to_bytes(8, "big") + body)
        return json.loads(body)


@contextlib.contextmanager
def joined(role: str) -> Iterator[tuple[Channel, Peer]]:
    """A channel, and a peer in a role at its other end."""
    ours, theirs = socket.socketpair()
    made: list[Peer] = []
    with ours, theirs, pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket, "TCP_NODELAY", socket.SO_KEEPALIVE)
        patched.setattr(socket, "IPPROTO_TCP", socket.SOL_SOCKET)  # a pair of sockets has no TCP
        thread = threading.Thread(target=lambda: made.append(Peer(theirs, SECRET, role)), daemon=True)
        thread.start()
        channel = Channel(ours, SECRET, server=role == "caller")
        thread.join(60.0)
        yield channel, made[0]


@pytest.mark.parametrize("role", ["server", "caller"])
def test_both_ends_count_the_messages_of_each(role: str) -> None:
    with joined(role) as (channel, peer):
        for number in range(3):
            channel.send({"number": number})
            assert peer.receive(number) == {"number": number}
        for number in range(2):
            peer.send(b'{"done": true}', number)
            assert channel.receive() == {"done": True}
        channel.send({})
        assert peer.receive(3) == {}


@pytest.mark.parametrize(
    "send",
    [
        lambda peer: peer.send(b"{}", 1),  # one message was held back
        lambda peer: [peer.send(b"{}", 0), peer.send(b"{}", 0)],  # one was sent again
        lambda peer: peer.send(b"{}", 0, b"c:"),  # one of our own came back
    ],
    ids=["left out", "again", "own"],
)
def test_a_message_out_of_order_or_of_our_own_is_forged(send: Callable[[Peer], object]) -> None:
    with joined("server") as (channel, peer):
        send(peer)
        with pytest.raises(MembershipError, match=r"^a message is forged$"):
            [channel.receive() for _ in range(2)]


def test_a_message_may_have_16_kilobytes_and_not_one_more() -> None:
    largest = b'{"reason": "' + b"x" * (16_384 - 14) + b'"}'
    with joined("server") as (channel, peer):
        peer.send(largest, 0)
        assert len(channel.receive()["reason"]) == 16_370
        peer.send(largest + b" ", 1)
        with pytest.raises(MembershipError, match=r"^a message of 16385 bytes is announced, expected at most 16384$"):
            channel.receive()


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\2" + bytes(31), b"\0\0\0\2" + bytes(33)])
def test_a_message_that_is_cut_is_a_lost_member(sent: bytes) -> None:
    with joined("server") as (channel, peer):
        peer.file.write(sent)
        peer.connection.shutdown(socket.SHUT_WR)
        with pytest.raises(MembershipError, match=r"^the other end closed the connection$"):
            channel.receive()


def test_a_channel_that_is_left_is_closed() -> None:
    with joined("server") as (channel, _):
        with channel as same:
            assert same is channel
        assert channel.connection.fileno() == -1


def test_a_call_to_one_that_is_no_member_leaves_no_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[socket.socket] = []

    def noted(host: str, port: int, ends: float) -> socket.socket:
        opened.append(reached(host, port, ends))
        return opened[-1]

    monkeypatch.setattr(channel, "reached", noted)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with listening.accept()[0] as connection:
                connection.sendall(bytes(64))
                while connection.recv(64):
                    pass

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(MembershipError, match=r"^the other end does not know the secret$"):
            Channel.call("127.0.0.1", listening.getsockname()[1], SECRET, 60.0)
        thread.join(60.0)
    assert not thread.is_alive()
    assert [each.fileno() for each in opened] == [-1]
