"""The HTTP application: routes, the gate before them, and errors said in one line."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from metasched import __version__
from metasched.records import InputError
from metasched.service import administering, answering, consulting, limiting, reporting, taking
from metasched.service.daemon import Daemon
from metasched.service.dashboard import pages
from metasched.service.gate import Gate


def make_app(daemon: Daemon) -> FastAPI:
    """The application that speaks for a daemon.

    The pages on which FastAPI shows the OpenAPI document load scripts from elsewhere, so they are left out; the
    document itself is at ``/v1/openapi.json``.
    """
    app = FastAPI(title="metasched", version=__version__, openapi_url="/v1/openapi.json", docs_url=None, redoc_url=None)
    app.state.daemon = daemon
    routes = (taking, answering, consulting, limiting, administering, reporting, pages)
    for router in (*(each.router for each in routes), reporting.metrics):
        app.include_router(router)
    app.mount("/static", pages.static)
    app.add_middleware(Gate, most_bytes=daemon.configuration.limits.body_bytes, metrics=daemon.metrics)
    app.add_exception_handler(RequestValidationError, _unsound)
    app.add_exception_handler(InputError, _refused)
    return app


async def _unsound(_: Request, error: Exception) -> JSONResponse:
    """Name the first field that is wrong. The value is left out: it may be anything, of any size."""
    assert isinstance(error, RequestValidationError)  # noqa: S101
    first = error.errors()[0]
    return _line(422, f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}")


async def _refused(_: Request, error: Exception) -> JSONResponse:
    return _line(422, str(error))


def _line(status: int, text: str) -> JSONResponse:
    return JSONResponse({"detail": text.encode("utf-8", "replace").decode()}, status)
