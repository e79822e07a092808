"""Asks who sends a request before its body is read: what strangers send to the interface is neither kept nor parsed."""

from __future__ import annotations

from fastapi import Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from metasched.service.api.dependencies import somebody
from metasched.service.api.middleware import INTERFACE, WITH_BODY


class Callers:
    """Refuses requests with a body that come from nobody, or from a client that sends too many."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if scope["type"] == "http" and scope["method"] in WITH_BODY and scope["path"].startswith(INTERFACE):
            request = Request(scope)
            try:
                await somebody(request)
            except Exception as error:
                await (await refusal(request, error))(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def refusal(request: Request, error: Exception) -> Response:
    """The answer that the application has for an error; raises an error that it has none for."""
    handlers = request.app.exception_handlers
    handler = next((handlers[kind] for kind in type(error).__mro__ if kind in handlers), None)
    if handler is None:
        raise error
    response: Response = await handler(request, error)
    return response
