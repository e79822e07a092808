"""The pages: the dashboard at ``/``, and how a browser logs in.

A browser sends its token once, in a form, and is given a session's random word in a cookie that no script can read and
no other site can send. The cookie opens these pages and nothing else: the interface at ``/v1`` does not know it.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.staticfiles import StaticFiles

from metasched import __version__
from metasched.plain_numbers import span
from metasched.service.api.dependencies import OneAtATime, TheAccess, TheClient, WholeDaemon
from metasched.service.authentication import NOBODY, SESSION, Client
from metasched.service.daemon import Daemon
from metasched.service.dashboard import (
    advice_quality,
    applications,
    clusters,
    formats,
    health,
    moving,
    placements,
    simulation,
)
from metasched.service.quality.verdict import MEANINGS, next_step, verdict
from metasched.service.refusals import TooMuchError
from metasched.service.simulations import Wrong
from metasched.store.database.tokens import digest
from metasched.store.errors import StoreError

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

#: No content from other servers, no inline scripts, no framing by other sites.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with "no-referrer" our own forms would not say where they come from either
    "Cache-Control": "no-store",
}
COOKIE = "metasched_session"
#: Clusters and models that are shown in full, models in the list below them, placements, jobs that wait and that run,
#: moves, and bytes of a login.
CLUSTERS, MODELS, LISTED, PLACEMENTS, WAITING, RUNNING, MOVES, LOGIN_BYTES = 8, 6, 200, 30, 30, 10, 10, 4096

_HERE = Path(__file__).parent
static = StaticFiles(directory=_HERE / "static")


def _templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"seconds": span, "ago": formats.ago, "moment": formats.moment}
    made.globals |= {"count": formats.count, "version": __version__}
    return made


_TEMPLATES = _templates()


@router.get("/")
async def dashboard(
    request: Request,
    daemon: WholeDaemon,
    client: TheClient,
    one: OneAtATime,
    application: Annotated[str, Query(max_length=255)] = "",
    day: bool = False,
) -> Response:
    """The dashboard; clients without the right to read are redirected to the login."""
    reader = _reader(request, daemon, client)
    if reader is None:
        return RedirectResponse("/login", 303, HEADERS)

    def page() -> Response:
        shown = content(daemon, daemon.clock.now(), reader, application=application, day=day)
        return _page("dashboard.html", **shown, client=reader)

    async with one:
        return await run_in_threadpool(page)


@router.get("/simulation")
def simulation_page(
    request: Request, daemon: WholeDaemon, client: TheClient, kept: Annotated[int, Query(ge=0, le=10**12)] = 0
) -> Response:
    """The simulator: editors, and one of the stored simulations; clients without the right to read have to log in."""
    reader = _reader(request, daemon, client)
    if reader is None:
        return RedirectResponse("/login", 303, HEADERS)
    past = daemon.simulations.of(reader.name)
    chosen = next((each for each in past if each.number == kept), None)
    return _page("simulation.html", **simulation.content(None if chosen is None else chosen.asked, chosen, past))


@router.post("/simulation")
async def simulate(request: Request, daemon: WholeDaemon, client: TheClient) -> Response:
    """Run a simulation in a separate process, and show its result."""
    reader = _reader(request, daemon, client)
    if reader is None:
        return RedirectResponse("/login", 303, HEADERS)
    if _from_elsewhere(request):
        return _not_ours()
    asked, status = await run_in_threadpool(simulation.read_form, await request.body()), 200
    try:
        came = await run_in_threadpool(daemon.simulations.run, asked, reader.name, daemon.clock.now())
    except TooMuchError as error:
        came, status = Wrong(str(error)), 429
    if status == 200 and isinstance(came, Wrong):
        status = 422
    return _page("simulation.html", status, **simulation.content(asked, came, daemon.simulations.of(reader.name)))


def _reader(request: Request, daemon: Daemon, client: Client) -> Client | None:
    """The client of a page, by token, socket or session; None if it may not read."""
    if client is NOBODY:
        client = daemon.access.client_of_session(request.cookies.get(COOKIE, ""))
    return client if client.may("reader", "scheduler") else None


def _from_elsewhere(request: Request) -> bool:
    """Whether a form was sent by another site, or one that does not say which; only browsers say it at all."""
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != request.headers.get("host")


def _not_ours() -> Response:
    return _page("login.html", 403, wrong="The form was sent by another site.")


@router.get("/login")
async def ask_for_token(client: TheClient) -> Response:
    """The form that asks for a token."""
    return _page("login.html", wrong="")


@router.post("/login")
async def log_in(request: Request, access: TheAccess, client: TheClient) -> Response:
    """Begin a session with a token that may read."""
    if _from_elsewhere(request):
        return _not_ours()
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LOGIN_BYTES:  # The rest is not kept: it comes from strangers.
            break
    fields = parse_qs(body[:LOGIN_BYTES].decode("utf-8", "replace"))
    kept = digest(fields.get("token", [""])[0].strip())
    if not access.known.client_of_digest(kept).may("reader", "scheduler"):
        return _page("login.html", 401, wrong="This token is not known, or may not read.")
    answer = RedirectResponse("/", 303, HEADERS)
    answer.set_cookie(
        COOKIE, access.sessions.begin(kept), max_age=int(SESSION), path="/", httponly=True, samesite="strict",
        secure=request.url.scheme == "https",
    )  # fmt: skip
    return answer


@router.post("/logout")
async def log_out(request: Request, access: TheAccess, client: TheClient) -> Response:
    """End the session and forget its cookie."""
    if _from_elsewhere(request):
        return _not_ours()
    access.sessions.end(request.cookies.get(COOKIE, ""))
    answer = RedirectResponse("/login", 303, HEADERS)
    answer.delete_cookie(COOKIE, path="/")
    return answer


def prepare(daemon: Daemon) -> None:
    """Have what takes long of the first page computed before it is asked for: the lists of models, a second each."""
    for key in applications.in_order(daemon.models, "")[:MODELS]:
        applications.shown(*key, daemon.models)


def content(daemon: Daemon, now: float, client: Client, *, application: str = "", day: bool = False) -> dict[str, Any]:
    """The contents of the dashboard, from memory except for the newest placements: those that the client may see."""
    partitions = sorted(daemon.clusters.view.partitions, key=lambda each: each.state.name)
    models = daemon.models
    order = applications.in_order(models, application)
    report, mode = daemon.jobs.ledger.report(), daemon.mode.mode
    running = daemon.running_advisor.identified(daemon.clusters.view, client.sees)
    moves = [each for each in daemon.moves.made if client.sees(each.advice.question.user)]
    choice = daemon.configuration.energy
    judged, unread = verdict(report.overall, choice), ""
    try:
        newest = daemon.store.placements.recent(PLACEMENTS, users=client.shown)
    except StoreError as error:
        newest, unread = (), str(error)
    return {
        "now": now,
        "up": now - daemon.started_at,
        "mode": mode,
        "meaning": MEANINGS[mode],
        "configured": daemon.mode.configured,
        "checks": list(health.checks(daemon, now)),
        "figures": list(advice_quality.figures(report.overall)),
        "judged": judged,
        "next": next_step(mode, judged),
        "parts": advice_quality.parts(report, choice),
        "hidden_parts": max(0, len(report.parts) - advice_quality.LISTED),
        "day": day,
        "clusters": [clusters.shown(each, daemon.history, day=day) for each in partitions[:CLUSTERS]],
        "other_clusters": [each.state.name for each in partitions[CLUSTERS : CLUSTERS + LISTED]],
        "application": application,
        "models": [applications.shown(*key, models) for key in order[:MODELS]],
        "other_models": [applications.summary(*key, models) for key in islice(order, MODELS, MODELS + LISTED)],
        "hidden_models": max(0, len(order) - MODELS - LISTED),
        "waiting": daemon.queues.waiting(now, client.sees)[:WAITING],
        "running": [moving.running(each, daemon, now) for each in running[:RUNNING]],
        "hidden_running": max(0, len(running) - RUNNING),
        "moves": [moving.moved(each) for each in moves[:MOVES]],
        "paid": sum(each.paid is True for each in moves),
        "regretted": sum(each.paid is False for each in moves),
        "moving": daemon.configuration.moving.act and mode == "act",
        "placements": [placements.shown(each) for each in newest],
        "unread": unread,
    }


def _page(name: str, status: int = 200, **values: Any) -> Response:
    return HTMLResponse(_TEMPLATES.get_template(name).render(**values), status, HEADERS)
