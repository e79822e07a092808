"""What takes long is computed one at a time, and placements do not wait for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from tests.service.daemons import running

ASKED = {"application": "cg", "problem_size": 900}
LONG = (
    ("GET", "/", None),
    ("GET", "/v1/placements", None),
    ("POST", "/v1/rankings", ASKED),
    ("POST", "/v1/walltimes", ASKED | {"processors": 2}),
)


class Counted(asyncio.Lock):
    """A lock that counts how often it was asked for."""

    asked = 0

    async def acquire(self) -> bool:  # type: ignore[override]
        self.asked += 1
        return await super().acquire()


async def _statuses(daemon: Daemon, secret: str) -> tuple[int, list[int]]:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(make_app(daemon)), base_url="http://daemon",
        headers={"Authorization": f"Bearer {secret}"},
    ) as client:  # fmt: skip
        daemon.long_questions = lock = Counted()
        async with lock:
            waiting = [asyncio.create_task(client.request(how, path, json=asked)) for how, path, asked in LONG]
            while lock.asked < 1 + len(LONG):
                assert not any(each.done() for each in waiting)
                await asyncio.sleep(0.001)
            placed = await client.post("/v1/placements", json=ASKED)
            assert not any(each.done() for each in waiting)
        return placed.status_code, [answer.status_code for answer in await asyncio.gather(*waiting)]


def test_long_questions_wait_for_each_other_and_placements_for_none(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        secret = daemon.store.tokens.add("long", "admin")
        daemon.access.refresh()
        assert asyncio.run(_statuses(daemon, secret)) == (200, [200] * len(LONG))
