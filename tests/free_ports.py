"""Ports for the servers of tests: drawn at random from those that the kernel gives to nobody by itself."""

from __future__ import annotations

import random
import socket
from contextlib import closing

#: From here on the kernel chooses ports for connections (net.ipv4.ip_local_port_range), so that any may be taken soon.
_CHOSEN = 32_768


def free_ports(count: int) -> range:
    """So many ports in a row that nobody listens on.

    Tests that run at the same time draw different ones, each test process from the system's own random numbers.
    """
    draw = random.SystemRandom()
    for _ in range(1000):
        first = draw.randrange(10_000, _CHOSEN - count)
        if all(_is_free(port) for port in range(first, first + count)):
            return range(first, first + count)
    raise RuntimeError(f"no {count} ports in a row are free")


def free_port() -> int:
    """A port that nobody listens on."""
    return free_ports(1)[0]


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True
