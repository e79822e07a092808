"""Clients at a fixed pace: each question has its time, and counts from it, whether or not the last one is answered."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from benchmarks.load.site import APPLICATIONS, COUNTS, NODES, application, node

#: Samples that a node sends at once, and how often (s): five a second from each of a thousand nodes.
TOGETHER, EVERY = 50, 10.0
#: Connections that stay open for placements and for loads.
ASKING, SENDING = 8, 64


@dataclass
class Answers:
    """What came of one kind of request: seconds from when it was due, and how many were not answered with 200.

    ``put_off`` counts those that were to be sent again later, as ``Retry-After`` said.
    """

    seconds: list[float] = field(default_factory=list)
    refused: int = 0
    put_off: int = 0


class Connection:
    """One connection that stays open, for one request at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._reader: asyncio.StreamReader | None = None
        self._writes: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: bytes) -> tuple[int, bool]:
        """Send one request and read its whole answer; return its status, and whether it says when to try again."""
        if self._reader is None or self._writes is None:
            self._reader, self._writes = await asyncio.open_unix_connection(self._path)
        self._writes.write(
            b"POST %s HTTP/1.1\r\nHost: d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (path.encode(), len(body), body)
        )
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int((lower := head.lower()).partition(b"content-length:")[2].partition(b"\r\n")[0])
        await self._reader.readexactly(length)
        return int(head[9:12]), b"\r\nretry-after:" in lower


async def paced(
    rate: float, until: float, free: list[Connection], expected: Answers, make: Callable[[], tuple[str, bytes]]
) -> None:
    """Send so many requests a second until a time (of the loop), each by a connection that is free."""
    loop = asyncio.get_running_loop()
    idle: asyncio.Queue[Connection] = asyncio.Queue()
    for connection in free:
        idle.put_nowait(connection)
    running: set[asyncio.Task[None]] = set()
    due = loop.time()

    async def one(at: float, connection: Connection) -> None:
        path, body = make()
        status, later = await connection.post(path, body)
        expected.seconds.append(loop.time() - at)
        expected.refused += status != 200 and not later
        expected.put_off += status != 200 and later
        idle.put_nowait(connection)

    while due < until:
        await asyncio.sleep(max(0.0, due - loop.time()))
        task = asyncio.create_task(one(due, await idle.get()))
        running.add(task)
        task.add_done_callback(running.discard)
        due += 1.0 / rate
    await asyncio.gather(*running)


class Questions:
    """Questions for placements, of any application and size, on up to so many processors."""

    def __init__(self) -> None:
        self._draw = random.Random(11)

    def __call__(self) -> tuple[str, bytes]:
        """The next one."""
        draw = self._draw
        asked = {
            "application": application(draw.randrange(APPLICATIONS)),
            "problem_size": draw.uniform(200, 4000),
            "max_processors": draw.choice(COUNTS),
        }
        return "/v1/placements", json.dumps(asked).encode()


class Batches:
    """Batches of loads, node after node."""

    def __init__(self) -> None:
        self._draw, self._next = random.Random(13), 0

    def __call__(self) -> tuple[str, bytes]:
        """The next node's batch."""
        draw, name = self._draw, node(self._next)
        self._next = (self._next + 1) % NODES
        now, step, cpu = time.time(), EVERY / TOGETHER, draw.uniform(0.2, 1.0)
        samples = [
            [round(now - step * (TOGETHER - k), 3), round(min(1.0, cpu * draw.uniform(0.95, 1.05)), 4), 900.0]
            for k in range(TOGETHER)
        ]
        return "/v1/loads", json.dumps({"node": name, "samples": samples}).encode()


async def load(
    socket: str, placements: float, samples: float, seconds: float, watch: Callable[[], None]
) -> tuple[Answers, Answers]:
    """Put the daemon under load for some seconds.

    Parameters
    ----------
    socket : its Unix socket.
    placements, samples : so many a second.
    seconds : for how long.
    watch : called once a second.
    """
    asked, sent = Answers(), Answers()
    until = asyncio.get_running_loop().time() + seconds

    async def watching() -> None:
        while asyncio.get_running_loop().time() < until:
            watch()
            await asyncio.sleep(1.0)

    work: list[Awaitable[None]] = [watching()]
    if placements:
        work.append(paced(placements, until, [Connection(socket) for _ in range(ASKING)], asked, Questions()))
    if samples:
        work.append(paced(samples / TOGETHER, until, [Connection(socket) for _ in range(SENDING)], sent, Batches()))
    await asyncio.gather(*work)
    return asked, sent
