"""Servers: cores, speeds, and the time to send a word between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.predictors.analytic.cloud.profile import LEAST, MOST
from metasched.records import InputError, check_count, check_seconds


@dataclass(frozen=True, slots=True)
class Server:
    """One server, bare metal or virtual.

    Parameters
    ----------
    name : the server's name.
    cores : processes that compute there at full speed at once.
    speed : of a core, relative to the server that was profiled on.

    Examples
    --------
    >>> Server("s0", cores=4).speed
    1.0
    """

    name: str
    cores: int
    speed: float = 1.0

    def __post_init__(self) -> None:
        check_count(f"cores of server {self.name}", self.cores)
        if not LEAST <= self.speed <= MOST:
            raise InputError(
                f"speed of server {self.name} is {self.speed}, expected a number from {LEAST:g} to {MOST:g}"
            )


@dataclass(frozen=True)
class Hardware:
    """Servers and the network between them.

    Parameters
    ----------
    servers : at least one.
    word_time : T_w, seconds for one more byte between two servers.
    startup_time : T_s, seconds for the shortest message; the paper takes it as 0.
    shared_word_time : seconds for a byte where many messages fill a server's link, which is often less than a message
        alone takes; None for ``word_time``.

    Examples
    --------
    >>> Hardware((Server("a", 4), Server("b", 8)), word_time=8e-9).spread(6)
    array([3, 3])
    """

    servers: tuple[Server, ...]
    word_time: float
    startup_time: float = 0.0
    shared_word_time: float | None = None

    def __post_init__(self) -> None:
        if not self.servers:
            raise InputError("no servers, expected at least one")
        for name in ("word_time", "startup_time", "shared_word_time"):
            if (value := getattr(self, name)) is not None:
                check_seconds(name, value)

    @property
    def cores(self) -> Ints:
        """Cores of each server, shape (servers,)."""
        return np.array([server.cores for server in self.servers])

    @property
    def speed(self) -> Floats:
        """Speed of each server's cores, shape (servers,)."""
        return np.array([server.speed for server in self.servers])

    @property
    def link_word_time(self) -> float:
        """Seconds for a byte on a link that many messages share."""
        return self.word_time if self.shared_word_time is None else self.shared_word_time

    def spread(self, processes: int) -> Ints:
        """Distribute processes over the servers as evenly as possible, shape (servers,)."""
        count = len(self.servers)
        return processes // count + (np.arange(count) < processes % count).astype(np.int64)

    def fill(self, processes: int) -> Ints:
        """Distribute processes by filling server after server, and again when all are full, shape (servers,).

        >>> Hardware((Server("a", 4), Server("b", 8)), word_time=8e-9).fill(6)
        array([4, 2])
        """
        rounds, rest = divmod(processes, int(self.cores.sum()))
        before = np.cumsum(self.cores) - self.cores
        return np.asarray(rounds * self.cores + np.clip(rest - before, 0, self.cores))

    def check(self, distribution: Ints) -> None:
        """Check a distribution of processes, shape (servers,): one number for each server."""
        if len(distribution) != len(self.servers):
            raise InputError(
                f"a distribution over {len(distribution)} servers, expected one number for each of {len(self.servers)}"
            )
        if (distribution < 0).any() or distribution.sum() < 1:
            raise InputError(
                "a distribution with a negative number or without processes, expected at least one process"
            )
