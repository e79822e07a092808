"""The outermost layer around the application: sizes of requests, and how long each took."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metasched.service.metrics import Metrics


class TooLargeError(Exception):
    """A request's body is larger than allowed."""


class Gate:
    """Refuses bodies that are too large, whether they say so or not, and counts requests.

    Parameters
    ----------
    app : what is behind the gate.
    most_bytes : largest body.
    metrics : where requests are counted.
    """

    def __init__(self, app: ASGIApp, most_bytes: int, metrics: Metrics) -> None:
        self._app, self._most_bytes, self._metrics = app, most_bytes, metrics

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
            if refused:  # The application took the exception for a broken connection: it answers something else.
                raise TooLargeError
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        told = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        try:
            if told.isdigit() and int(told[:20]) > self._most_bytes:
                raise TooLargeError
            await self._app(scope, counted, noted)
        except TooLargeError:
            status = 413
            await _refuse(send, self._most_bytes)
        finally:
            # The path of the route, not of the request: names in it would make a series for each.
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(scope["method"] if route != "other" else "", route, str(status)).inc()
            self._metrics.latency.labels(route).observe(time.perf_counter() - began)


async def _refuse(send: Send, most_bytes: int) -> None:
    body = b'{"detail":"the request is larger than %d bytes"}' % most_bytes
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
