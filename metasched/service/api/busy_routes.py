"""Answers the two requests that come by the hundred a second, placements and loads, without the framework's detours.

The framework routes, resolves dependencies and validates in as much time as a placement takes. Here the same functions
are called directly. Whatever is not a valid request goes the framework's way, body and all, so that there is one place
that says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metasched.advised_placements import Ask
from metasched.service.api.callers import refusal
from metasched.service.api.dependencies import READING, WRITING, leading
from metasched.service.api.observations import take_loads
from metasched.service.api.placements import place
from metasched.service.daemon import Daemon
from metasched.service.schemas import LoadsIn


async def _placement(ask: Ask, request: Request) -> Response:
    return await place(ask, request, await READING(request))


async def _loads(batch: LoadsIn, request: Request) -> Response:
    await leading(request)
    client = await WRITING(request)
    daemon: Daemon = request.app.state.daemon
    answer = await take_loads(batch, daemon.intake, daemon.metrics, client)
    return Response(to_json(answer), media_type="application/json")


@dataclass(frozen=True, slots=True)
class Busy:
    """A route that is answered here: its path, what it is asked, and what answers it."""

    path: str
    question: type[BaseModel]
    answer: Callable[[Any, Request], Awaitable[Response]]


#: All of them are POST.
BUSY: Mapping[str, Busy] = {
    each.path: each for each in (Busy("/v1/placements", Ask, _placement), Busy("/v1/loads", LoadsIn, _loads))
}


class BusyRoutes:
    """Answers :data:`BUSY`; all else, and every invalid request, is for the application behind it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have it answered."""
        busy = BUSY.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if busy is None:
            await self._app(scope, receive, send)
            return
        messages = [await receive()]
        while messages[-1]["type"] == "http.request" and messages[-1].get("more_body"):
            messages.append(await receive())
        question = _question(busy, messages)
        if question is None:
            await self._app(scope, _again(messages, receive), send)
            return
        scope["route"], request = busy, Request(scope, receive)
        try:
            response = await busy.answer(question, request)
        except Exception as error:
            response = await refusal(request, error)
        await response(scope, receive, send)


def _question(busy: Busy, messages: list[Message]) -> BaseModel | None:
    """The question in a body; None if it is incomplete or invalid."""
    try:
        body = b"".join(message["body"] for message in messages)
        return busy.question.model_validate(from_json(body))
    except (KeyError, ValueError, RecursionError, ValidationError):
        return None


def _again(messages: list[Message], receive: Receive) -> Receive:
    """Messages that were received already, then those to come."""
    waiting = iter(messages)

    async def again() -> Message:
        return next(waiting, None) or await receive()

    return again
