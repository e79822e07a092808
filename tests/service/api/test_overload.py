"""A daemon that is asked too much answers placements and puts samples off, but never all of them."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

from metasched.service.api.loop_lag import BUSY, LoopLag
from metasched.service.api.middleware import Gate
from metasched.service.metrics import Metrics
from metasched.service.state.live_clusters import LiveClusters


async def asked(gate: Gate, path: str) -> tuple[int, dict[bytes, bytes]]:
    """What a gate answers to a request without a body."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    kind = [(b"content-type", b"application/json")]
    await gate({"type": "http", "method": "POST", "path": path, "headers": kind}, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"])


def test_an_event_loop_is_not_late_before_it_was_seen_to_be() -> None:
    assert (LoopLag().seconds, LoopLag().busy) == (0.0, False)


def test_samples_wait_while_the_loop_is_late_and_placements_do_not() -> None:
    nothing: Any = SimpleNamespace(all=dict, learned=dict, waiting=0, failures=0)
    lag = LoopLag()

    async def work() -> list[int]:
        stored = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/v1/loads":
                await stored.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})

        gate = Gate(app, 1000, Metrics(LiveClusters(), nothing, nothing), lag)
        lag.seconds = 2 * BUSY
        first = asyncio.create_task(asked(gate, "/v1/loads"))
        await asyncio.sleep(0)
        status, headers = await asked(gate, "/v1/loads")
        assert headers[b"retry-after"] == b"5"
        answer = [status, (await asked(gate, "/v1/placements"))[0]]
        stored.set()
        answer += [(await first)[0], (await asked(gate, "/v1/loads"))[0]]
        stored.clear()
        lag.seconds = 0.0
        both = [asyncio.create_task(asked(gate, "/v1/loads")) for _ in range(2)]
        await asyncio.sleep(0)
        stored.set()
        return answer + [(await each)[0] for each in both]

    assert asyncio.run(work()) == [503, 200, 200, 200, 200, 200]


def test_the_lag_of_a_loop_that_is_kept_busy_is_seen_and_forgotten() -> None:
    lag = LoopLag()

    async def work() -> tuple[bool, bool]:
        watching = asyncio.create_task(lag.watch())
        await asyncio.sleep(0.05)
        for _ in range(10):
            time.sleep(0.1)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        late, end = lag.busy, time.monotonic() + 60.0
        while lag.busy and time.monotonic() < end:
            await asyncio.sleep(0.01)
        watching.cancel()
        return late, lag.busy

    assert asyncio.run(work()) == (True, False)
