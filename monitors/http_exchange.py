"""One HTTP request and its answer, bounded in time and in size, however slow or hostile the server is.

The standard library speaks the protocol, over a connection that is cut off at a moment and after a number of bytes: its
own timeout starts again with every byte that drips in.
"""

from __future__ import annotations

import base64
import io
import json
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, IncompleteRead
from typing import Any, NamedTuple, cast
from urllib.parse import quote, unquote, urlsplit

from monitors.reached_hosts import reached, time_left

#: Bytes of an answer, and of its head and the marks between its chunks, that are read at most.
MOST, MOST_BESIDE = 1 << 28, 1 << 16
#: What need not be quoted in a path with its query.
PATH = "/?&=%:,;+@~!$'()*[]"


class Answer(NamedTuple):
    """The status, the headers and the body of an answer."""

    status: int
    headers: HTTPMessage
    body: bytes


def exchange(
    address: str,
    method: str,
    path: str = "",
    document: Any = None,
    *,
    headers: Mapping[str, str],
    ends: float,
    most: int = MOST,
    certificate: str | None = None,
) -> Answer:
    """Send a request over a connection of its own, and read the answer; redirections are not followed.

    Parameters
    ----------
    address : a URL, which may hold a user and a password; or the path of a Unix socket.
    method, path : of the request; a path with its query follows that of the URL.
    document : sent as JSON where it is not None.
    headers : further ones, such as ``Authorization``.
    ends : when all must be done, from looking up the host to the last byte, on the monotonic clock (s).
    most : bytes of the body that are read at most.
    certificate : file of the certificates to trust; None for the system's.

    Raises
    ------
    OSError, ValueError : when there is no answer in time, or it is no HTTP, too long, or cut off.
    """
    host, before, own, connection = _connected(address, certificate, ends)
    with connection:
        sent = {"Host": host, "Connection": "close", "Accept": "application/json", "Accept-Encoding": "identity"}
        if document is not None:
            sent["Content-Type"] = "application/json"
        sent |= own | dict(headers)
        if not all(value.isascii() and value.isprintable() for value in sent.values()):
            raise ValueError("a header of the request holds a character that HTTP does not allow")
        body = None if document is None else json.dumps(document).encode()
        client = HTTPConnection(host)
        client.sock = cast("socket.socket", Bounded(connection, ends, most))
        # A server that refuses a request may answer before it has read the whole of it.
        with suppress(BrokenPipeError):
            client.request(method, quote(before + path, safe=PATH) or "/", body, sent)
        return read_answer(connection, ends, most)


def _connected(address: str, certificate: str | None, ends: float) -> tuple[str, str, dict[str, str], socket.socket]:
    """The host as it is named to the server, the path and the header of the address, and a connection."""
    if "://" not in address:
        local = socket.socket(socket.AF_UNIX)
        try:
            local.settimeout(time_left(ends))
            local.connect(address)
        except BaseException:
            local.close()
            raise
        return "localhost", "", {}, local
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected a URL that begins with http:// or https://")
    tls = parts.scheme == "https"
    connection = reached(parts.hostname, parts.port or (443 if tls else 80), ends)
    if tls:
        try:
            trusted = _system_trust() if certificate is None else ssl.create_default_context(cafile=certificate)
            connection.settimeout(time_left(ends))
            connection = trusted.wrap_socket(connection, server_hostname=parts.hostname)
        except BaseException:
            connection.close()
            raise
    user, _, host = parts.netloc.rpartition("@")
    own = {"Authorization": f"Basic {base64.b64encode(unquote(user).encode()).decode()}"} if user else {}
    return host, parts.path.rstrip("/"), own, connection


@cache
def _system_trust() -> ssl.SSLContext:
    """The system's certificates; reading them takes longer than asking."""
    return ssl.create_default_context()


def read_answer(connection: socket.socket, ends: float, most: int) -> Answer:
    """Read the answer to a request that was sent; see :func:`exchange`."""
    answer = HTTPResponse(cast("socket.socket", Bounded(connection, ends, most)))
    try:
        answer.begin()
        body = answer.read()
    except IncompleteRead:
        raise ValueError("the answer was truncated") from None
    except (OverflowError, MemoryError):  # by a length that no memory holds
        raise ValueError(f"the answer is longer than {most} bytes") from None
    except HTTPException as error:
        raise ValueError(f"the answer is not HTTP: {str(error) or type(error).__name__}") from None
    if not body and answer.length is None and not answer.chunked:
        # The head may have been cut off as well: the parser takes the end of a connection for the end of the head.
        raise ValueError("the answer was truncated")
    if len(body) > most:
        raise ValueError(f"the answer is longer than {most} bytes")
    return Answer(answer.status, answer.headers, body)


class Bounded(io.RawIOBase):
    """A connection until a moment of the monotonic clock, which sends a body of a number of bytes at most."""

    def __init__(self, connection: socket.socket, ends: float, most: int) -> None:
        self._connection, self._ends, self._most, self._read = connection, ends, most, 0

    def makefile(self, _: str) -> io.BufferedReader:
        """The one way in which a response reads from its connection."""
        return io.BufferedReader(self)

    def sendall(self, data: Any) -> None:
        """The one way in which a request writes to its connection."""
        self._connection.settimeout(time_left(self._ends))
        self._connection.sendall(data)

    def readable(self) -> bool:
        """What is waited for can always be read, to a buffered reader's mind."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what comes next; TimeoutError when the moment is past, ValueError when it is too much."""
        self._connection.settimeout(time_left(self._ends))
        count = self._connection.recv_into(buffer)
        self._read += count
        if self._read > self._most + MOST_BESIDE:
            raise ValueError(f"the answer is longer than {self._most} bytes")
        return count
