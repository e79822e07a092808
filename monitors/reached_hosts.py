"""Connections to hosts within a deadline, from looking up the name to the first address that takes one.

The system looks names up for as long as its resolver likes. So a thread asks it, which is left behind when the deadline
has passed; whoever asks for the same host meanwhile waits for the same thread, so that these do not pile up.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from concurrent.futures import Future
from typing import Any

#: What ``getaddrinfo`` tells of a host.
Addresses = list[tuple[Any, ...]]

_lock = threading.Lock()
_asked: dict[tuple[str, int], Future[Addresses]] = {}


def time_left(ends: float) -> float:
    """Seconds until a time of the monotonic clock; TimeoutError when it has passed."""
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left


def reached(host: str, port: int, ends: float) -> socket.socket:
    """A connection to the first address of a host that takes one; each has an equal part of the time that is left.

    Parameters
    ----------
    host, port : a name or an address, and where it listens.
    ends : when all must be done, on the monotonic clock (s).

    Raises
    ------
    OSError, ValueError : when there is no connection in time, or the name is none.
    """
    addresses = _addresses(host, port, ends)
    refused: OSError = OSError(f"{host} has no address")
    for more, (family, kind, protocol, _, where) in zip(range(len(addresses), 0, -1), addresses, strict=True):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(time_left(ends) / more)
            connection.connect(where)
        except OSError as error:
            connection.close()
            refused = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise refused


def _addresses(host: str, port: int, ends: float) -> Addresses:
    if _is_address(host):
        return _looked_up(host, port)
    with _lock:
        found = _asked.get((host, port))
        if found is None:
            found = Future()
            # It waits for the lock before it forgets what was asked, which is noted after it has begun.
            threading.Thread(target=_look_up, args=(host, port, found), name="metasched-names", daemon=True).start()
            _asked[host, port] = found
    try:
        return found.result(time_left(ends))
    except TimeoutError:
        raise TimeoutError(f"the name {host} was not looked up in time") from None


def _look_up(host: str, port: int, found: Future[Addresses]) -> None:
    addresses: Addresses = []
    wrong: Exception | None = None
    try:
        addresses = _looked_up(host, port)
    except Exception as error:
        wrong = error
    with _lock:
        del _asked[host, port]
    if wrong is None:
        found.set_result(addresses)
    else:
        found.set_exception(wrong)


def _looked_up(host: str, port: int) -> Addresses:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
