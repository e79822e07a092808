"""Dependencies of routes: a client with the required role and within its rate, and parts of the daemon."""

from __future__ import annotations

from asyncio import Lock
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request, Security
from fastapi.security import HTTPBearer

from metasched.service.advice.advisor import Placer
from metasched.service.api.slow_clients import PEER_SCOPE, Peer
from metasched.service.authentication import NOBODY, Access, Client, local_client
from metasched.service.clock import Clock
from metasched.service.daemon import Daemon
from metasched.service.learning.finished_jobs import EndedJobs
from metasched.service.load_intake import LoadIntake
from metasched.service.metrics import Metrics
from metasched.service.refusals import NotNowError, TooMuchError
from metasched.service.state.job_history import JobHistory
from metasched.service.state.lent_models import LentModels
from metasched.service.state.live_clusters import LiveClusters
from metasched.service.state.mode_switch import ModeSwitch
from metasched.service.state.models import Models
from metasched.service.state.queues import Queues
from metasched.service.state.sized_jobs import SizedJobs
from metasched.service.state.write_queue import WriteQueue
from metasched.sites.grid import Sites
from metasched.store.database.store import Store
from metasched.store.roles import Role

#: Set in the scope of a request whose client is known.
CLIENT_SCOPE = "metasched.client"


def _part(name: str) -> Any:
    """A dependency on one part of the application's daemon."""

    async def part(request: Request) -> Any:
        return getattr(request.app.state.daemon, name)

    return Depends(part)


async def _daemon(request: Request) -> Any:
    return request.app.state.daemon


#: The whole daemon, for the status and the dashboard.
WholeDaemon = Annotated[Daemon, Depends(_daemon)]
TheAccess = Annotated[Access, _part("access")]
TheStore = Annotated[Store, _part("store")]
TheClusters = Annotated[LiveClusters, _part("clusters")]
TheModels = Annotated[Models, _part("models")]
TheLentModels = Annotated[LentModels, _part("lent_models")]
TheWrites = Annotated[WriteQueue, _part("writes")]
TheMetrics = Annotated[Metrics, _part("metrics")]
TheIntake = Annotated[LoadIntake, _part("intake")]
TheJobs = Annotated[EndedJobs, _part("jobs")]
TheHistory = Annotated[JobHistory, _part("job_history")]
TheSizedJobs = Annotated[SizedJobs, _part("sized_jobs")]
TheQueues = Annotated[Queues, _part("queues")]
TheAdvisor = Annotated[Placer, _part("placer")]
TheSites = Annotated[Sites, _part("sites")]
TheMode = Annotated[ModeSwitch, _part("mode")]
TheClock = Annotated[Clock, _part("clock")]
#: Lock of longer computations, one at a time, so that placements are still answered.
OneAtATime = Annotated[Lock, _part("long_questions")]


async def client_of(request: Request) -> Client:
    """The client of a request, unless it sends too many; a request counts once, however often this is asked."""
    known: Client | None = request.scope.get(CLIENT_SCOPE)
    if known is not None:
        return known
    access: Access = request.app.state.daemon.access
    authorization, host = request.headers.get("authorization"), request.client.host if request.client else "?"
    client = access.known.client(authorization)
    if client is NOBODY and authorization:
        client = await access.other(authorization, sent(request), host)
    peer: Peer | None = request.scope.get(PEER_SCOPE)
    # Who shows a token that nobody has any more would else be a reader without a word.
    if not authorization and peer is not None:
        client = local_client(peer.user, peer.groups)
    name = client.name if client is not NOBODY else f"anonymous client at {host}"
    if wait := access.buckets.wait(name):
        raise TooMuchError("too many requests", wait)
    request.scope[CLIENT_SCOPE] = client
    return client


async def somebody(request: Request) -> Client:
    """The client of a request, which has a role."""
    client = await client_of(request)
    if client.role is None:
        challenges = request.app.state.daemon.access.challenges
        shown = "the token is not valid" if request.headers.get("authorization") else "a token is required"
        raise HTTPException(401, shown, {"WWW-Authenticate": challenges})
    return client


def sent(request: Request) -> str:
    """Method and path of a request with its query, as the client sent them."""
    path, query = request.scope.get("raw_path") or b"", request.scope.get("query_string") or b""
    return f"{request.method} {(path + (b'?' + query if query else b'')).decode('latin-1')}"


TheClient = Annotated[Client, Depends(client_of)]


class Allowed(HTTPBearer):
    """A dependency that admits clients of some roles, and admins; a single step, since each costs time."""

    def __init__(self, *roles: Role) -> None:
        super().__init__(scheme_name="HTTPBearer", description="A token made by `metasched token add`.")
        self._roles = roles

    async def __call__(self, request: Request) -> Client:  # type: ignore[override]
        """The client, if its role allows the request."""
        client = await somebody(request)
        if not client.may(*self._roles):
            roles = " or ".join(self._roles)
            raise HTTPException(
                403, f"the role {client.role} may not do this, expected a token of the role {roles} ($METASCHED_TOKEN)"
            )
        return client


async def leading(request: Request) -> None:
    """Refuse the request unless this daemon leads."""
    if not request.app.state.daemon.leads:
        raise NotNowError("this daemon is a follower; only the leading daemon stores data")


#: Of routes that store something: a daemon that follows another refuses it for now.
Leading = Depends(leading)

READING, WRITING = Allowed("reader", "scheduler"), Allowed("agent", "scheduler")
Reader = Annotated[Client, Security(READING)]
Scheduler = Annotated[Client, Security(Allowed("scheduler"))]
Writing = Annotated[Client, Security(WRITING)]
OfSite = Annotated[Client, Security(Allowed("site"))]
Admin = Annotated[Client, Security(Allowed("admin"))]
