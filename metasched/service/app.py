"""The HTTP application: routes, the gate before them, and errors said in one line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from metasched import __version__
from metasched.records import InputError
from metasched.service.api import administration, history, models, observations, placements, sites, status
from metasched.service.api.busy_routes import BusyRoutes
from metasched.service.api.callers import Callers
from metasched.service.api.loop_lag import LoopLag
from metasched.service.api.middleware import Gate
from metasched.service.daemon import Daemon
from metasched.service.dashboard import pages
from metasched.service.refusals import NotNowError, TooMuchError
from metasched.store.errors import StoreError
from monitors.one_line import one_line

#: Characters of a field that are named.
LONGEST_NAME = 100
#: When a client should try again what the database could not do (s).
RETRY_AFTER = 5


class _Gated(FastAPI):
    """The framework behind layers of our own: it wraps each request in several, which busy routes do without."""

    def __init__(self, layers: Callable[[ASGIApp], ASGIApp], **further: Any) -> None:
        super().__init__(**further)
        self._layered = layers(super().__call__)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request through the layers; only what they leave reaches the framework."""
        scope["app"] = self
        await self._layered(scope, receive, send)


def make_app(daemon: Daemon) -> FastAPI:
    """The HTTP application of a daemon.

    The pages on which FastAPI shows the OpenAPI document load scripts from elsewhere, so they are left out; the
    document itself is at ``/v1/openapi.json``.
    """
    lag = LoopLag()
    app = _Gated(
        lambda app: Gate(Callers(BusyRoutes(app)), daemon.configuration.limits.body_bytes, daemon.metrics, lag),
        title="metasched", version=__version__, openapi_url="/v1/openapi.json", docs_url=None, redoc_url=None,
    )  # fmt: skip
    app.state.daemon, app.state.lag = daemon, lag
    for routes in (observations, placements, models, history, administration, sites, status, pages):
        app.include_router(routes.router)
    app.include_router(status.metrics)
    app.mount("/static", pages.static)
    app.add_exception_handler(RequestValidationError, _unsound)
    app.add_exception_handler(InputError, _refused)
    app.add_exception_handler(StoreError, _unavailable)
    app.add_exception_handler(NotNowError, _unavailable)
    app.add_exception_handler(TooMuchError, _too_much)
    return app


async def _unsound(_: Request, error: Exception) -> JSONResponse:
    """Name the first invalid field, in short, without its value: both may be anything, of any size."""
    assert isinstance(error, RequestValidationError)  # noqa: S101
    first = error.errors()[0]
    return _line(422, f"{'.'.join(one_line(step, LONGEST_NAME) for step in first['loc'])}: {first['msg']}")


async def _refused(_: Request, error: Exception) -> JSONResponse:
    return _line(422, str(error))


async def _unavailable(_: Request, error: Exception) -> JSONResponse:
    """The request is valid: it can be sent again once the database is available."""
    return _line(503, str(error), {"Retry-After": str(RETRY_AFTER)})


async def _too_much(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, TooMuchError)  # noqa: S101
    return _line(429, str(error), {"Retry-After": str(max(1, math.ceil(error.wait)))})


def _line(status: int, text: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"detail": text.encode("utf-8", "replace").decode()}, status, headers)
