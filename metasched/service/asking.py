"""What every route needs to know of a request: the daemon, and a client that may ask this and not too often."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, cast

from fastapi import Depends, HTTPException, Request, Security
from fastapi.security import HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from metasched.service.access import LOCAL, NOBODY, Client
from metasched.service.daemon import Daemon
from metasched.store.tokens import Role

#: Set in the scope of a request that came by the Unix socket.
LOCAL_SCOPE = "metasched.local"

_bearer = HTTPBearer(auto_error=False, description="A token made by `metasched token add`.")


async def daemon_of(request: Request) -> Daemon:
    """The daemon that the application belongs to."""
    return cast(Daemon, request.app.state.daemon)


TheDaemon = Annotated[Daemon, Depends(daemon_of)]


async def client_of(
    request: Request,
    daemon: TheDaemon,
    _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)] = None,
) -> Client:
    """Whoever is asking, unless too often."""
    client = daemon.doorkeeper.recognise(request.headers.get("authorization"))
    if client is NOBODY and request.scope.get(LOCAL_SCOPE):
        client = LOCAL
    name = client.name if client is not NOBODY else f"nobody at {request.client.host if request.client else '?'}"
    if wait := daemon.buckets.wait(name):
        raise HTTPException(429, "too many requests", {"Retry-After": str(max(1, round(wait)))})
    return client


TheClient = Annotated[Client, Depends(client_of)]


def allowed(*roles: Role) -> Callable[[Client], Awaitable[Client]]:
    """A dependency that lets clients of some roles pass, and admins."""

    async def check(client: TheClient) -> Client:
        if client.role is None:
            raise HTTPException(401, "a token is needed", {"WWW-Authenticate": 'Basic realm="metasched"'})
        if not client.may(*roles):
            raise HTTPException(403, f"the role {client.role} may not do this, expected {' or '.join(roles)}")
        return client

    return check


Reader = Annotated[Client, Depends(allowed("reader", "scheduler"))]
Scheduler = Annotated[Client, Depends(allowed("scheduler"))]
Writing = Annotated[Client, Depends(allowed("agent", "scheduler"))]
Admin = Annotated[Client, Depends(allowed("admin"))]
