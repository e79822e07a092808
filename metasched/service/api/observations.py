"""Routes of observations: loads of nodes, runs, and ended jobs; answered after they are stored."""

from __future__ import annotations

import asyncio
import math
import secrets
from types import MappingProxyType
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query

from metasched.advised_placements import SettingsAsked
from metasched.audit import audit
from metasched.plain_numbers import number_of
from metasched.records import Run
from metasched.service.api.dependencies import (
    Admin,
    Leading,
    Reader,
    Scheduler,
    TheIntake,
    TheJobs,
    TheMetrics,
    TheModels,
    TheStore,
    TheWrites,
    Writing,
)
from metasched.service.schemas import ForgetIn, JobIn, LoadsIn, RunIn, RunsIn
from metasched.store.database.run_records import FURTHER, RecordedRun, Selection, forgotten_document, further_cells

router = APIRouter(prefix="/v1")

#: Samples on a page.
PAGE = 3600


@router.post("/loads", status_code=200, dependencies=[Leading])
async def take_loads(batch: LoadsIn, intake: TheIntake, metrics: TheMetrics, client: Writing) -> dict[str, Any]:
    """Store loads of one node; a sample that was sent before is not stored again.

    Impossible samples are rejected and counted by reason; a batch without any valid sample is refused.
    """
    if client.role == "agent" and client.node != batch.node:
        raise HTTPException(403, f"this agent may only send loads of node {client.node}")
    metrics.reported("/v1/loads", batch.unknown)
    screened = await intake.take(batch.node, batch.samples, client.name)
    if not screened.kept:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in screened.refused.items())
        raise HTTPException(422, f"no sample of node {batch.node} is valid: {reasons}")
    return {"taken": len(screened.kept), "refused": dict(screened.refused), "repaired": dict(screened.repaired)}


@router.get("/loads")
def loads(
    store: TheStore,
    client: Reader,
    node: Annotated[str, Query(min_length=1, max_length=255)],
    since: Annotated[float, Query(allow_inf_nan=False)],
    until: Annotated[float | None, Query(allow_inf_nan=False)] = None,
) -> dict[str, Any]:
    """The loads of one node over a period, oldest first, at most 3600; the next page begins after the last one."""
    found = store.loads.oldest(node, PAGE, since=since, until=until)
    columns = (found.time.tolist(), found.available_cpu.tolist(), found.available_bandwidth.tolist())
    return {"node": node, "samples": list(zip(*columns, strict=True))}


@router.get("/runs")
def runs(
    store: TheStore,
    client: Reader,
    application: Annotated[str | None, Query(min_length=1, max_length=255)] = None,
    platform: Annotated[str | None, Query(min_length=1, max_length=255)] = None,
    last: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> dict[str, Any]:
    """The newest runs that the client may see, oldest first: their own, or all for an administrator."""
    found = store.runs.all(application=application, platform=platform, last=last, users=client.shown)
    stored = store.runs.count(application=application, platform=platform, users=client.shown)
    return {"database": store.name, "stored": stored, "runs": [record.as_dict() for record in found]}


@router.post("/runs", dependencies=[Leading])
async def take_runs(
    batch: RunsIn, writes: TheWrites, models: TheModels, metrics: TheMetrics, client: Scheduler
) -> dict[str, int]:
    """Store finished runs; those that did not fail are learned."""
    records = [_record(run) for run in batch.runs]
    new = await asyncio.wrap_future(writes.runs(records))
    metrics.runs.inc(len(new))
    for record in {record.uid: record for record in records if record.uid in new}.values():
        if record.learnable:
            models.learn(record)
    return {"taken": len(records)}


@router.post("/runs/forget", dependencies=[Leading])
def forget_runs(asked: ForgetIn, models: TheModels, client: Admin) -> dict[str, Any]:
    """Exclude some runs from learning, and refit the affected models."""
    ids = None if asked.ids is None else tuple(asked.ids)
    selected = Selection(ids, asked.user, asked.since, asked.until, asked.application, asked.platform)
    found = models.forget(selected)
    audit(f"{number_of(found.runs, 'run')} forgotten", f"client {client.name}")
    return forgotten_document(found)


@router.post("/jobs", dependencies=[Leading])
def take_job(job: JobIn, jobs: TheJobs, metrics: TheMetrics, client: Scheduler) -> dict[str, Any]:
    """Store a finished job: its run with the loads of its nodes, and the outcome of its placement."""
    metrics.reported("/v1/jobs", job.unknown)
    return jobs.take(job.ended())


def _record(run: RunIn) -> RecordedRun:
    fields = run.model_dump(exclude={"nodes", "exit_status", "uid", *FURTHER, *SettingsAsked.model_fields})
    fields |= {name: math.nan for name in ("min_avg_avail_cpu", "min_avg_avail_bw") if fields[name] is None}
    extra = MappingProxyType(run.settings.cells | further_cells(run.model_dump(include=set(FURTHER))))
    record = Run(**fields, nodes=tuple(run.nodes), extra=extra)
    return RecordedRun(record, run.exit_status, run.exit_status == 0, run.uid or secrets.token_hex(16))
