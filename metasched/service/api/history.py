"""Routes of job history: problem sizes that jobs state, run times of jobs without one, and waits in the queues."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query
from starlette.concurrency import run_in_threadpool

from metasched.audit import audit
from metasched.history.argument_numbers import merged
from metasched.service.api.dependencies import (
    Admin,
    Leading,
    OneAtATime,
    Reader,
    Scheduler,
    TheClock,
    TheHistory,
    TheQueues,
    TheSizedJobs,
)
from metasched.service.authentication import Client
from metasched.service.refusals import NotNowError
from metasched.service.schemas import ExpectIn, ForgetUserIn, StatedIn, WaitIn
from metasched.service.state.job_history import JobHistory
from metasched.service.state.sized_jobs import SizedJobs

router = APIRouter(prefix="/v1")

#: Jobs on a page.
MOST = 1000

ClusterQuery = Annotated[str | None, Query(max_length=255)]


@router.get("/problem-sizes")
def sized_names(sized: TheSizedJobs, client: Scheduler) -> dict[str, list[str]]:
    """The names of jobs that may state their problem size, as hooks tell names, with ``#`` for each number."""
    return {"names": sized.names}


@router.post("/problem-sizes")
def problem_size(stated: StatedIn, sized: TheSizedJobs, client: Scheduler) -> dict[str, str | float | None]:
    """The application and the problem size of a job by the numbers that it states; null where it states none."""
    mark = sized.mark(stated.name, merged(stated.script or "", stated.arguments), script=stated.script is not None)
    application, size = (None, None) if mark is None else (mark.application, mark.problem_size)
    return {"application": application, "problem_size": size}


@router.post("/history/predictions")
def expect(
    question: ExpectIn, history: TheHistory, sized: TheSizedJobs, clock: TheClock, client: Reader
) -> dict[str, Any]:
    """Predict the run time of a job at its submission; users see only what follows from their own jobs."""
    _check_own(question.user, client)
    return _expected(question, history, sized, clock.now())


@router.post("/history/forget", dependencies=[Leading])
def forget(asked: ForgetUserIn, history: TheHistory, client: Admin) -> dict[str, int]:
    """Delete the past jobs of a user."""
    forgotten = history.forget([asked.user])
    audit(f"{forgotten} past jobs of a user forgotten", f"client {client.name}")
    return {"forgotten": forgotten}


@router.get("/waits")
def waits(queues: TheQueues, clock: TheClock, client: Reader, cluster: ClusterQuery = None) -> list[dict[str, Any]]:
    """The waits of jobs in the queues that the client may see: their own, or all for an administrator."""
    if cluster is not None and not queues.heard(cluster):
        raise NotNowError(f"no queue of {cluster} is known yet")
    return queues.waiting(clock.now(), client.sees, cluster)[:MOST]


@router.get("/waits/{job}")
def wait_of_job(
    job: Annotated[str, Path(max_length=64)], queues: TheQueues, clock: TheClock, client: Reader,
    cluster: ClusterQuery = None,
) -> dict[str, Any]:  # fmt: skip
    """The wait of one job; for jobs of other users the answer is 404, and 503 before any queue is known."""
    found = queues.job(job, clock.now(), cluster, client.sees)
    if found is None and not queues.heard(cluster):
        raise NotNowError(f"no queue of {cluster or 'any scheduler'} is known yet")
    if found is None:
        raise HTTPException(404, f"no job {job} in the queue")
    return found


@router.post("/waits")
async def wait_of_one_more(
    question: WaitIn,
    queues: TheQueues,
    history: TheHistory,
    sized: TheSizedJobs,
    clock: TheClock,
    one: OneAtATime,
    client: Reader,
) -> dict[str, Any]:
    """The wait of a job that is not submitted yet, and its predicted run time."""

    def answer() -> dict[str, Any]:
        limit, run_time, reason = question.requested_time, question.requested_time, "its time limit"
        there = queues.scheduler_of(question.partition, question.cluster)
        if question.user and history.knows(there):
            _check_own(question.user, client)
            found = _expected(question.model_copy(update={"cluster": there}), history, sized, clock.now())
            run_time, reason = found["run_time"], found["reason"]
        waits = queues.one_more(question.partition, question.processors, limit, there)
        return waits | {"requested_time": limit, "run_time": run_time, "reason": reason}

    async with one:
        return await run_in_threadpool(answer)


def _expected(question: ExpectIn, history: JobHistory, sized: SizedJobs, now: float) -> dict[str, Any]:
    """The predicted run time of a job: from its history, or from a model if the job states its problem size."""
    found = history.predict(
        question.user, question.processors, question.requested_time, now, cluster=question.cluster, name=question.name,
        executable=question.executable, partition=question.partition, account=question.account,
    )  # fmt: skip
    return sized.predict(
        found, question.name, question.processors, numbers=question.numbers, cluster=question.cluster,
        partition=question.partition or history.usual(question.user, question.cluster)[0], user=question.user,
    )  # fmt: skip


def _check_own(user: str, client: Client) -> None:
    if not client.sees(user):
        raise HTTPException(403, "predictions from a user's jobs are shown only to that user")
