"""One HTTP request and its answer, bounded in time and in size, however slow or hostile the server is."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

#: Bytes of the head of an answer, and of its body where the caller names no limit, that are read at most.
MOST_HEAD, MOST = 1 << 16, 1 << 28
#: What need not be quoted in a path with its query.
PATH = "/?&=%:,;+@~!$'()*[]"


class Answer(NamedTuple):
    """The status, the head and the body of an answer."""

    status: int
    head: bytes
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
    ends : when all must be done, from the connection to the last byte, on the monotonic clock (s).
    most : bytes of the body that are read at most.
    certificate : file of the certificates to trust; None for the system's.

    Raises
    ------
    OSError, ValueError
        When there is no answer in time, or it is no HTTP, too long, or cut off.
    """
    host, before, own, connection = _connected(address, certificate, ends)
    with connection:
        body = b"" if document is None else json.dumps(document).encode()
        sent = {"Host": host, "Connection": "close", "Accept": "application/json", "Accept-Encoding": "identity"}
        if document is not None:
            sent |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        lines = [f"{method} {quote(before + path, safe=PATH) or '/'} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in (sent | own | dict(headers)).items()]
        if not all(map(str.isprintable, lines)):
            raise ValueError("a header of the request holds a control character")
        connection.settimeout(time_left(ends))
        # A server that refuses a request may answer before it has read the whole of it.
        with suppress(BrokenPipeError):
            connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        return read_answer(connection, ends, most)


def time_left(ends: float) -> float:
    """Seconds until a time of the monotonic clock; TimeoutError when it has passed."""
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left


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
    connection = socket.create_connection((parts.hostname, parts.port or (443 if tls else 80)), time_left(ends))
    if tls:
        trusted = _system_trust() if certificate is None else ssl.create_default_context(cafile=certificate)
        connection = trusted.wrap_socket(connection, server_hostname=parts.hostname)
    user, _, host = parts.netloc.rpartition("@")
    own = {"Authorization": f"Basic {base64.b64encode(unquote(user).encode()).decode()}"} if user else {}
    return host, parts.path.rstrip("/"), own, connection


@cache
def _system_trust() -> ssl.SSLContext:
    """The system's certificates; reading them takes longer than asking."""
    return ssl.create_default_context()


def read_answer(connection: socket.socket, ends: float, most: int) -> Answer:
    """Read an answer from a connection; see :func:`exchange`."""
    head, received, body = b"", bytearray(), None
    while body is None:
        # The time that is left of the whole, so that single bytes do not start it again.
        connection.settimeout(time_left(ends))
        piece = connection.recv(1 << 18)
        received += piece
        if not head and (found := received.find(b"\r\n\r\n")) >= 0:
            head, received = bytes(received[:found]), received[found + 4 :]
        if not head and not piece:
            raise ValueError("the answer is not HTTP")
        if len(received) > (limit := most if head else MOST_HEAD):
            raise ValueError(f"the answer is longer than {limit} bytes")
        body = _body(head, received, ended=not piece) if head else None
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise ValueError("the answer is not HTTP")
    return Answer(int(words[1][:3]), head, body)


def header(head: bytes, name: str) -> list[str]:
    r"""The values of a header of an answer, in small letters, in order.

    Examples
    --------
    >>> header(b"HTTP/1.1 200 OK\r\nContent-Length: 12", "content-length")
    ['12']
    """
    lines = (line.partition(b":") for line in head.lower().split(b"\r\n")[1:])
    return [value.strip().decode("latin-1") for key, _, value in lines if key.strip() == name.encode()]


def _body(head: bytes, received: bytearray, *, ended: bool) -> bytes | None:
    """The body if it is complete, by its length, by its chunks, or else by the end of the connection."""
    lengths = [value for value in header(head, "content-length") if value.isdecimal()]
    whole: bytes | None
    if "chunked" in header(head, "transfer-encoding"):
        # Its end may have come, though the server leaves the connection open.
        whole = _joined(received) if ended or received.endswith(b"\r\n\r\n") else None
    elif lengths:
        length = int(lengths[0][:12])
        whole = bytes(received[:length]) if len(received) >= length else None
    else:
        whole = bytes(received) if ended else None
    if ended and whole is None:
        raise ValueError("the answer was truncated")
    return whole


def _joined(received: bytearray) -> bytes | None:
    """The body that chunks make up; None while some are missing."""
    body, at = bytearray(), 0
    while (end := received.find(b"\r\n", at)) >= 0:
        size = int(received[at:end].partition(b";")[0][:16], 16)
        if size == 0:
            return bytes(body)
        at = end + 2 + size + 2
        if size < 0 or at > len(received):
            return None
        body += received[end + 2 : at - 2]
    return None
