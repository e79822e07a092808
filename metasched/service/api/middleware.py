"""The outermost layer around the application: sizes and kinds of requests, and how long each took."""

from __future__ import annotations

import time
from collections.abc import Mapping

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metasched.service.api.loop_lag import LoopLag
from metasched.service.metrics import Metrics

#: Methods of requests with a body.
WITH_BODY = ("POST", "PUT", "PATCH")
#: What the paths of the interface begin with, and where agents send their samples.
INTERFACE, LOADS = "/v1/", "/v1/loads"


class TooLargeError(Exception):
    """A request's body is larger than allowed."""


class Gate:
    """Refuses bodies that are too large, declared or not, or not declared as JSON, and counts requests.

    A page of another site can have a browser send a form or plain text, but not JSON. While the event loop is late,
    samples are taken one batch at a time, so that placements need not wait for them: agents keep what is put off.

    Parameters
    ----------
    app : what is behind the gate.
    most_bytes : largest body.
    metrics : where requests are counted.
    lag : of the event loop.
    """

    def __init__(self, app: ASGIApp, most_bytes: int, metrics: Metrics, lag: LoopLag) -> None:
        self._app, self._most_bytes, self._metrics, self._lag = app, most_bytes, metrics, lag
        self._batches = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, left, refused = time.perf_counter(), 500, self._most_bytes, False

        async def counted() -> Message:
            nonlocal left, refused
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                refused = True
                raise TooLargeError
            return message

        async def noted(message: Message) -> None:
            nonlocal status
            if refused:  # The application treated the exception as a broken connection, and answers something else.
                raise TooLargeError
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        heads = dict(scope["headers"])
        length = heads.get(b"content-length", b"0")
        try:
            if length.isdigit() and int(length[:20]) > self._most_bytes:
                raise TooLargeError
            if scope["method"] in WITH_BODY and scope["path"].startswith(INTERFACE) and not _is_json(heads):
                await _refuse(
                    noted, 415, b"the request is not said to be JSON, expected Content-Type: application/json"
                )
            elif scope["path"] == LOADS and scope["method"] == "POST":
                if self._batches and self._lag.busy:
                    await _refuse(noted, 503, b"too busy for samples, send them again later")
                else:
                    self._batches += 1
                    try:
                        await self._app(scope, counted, noted)
                    finally:
                        self._batches -= 1
            else:
                await self._app(scope, counted, noted)
        except TooLargeError:
            status = 413
            await _refuse(send, 413, b"the request is larger than %d bytes" % self._most_bytes)
        except ClientDisconnect:  # There is nobody to answer.
            status = 400
        finally:
            # The path of the route, not of the request: names in it would make a series for each.
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if route != "other" else ""
            self._metrics.answered(method, route, status, time.perf_counter() - began)


def _is_json(heads: Mapping[bytes, bytes]) -> bool:
    return heads.get(b"content-type", b"").partition(b";")[0].strip().lower() == b"application/json"


async def _refuse(send: Send, status: int, why: bytes) -> None:
    body = b'{"detail":"%s"}' % why
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    headers.append((b"retry-after", b"5") if status == 503 else (b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
