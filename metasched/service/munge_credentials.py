"""Users of other hosts of the site by MUNGE credentials, which munged of the daemon's host decodes.

A credential names the user's number, lasts for a minute, and is made for one request, whose method and path it holds.
munged decodes it once (munge(7)), and the daemon remembers it as well, for a munged that was started again meanwhile.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict

from metasched.service.configuration import Munge
from monitors.bounded_room import BoundedRoom

#: How long a credential holds (s), however long its maker wanted, and how long it may come from the future.
LASTS, FUTURE = 60.0, 10.0
#: How long ``unmunge`` may take (s), how many run at once, and how many requests, of all and of one host, may wait.
TIMEOUT, AT_ONCE, MOST_WAITING, MOST_OF_HOST = 2.0, 4, 100, 25
#: Longest credential; credentials that are remembered: more than come in a minute.
MOST, MOST_REMEMBERED = 8192, 200_000


class MungeCredentials:
    """Decodes credentials.

    Parameters
    ----------
    settings : the socket of munged, None for the usual one.
    """

    def __init__(self, settings: Munge) -> None:
        socket = [] if settings.socket is None else [f"--socket={settings.socket}"]
        self._words = ("unmunge", "--numeric", "--keys=STATUS,ENCODE_TIME,UID", "--metadata=-", "--output=-", *socket)
        self._room = asyncio.Semaphore(AT_ONCE)
        self._waiting = BoundedRoom(MOST_WAITING, MOST_OF_HOST)
        self._seen: OrderedDict[bytes, float] = OrderedDict()

    async def user(self, credential: str, request: str, host: str) -> int | None:
        """The number of the user who made a credential for a request; None where it is not valid, or not new.

        Parameters
        ----------
        credential : as it was sent.
        request : method and path that it must be made for.
        host : that sent it: many of one host leave room for others.
        """
        if len(credential) > MOST or not self._waiting.take(host):
            return None
        try:
            async with self._room:
                decoded = await self._decoded(credential.encode())
        finally:
            self._waiting.leave(host)
        if decoded is None:
            return None
        metadata, _, held = decoded.partition(b"\n\n")
        found = dict(line.split(b":", 1) for line in metadata.splitlines() if b":" in line)
        try:
            status, made_at, user = (int(found[name].strip()) for name in (b"STATUS", b"ENCODE_TIME", b"UID"))
        except (KeyError, ValueError):
            return None
        if status or held != f"metasched {request}".encode("latin-1") or not -FUTURE <= time.time() - made_at <= LASTS:
            return None
        return user if self._is_new(credential) else None

    async def _decoded(self, credential: bytes) -> bytes | None:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
        except OSError:
            return None
        try:
            printed, _ = await asyncio.wait_for(process.communicate(credential), TIMEOUT)
        except TimeoutError:
            process.kill()
            await process.wait()
            return None
        return printed if process.returncode == 0 else None

    def _is_new(self, credential: str) -> bool:
        now, name = time.monotonic(), hashlib.sha256(credential.encode()).digest()
        while self._seen and (now - next(iter(self._seen.values())) > LASTS + FUTURE):
            self._seen.popitem(last=False)
        if name in self._seen or len(self._seen) >= MOST_REMEMBERED:
            return False
        self._seen[name] = now
        return True
