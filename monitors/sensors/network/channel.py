"""How members of a clique communicate: by :class:`Channel`, JSON messages that both ends prove to come from a member.

Both ends know one secret. Each proves it on a challenge of the other's, so that neither a stranger nor a replay gets
past the greeting; then every message carries a code over its content and number under a key of this connection alone.
Nothing is kept secret on the way, only unforgeable: measurements are no secret.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
import struct
import time
from typing import Any, Self

from monitors.reached_hosts import reached, time_left

#: A message is small; whoever announces a larger one is no member.
_LARGEST = 16_384
_CODE = hashlib.sha256().digest_size


class MembershipError(ConnectionError):
    """The other end did not prove that it knows the secret, or a message was forged or cut."""


class Channel:
    """Messages over a connected socket after both ends have proved membership.

    Parameters
    ----------
    connection : connected socket.
    secret : what members know; at least 16 bytes.
    server : whether this end was called.
    timeout : of the greeting and of each message (s), however slowly their bytes drip in.

    Raises
    ------
    MembershipError : the other end is none.
    """

    def __init__(self, connection: socket.socket, secret: bytes, *, server: bool, timeout: float = 10.0) -> None:
        if len(secret) < 16:
            raise ValueError(f"secret has {len(secret)} bytes, expected at least 16")
        self.connection, self._timeout = connection, timeout
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        own, ends = secrets.token_bytes(_CODE), time.monotonic() + timeout
        connection.settimeout(timeout)
        connection.sendall(own)
        other = self._exactly(_CODE, ends)
        greeting = other + own if server else own + other  # the caller's challenge first
        if hmac.compare_digest(own, other):
            raise MembershipError("the other end sent our own challenge")
        connection.sendall(_code(secret, b"server" if server else b"caller", greeting))
        shown = self._exactly(_CODE, ends)
        if not hmac.compare_digest(shown, _code(secret, b"caller" if server else b"server", greeting)):
            raise MembershipError("the other end does not know the secret")
        self._key = _code(secret, b"session", greeting)
        self._server = server
        self._sent = self._received = 0

    @classmethod
    def call(cls, host: str, port: int, secret: bytes, timeout: float = 10.0) -> Self:
        """Connect to a member and prove membership to each other.

        Parameters
        ----------
        host, port : where it listens.
        secret : that all members know.
        timeout : of connecting, of the greeting and of each message (s).
        """
        connection = reached(host, port, time.monotonic() + timeout)
        try:
            return cls(connection, secret, server=False, timeout=timeout)
        except BaseException:
            connection.close()
            raise

    def send(self, message: dict[str, Any]) -> None:
        """Send one message, with its length and its signature."""
        body = json.dumps(message, allow_nan=False).encode()
        self.connection.settimeout(self._timeout)
        self.connection.sendall(struct.pack("!I", len(body)) + self._seal(self._server, self._sent, body) + body)
        self._sent += 1

    def receive(self) -> dict[str, Any]:
        """Wait for one message.

        Raises
        ------
        MembershipError : it is forged, cut or too long.
        """
        ends = time.monotonic() + self._timeout
        (length,) = struct.unpack("!I", self._exactly(4, ends))
        if length > _LARGEST:
            raise MembershipError(f"a message of {length} bytes is announced, expected at most {_LARGEST}")
        seal, body = self._exactly(_CODE, ends), self._exactly(length, ends)
        if not hmac.compare_digest(seal, self._seal(not self._server, self._received, body)):
            raise MembershipError("a message is forged")
        self._received += 1
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise MembershipError("a message is not an object")
        return message

    def close(self) -> None:
        """Close the connection to the other member."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _seal(self, from_server: bool, number: int, body: bytes) -> bytes:
        return _code(self._key, b"s" if from_server else b"c", struct.pack("!Q", number) + body)

    def _exactly(self, count: int, ends: float) -> bytes:
        parts, missing = [], count
        while missing:
            self.connection.settimeout(time_left(ends))
            part = self.connection.recv(missing)
            if not part:
                raise MembershipError("the other end closed the connection")
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)


def _code(key: bytes, label: bytes, content: bytes) -> bytes:
    return hmac.new(key, label + b":" + content, hashlib.sha256).digest()
