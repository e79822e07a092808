"""Routes of placements: where a job should run, the ranking of all choices, and the explanation of a placement.

A placement is answered from memory. Rankings, explanations and lists compute for some hundredths of a second and may
read the database, so they run in threads, one at a time: placements go on being answered beside them.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from metasched import __version__
from metasched.advised_placements import AdvisedPlacement, Answer, Ask
from metasched.service.advice.explanations import explain_advice, explain_answer
from metasched.service.advice.later import described, later
from metasched.service.advice.rankings import ranked
from metasched.service.api.dependencies import (
    OneAtATime,
    Reader,
    TheAdvisor,
    TheClock,
    TheClusters,
    TheLentModels,
    TheModels,
    TheQueues,
    TheStore,
    TheWrites,
    WholeDaemon,
)
from metasched.service.authentication import Client
from metasched.service.daemon import Daemon
from metasched.service.refusals import NotNowError
from metasched.service.schemas import ExplainIn, RankIn, RunningIn, Uid
from metasched.service.state.queues import Queues
from metasched.service.state.write_queue import WriteQueue
from metasched.sites.offer import FORMAT
from metasched.store.database.store import Store

router = APIRouter(prefix="/v1")


@router.post("/placements", response_model=Answer)
async def place(ask: Ask, request: Request, client: Reader) -> Response:
    """Choose where a job should run. The placement is recorded, so that it can be evaluated later.

    A trial changes nothing, so every client that may read may ask for one, but not in the name of somebody else: the
    answer depends on the limits and the past runs of the user.
    """
    daemon: Daemon = request.app.state.daemon
    if not ask.trial and not client.may("scheduler"):
        raise HTTPException(403, f"the role {client.role} may only request trials, expected scheduler")
    if not all(client.sees(name) for name in (ask.user, ask.login) if name):
        raise HTTPException(403, "what a user is advised is shown only to that user")
    if not ask.trial and not daemon.leads:
        raise NotNowError("this daemon is a follower; only the leading daemon places jobs")
    now = daemon.clock.now()
    answer = daemon.placer.answer(ask, now)
    if not ask.trial:
        daemon.metrics.placements.labels("placed" if answer.placed else "nothing").inc()
        daemon.jobs.askers.note(ask, now)
        daemon.writes.placements([AdvisedPlacement(now, ask, answer)])
    # Written out here, since the framework would validate the answer a second time.
    return Response(answer.model_dump_json(), media_type="application/json")


@router.get("/placements", response_model=list[dict[str, Any]])
async def placements(
    store: TheStore,
    queues: TheQueues,
    one: OneAtATime,
    clock: TheClock,
    client: Reader,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    job: Annotated[str | None, Query(min_length=1, max_length=64)] = None,
) -> Response:
    """The newest placements that the client may see, newest first: of their own jobs, or all for an administrator.

    Each has its ``age`` (s), for clients whose clocks are others. With ``job`` only those of the jobs of this
    number, pending, running or ended.
    """

    def found() -> Response:
        newest, now = store.placements.recent(limit, users=client.shown, job=job), clock.now()
        if job is not None:
            once = {each.uid: each for each in (*_of_queued(job, queues, store, client), *newest)}
            newest = tuple(once.values())[:limit]
        # Written out in the thread: of a thousand it takes as long as many placements.
        documents = [each.as_dict() | {"age": now - each.made_at} for each in newest]
        return Response(to_json(documents), media_type="application/json")

    async with one:
        return await run_in_threadpool(found)


@router.get("/placements/{uid}")
def placement(uid: Uid, store: TheStore, writes: TheWrites, client: Reader) -> dict[str, Any]:
    """One placement, with the outcome of its job."""
    return _found(uid, store, writes, client).as_dict()


@router.get("/placements/{uid}/explanation")
async def explanation(
    uid: Uid,
    store: TheStore,
    writes: TheWrites,
    clusters: TheClusters,
    models: TheModels,
    one: OneAtATime,
    client: Reader,
) -> dict[str, Any]:
    """One placement term by term, with the model and the loads of the time when it was made."""
    async with one:
        return await run_in_threadpool(
            lambda: explain_advice(_found(uid, store, writes, client), clusters.view, models, store)
        )


@router.post("/rankings")
async def rank(
    question: RankIn,
    advisor: TheAdvisor,
    clusters: TheClusters,
    lent_models: TheLentModels,
    clock: TheClock,
    queues: TheQueues,
    one: OneAtATime,
    client: Reader,
) -> dict[str, Any]:
    """The best resource sets, best first, as ``metasched rank --json`` answers; where there is none, ``why``."""
    if question.lent and not client.may("scheduler"):
        raise HTTPException(403, f"the role {client.role} may not lend runs, expected scheduler")
    view, now = clusters.view, clock.now()
    models = lent_models.with_runs([each.run(question.application) for each in question.lent])
    async with one:
        document = await run_in_threadpool(ranked, question, view, models, advisor, now)
        if question.later:
            waits = await run_in_threadpool(later, question, view, models, advisor, queues, now)
            document |= {"format": FORMAT, "version": __version__, "time": now, "later": waits,
                         "clusters": described(clusters, now),
                         "runs": lent_models.runs_of(question.application)}  # fmt: skip
    return document


@router.post("/running-jobs/advice")
async def advise_running_job(
    question: RunningIn, daemon: WholeDaemon, one: OneAtATime, client: Reader
) -> dict[str, Any]:
    """Whether a job that runs should move, and where; for jobs of other users the answer is 404."""
    view, now = daemon.clusters.view, daemon.clock.now()
    async with one:
        found = await run_in_threadpool(daemon.running_advisor.asked, question, view, now, client.sees)
    if found is None:
        raise HTTPException(404, f"no job {question.job} runs")
    return found.as_dict()


@router.post("/explanations")
async def explain(
    question: ExplainIn, clusters: TheClusters, models: TheModels, one: OneAtATime, client: Reader
) -> dict[str, Any]:
    """One placement of a ranking term by term, as ``metasched explain --json`` answers."""
    async with one:
        return await run_in_threadpool(explain_answer, question, clusters.view, models)


def _of_queued(job: str, queues: Queues, store: Store, client: Client) -> list[AdvisedPlacement]:
    """The placements of the pending and running jobs of a number, as far as the client may see them."""
    found = [store.placements.find(uid) for uid in queues.placements_of(job)]
    return [each for each in found if each is not None and client.sees(each.question.user)]


def _found(uid: str, store: Store, writes: WriteQueue, client: Client) -> AdvisedPlacement:
    """A placement that is stored or about to be; those of other users are reported as missing."""
    advice = writes.placement(uid) or store.placements.find(uid)
    if advice is None or not client.sees(advice.question.user):
        raise HTTPException(404, f"no placement {uid}")
    return advice
