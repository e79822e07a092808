"""What every route needs to know of a request: the daemon, and a client that may ask this and not too often."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, HTTPException, Request, Security
from fastapi.security import HTTPBearer

from metasched.service.access import LOCAL, NOBODY, Client
from metasched.service.daemon import Daemon
from metasched.store.tokens import Role

#: Set in the scope of a request that came by the Unix socket.
LOCAL_SCOPE = "metasched.local"


async def daemon_of(request: Request) -> Daemon:
    """The daemon that the application belongs to."""
    return cast(Daemon, request.app.state.daemon)


TheDaemon = Annotated[Daemon, Depends(daemon_of)]


async def client_of(request: Request) -> Client:
    """Whoever is asking, unless too often."""
    daemon: Daemon = request.app.state.daemon
    client = daemon.doorkeeper.recognise(request.headers.get("authorization"))
    if client is NOBODY and request.scope.get(LOCAL_SCOPE):
        client = LOCAL
    name = client.name if client is not NOBODY else f"nobody at {request.client.host if request.client else '?'}"
    if wait := daemon.buckets.wait(name):
        raise HTTPException(429, "too many requests", {"Retry-After": str(max(1, round(wait)))})
    return client


TheClient = Annotated[Client, Depends(client_of)]


class Allowed(HTTPBearer):
    """A dependency that lets clients of some roles pass, and admins; one step, since each costs every request."""

    def __init__(self, *roles: Role) -> None:
        super().__init__(scheme_name="HTTPBearer", description="A token made by `metasched token add`.")
        self._roles = roles

    async def __call__(self, request: Request) -> Client:  # type: ignore[override]
        """The client, where it may ask this."""
        client = await client_of(request)
        if client.role is None:
            raise HTTPException(401, "a token is needed", {"WWW-Authenticate": 'Basic realm="metasched"'})
        if not client.may(*self._roles):
            raise HTTPException(403, f"the role {client.role} may not do this, expected {' or '.join(self._roles)}")
        return client


Reader = Annotated[Client, Security(Allowed("reader", "scheduler"))]
Scheduler = Annotated[Client, Security(Allowed("scheduler"))]
Writing = Annotated[Client, Security(Allowed("agent", "scheduler"))]
Admin = Annotated[Client, Security(Allowed("admin"))]
