"""How programs reach the daemon, by its Unix socket or by URL: with the standard library, within a deadline."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import subprocess
import time
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from metasched.records import InputError

#: Bytes of an answer, and of its head, that are read at most.
MOST, MOST_HEAD = 1 << 28, 1 << 16
#: What need not be quoted in a path with its query.
_PATH = "/?&=%:,;+@~!$'()*[]"


class Listen(Protocol):
    """Where a daemon listens, as :class:`metasched.service.configuration.Listen` configures it."""

    @property
    def host(self) -> str:
        """The address, by name or number."""

    @property
    def port(self) -> int:
        """The number of the TCP port."""

    @property
    def socket(self) -> str | None:
        """Path of the Unix socket, None without one."""

    @property
    def certificate(self) -> str | None:
        """File of the certificate, None without TLS."""


def address_of(listen: Listen) -> str:
    """Where a daemon on this host is asked: at its Unix socket, unless that is closed to this user, or its address."""
    scheme = "http" if listen.certificate is None else "https"
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    if listen.socket and (os.access(listen.socket, os.W_OK) or not os.path.exists(listen.socket)):
        return listen.socket
    return f"{scheme}://{host}:{listen.port}"


def ask_configured(
    listen: Listen, method: str, path: str, document: Any = None, *, url: str | None = None, timeout: float = 10.0
) -> Any:
    """Ask the daemon that listens so, or at another URL, with the token in $METASCHED_TOKEN; see :func:`ask`.

    Parameters
    ----------
    listen : where the daemon listens.
    method, path : of the HTTP request.
    document : sent as JSON; None for no body.
    url : of another daemon, or its Unix socket.
    timeout : how long an answer is waited for (s).
    """
    token, verify = os.environ.get("METASCHED_TOKEN") or None, listen.certificate or True
    return ask(url or address_of(listen), method, path, document, token=token, verify=verify, timeout=timeout)


def ask(
    address: str,
    method: str,
    path: str,
    document: Any = None,
    *,
    token: str | None = None,
    verify: str | bool = True,
    timeout: float = 10.0,
    most: int = MOST,
) -> Any:
    """Ask the daemon and return what it answers.

    Parameters
    ----------
    address : a URL, or the path of the daemon's Unix socket.
    method, path : of the request.
    document : sent as JSON where it is not None.
    token : the client's secret; the Unix socket needs none, nor does a host that shares the daemon's MUNGE key.
    verify : file of the certificates to trust, True for the system's.
    timeout : how long the whole answer may take (s), however it comes.
    most : bytes of the answer that are read at most.

    Raises
    ------
    RuntimeError
        When the daemon cannot be reached or fails.
    InputError
        When it refuses the request.
    """
    ends = time.monotonic() + timeout
    try:
        bearer = None if token is None else f"Bearer {quote(token, safe=_PATH)}"
        status, head, body = _exchange(address, method, path, document, bearer, verify, ends, most)
        if status == 401 and token is None and _accepts_munge(head) and (made := _credential(method, path, ends)):
            status, head, body = _exchange(address, method, path, document, made, verify, ends, most)
    except TimeoutError:
        raise RuntimeError(f"the daemon at {address} does not answer within {timeout:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise RuntimeError(f"the certificate of {address} is not accepted: {error.verify_message}") from None
    except (OSError, ValueError) as error:
        raise RuntimeError(f"the daemon at {address} does not answer: {error}") from None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        if status >= 500:  # what the framework answers for an error that nobody foresaw
            raise RuntimeError(f"the daemon at {address} failed with status {status}, see its log") from None
        raise RuntimeError(f"what answers at {address} is not metasched") from None
    if status >= 500:
        raise RuntimeError(f"the daemon at {address} failed: {_detail(found)}")
    if status >= 400:
        raise InputError(_detail(found), where=address)
    return found


def _exchange(
    address: str,
    method: str,
    path: str,
    document: Any,
    authorization: str | None,
    verify: str | bool,
    ends: float,
    most: int,
) -> tuple[int, bytes, bytes]:
    """The status, the head and the body of the answer to one request.

    Raises
    ------
    OSError, ValueError
        When there is none in time, or it is no HTTP, too long, or cut off.
    """
    host, connection = _connected(address, verify, ends)
    with connection:
        body = b"" if document is None else json.dumps(document).encode()
        lines = [f"{method} {quote(path, safe=_PATH)} HTTP/1.0", f"Host: {host}", "Accept: application/json"]
        if document is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        if authorization is not None:
            lines.append(f"Authorization: {authorization}")
        connection.settimeout(_left(ends))
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        return _answer(connection, ends, most)


def _connected(address: str, verify: str | bool, ends: float) -> tuple[str, socket.socket]:
    """The name of the host, and a connection to it."""
    if "://" not in address:
        local = socket.socket(socket.AF_UNIX)
        try:
            local.settimeout(_left(ends))
            local.connect(address)
        except BaseException:
            local.close()
            raise
        return "metasched", local
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected a URL that begins with http:// or https://")
    tls = parts.scheme == "https"
    plain = socket.create_connection((parts.hostname, parts.port or (443 if tls else 80)), _left(ends))
    if not tls:
        return parts.netloc, plain
    context = ssl.create_default_context(cafile=verify if isinstance(verify, str) else None)
    return parts.netloc, context.wrap_socket(plain, server_hostname=parts.hostname)


def _accepts_munge(head: bytes) -> bool:
    """Whether a daemon that refused a request would accept a MUNGE credential."""
    lines = [line.lower() for line in head.split(b"\r\n")[1:]]
    return any(line.startswith(b"www-authenticate:") and b"munge" in line for line in lines)


def _credential(method: str, path: str, ends: float) -> str | None:
    """An Authorization header that proves to the daemon who asks; None where this host has no MUNGE."""
    words = ["munge", f"--string=metasched {method} {quote(path, safe=_PATH)}"]
    try:
        made = subprocess.run(  # noqa: S603
            words, capture_output=True, text=True, check=True, timeout=_left(ends)
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return f"MUNGE {made}" if re.fullmatch(r"MUNGE:[A-Za-z0-9+/=]+:", made) else None


def _answer(connection: socket.socket, ends: float, most: int) -> tuple[int, bytes, bytes]:
    received, length = bytearray(), MOST
    head = b""
    while not head or len(received) < length:
        # The time that is left of the whole, so that single bytes do not start it again.
        connection.settimeout(_left(ends))
        if not (piece := connection.recv(1 << 18)):
            break
        received += piece
        if not head and (found := received.find(b"\r\n\r\n")) >= 0:
            head, received = bytes(received[:found]), received[found + 4 :]
            length = _length(head)
        if len(received) > (most if head else MOST_HEAD):
            raise ValueError("the answer is too long")
    words = head.split(None, 2)
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise ValueError("what it sends is not HTTP")
    if len(received) < length < MOST:
        raise ValueError("the answer was truncated")
    return int(words[1][:3]), head, bytes(received[:length])


def _length(head: bytes) -> int:
    """How long the body is by its head; without a length it ends with the connection."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return min(int(value.strip()[:12]), MOST)
    return MOST


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left


def _detail(body: Any) -> str:
    return str(body.get("detail", body)) if isinstance(body, dict) else str(body)
