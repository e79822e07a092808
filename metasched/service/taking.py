"""Routes by which nodes and schedulers tell what happened; each is answered once it is safely stored."""

from __future__ import annotations

import asyncio
import time
import uuid
from concurrent.futures import Future
from typing import Any

from fastapi import APIRouter, HTTPException

from metasched.placement.names import unfold
from metasched.records import Load, Run
from metasched.service.asking import Scheduler, TheDaemon, Writing
from metasched.service.messages import JobIn, LoadsIn, RunIn, RunsIn
from metasched.store.database import RecordedRun
from metasched.store.jobs import EndedJob
from monitors.sources.screening import screen

router = APIRouter(prefix="/v1")


@router.post("/loads", status_code=200)
async def take_loads(batch: LoadsIn, daemon: TheDaemon, client: Writing) -> dict[str, Any]:
    """Take some loads of one node; a sample that was sent before is not stored again.

    Samples that cannot be are left out and counted by reason; a batch of which nothing is left is refused.
    """
    if client.role == "agent" and client.node != batch.node:
        raise HTTPException(403, f"this agent may send loads of node {client.node} only")
    known, newest = daemon.knows(batch.node), daemon.board.newest(batch.node)
    screened = screen(batch.samples, time.time(), daemon.rules(batch.node), newest=newest, known=known)
    daemon.metrics.screened(screened)
    if not screened.kept:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in screened.refused.items())
        raise HTTPException(422, f"no sample of node {batch.node} can be: {reasons}")
    loads = [Load(at, batch.node, cpu, bandwidth) for at, cpu, bandwidth in screened.kept]
    await _stored(daemon.writer.loads(loads))
    daemon.board.note(loads)
    daemon.metrics.loads.inc(len(loads))
    return {"taken": len(loads), "refused": dict(screened.refused), "repaired": dict(screened.repaired)}


@router.post("/runs")
async def take_runs(batch: RunsIn, daemon: TheDaemon, client: Scheduler) -> dict[str, int]:
    """Take finished runs; those that did not fail are learned from."""
    records = [_record(run) for run in batch.runs]
    await _stored(daemon.writer.runs(records))
    for record in records:
        daemon.metrics.runs.inc()
        if record.learnable:
            daemon.models.learn(record)
    return {"taken": len(records)}


@router.post("/jobs")
def take_job(job: JobIn, daemon: TheDaemon, client: Scheduler) -> dict[str, Any]:
    """Take a finished job: its run is stored with the loads that its nodes had, and its placement's outcome noted."""
    told = job.model_dump(exclude={"nodes"})
    return daemon.jobs.take(EndedJob(**told, nodes=tuple(unfold(job.nodes, where="nodes"))))


def _record(run: RunIn) -> RecordedRun:
    told = run.model_dump(exclude={"nodes", "exit_status", "uid"})
    record = Run(**told, nodes=tuple(run.nodes))
    return RecordedRun(record, run.exit_status, run.exit_status == 0, run.uid or uuid.uuid4().hex)


async def _stored(writing: Future[None]) -> None:
    try:
        await asyncio.wrap_future(writing)
    except Exception as error:
        raise HTTPException(503, f"not stored: {error}") from None
