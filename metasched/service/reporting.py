"""Routes that tell what the daemon knows: applications, clusters, models, loads, placements, health, metrics."""

from __future__ import annotations

import time
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Response
from prometheus_client import CONTENT_TYPE_LATEST

from metasched import __version__
from metasched.service import administering
from metasched.service.asking import Reader, TheClient, TheDaemon
from metasched.service.daemon import Daemon
from metasched.service.verdict import next_step, verdict

router = APIRouter(prefix="/v1")
metrics = APIRouter()

#: How old the view of placements may be before the daemon calls itself unwell, in periods.
LATE = 10.0
#: Samples on a page.
PAGE = 3600
#: Applications and clusters whose advice is told of by themselves, those with the most jobs.
PARTS = 200


@router.get("/health")
async def health(daemon: TheDaemon, client: TheClient) -> dict[str, Any]:
    """Whether the daemon is well; open to all, so it tells no more than that."""
    late = time.time() - daemon.board.view.made_at > LATE * daemon.configuration.periods.loads
    return {"status": "late" if late else "ok", "version": __version__, "mode": daemon.configuration.mode}


@router.get("/status")
def status(daemon: TheDaemon, client: Reader) -> dict[str, Any]:
    """What the daemon does and knows, and how good its advice was or would have been."""
    now, models = time.time(), daemon.models.all()
    return {
        "version": __version__,
        **administering.told(daemon),
        "up": now - daemon.started_at,
        "database": daemon.store.name,
        "partitions": len(daemon.board.view.partitions),
        "sources": {name: now - seen for name, seen in daemon.board.seen_at.items()},
        "nodes_with_loads": len(daemon.board.latest),
        "models": len(models),
        "runs_to_learn": daemon.models.waiting,
        "learning_failures": daemon.models.failures,
        **_advice(daemon),
    }


def _advice(daemon: Daemon) -> dict[str, Any]:
    """How good the advice was or would have been, what to make of it, and the same of each application and cluster."""
    report, mode = daemon.jobs.ledger.report(), daemon.configuration.mode
    judged = verdict(report.overall)
    return {
        "quality": report.overall.as_dict(),
        "verdict": judged.as_dict(),
        "next_step": next_step(mode, judged).as_dict(),
        "by_application": [
            {"application": application, "cluster": cluster, **part.as_dict(), "verdict": verdict(part).as_dict()}
            for (application, cluster), part in islice(report.parts.items(), PARTS)
        ],
        "more_applications": max(0, len(report.parts) - PARTS),
    }


@router.get("/applications")
async def applications(daemon: TheDaemon, client: Reader) -> list[dict[str, Any]]:
    """The applications that are known, with the platforms that there are models of."""
    known: dict[str, dict[str, int]] = {}
    for (application, platform), predictor in daemon.models.all().items():
        known.setdefault(application, {})[platform] = predictor.window.seen
    return [{"application": name, "runs": runs} for name, runs in sorted(known.items())]


@router.get("/clusters")
async def clusters(daemon: TheDaemon, client: Reader) -> list[dict[str, Any]]:
    """The partitions, with what each of their nodes has to spare now."""
    view = daemon.board.view
    return [
        {
            "cluster": each.state.name,
            "scheduler": each.scheduler,
            "partition": each.name,
            "platform": each.platform,
            "time_limit": each.time_limit,
            "nodes": [
                {
                    "node": node,
                    "processors": processors,
                    "available_cpu": cpu,
                    "available_bandwidth": bandwidth,
                    "up": up,
                    "age": age,
                }
                for node, processors, cpu, bandwidth, up, age in zip(
                    each.state.nodes,
                    each.state.processors.tolist(),
                    each.state.available_cpu.tolist(),
                    each.state.available_bandwidth.tolist(),
                    each.state.up.tolist(),
                    each.state.age.tolist(),
                    strict=True,
                )
            ],
        }
        for each in view.partitions
    ]


@router.get("/loads")
def loads(
    daemon: TheDaemon,
    client: Reader,
    node: Annotated[str, Query(min_length=1, max_length=255)],
    since: Annotated[float, Query(allow_inf_nan=False)],
    until: Annotated[float | None, Query(allow_inf_nan=False)] = None,
) -> dict[str, Any]:
    """The loads of one node over some time, the oldest first, at most 3600: the next page begins after the last."""
    found = daemon.store.first_loads(node, PAGE, since=since, until=until)
    columns = (found.time.tolist(), found.available_cpu.tolist(), found.available_bandwidth.tolist())
    return {"node": node, "samples": list(zip(*columns, strict=True))}


@router.get("/placements")
def placements(
    daemon: TheDaemon, client: Reader, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> list[dict[str, Any]]:
    """The newest placements, newest first, each with what became of its job."""
    return [each.as_dict() for each in daemon.placements.recent(limit)]


@router.get("/models")
def models(daemon: TheDaemon, client: Reader) -> list[dict[str, Any]]:
    """The saved models with their newest versions."""
    return [
        {"application": application, "cluster": cluster, "version": version, "saved_at": saved_at}
        for application, cluster, version, saved_at in daemon.store.models()
    ]


@router.get("/models/{application}/{cluster}")
def model(
    application: str,
    cluster: str,
    daemon: TheDaemon,
    client: Reader,
    version: Annotated[int | None, Query(ge=1, le=2_147_483_647)] = None,
) -> dict[str, Any]:
    """One saved model, as the document that ``metasched predict`` reads."""
    if not any((application, cluster) == known[:2] for known in daemon.store.models()):
        raise HTTPException(404, f"no model of {application} on {cluster}")
    return daemon.store.load_model(application, cluster, version)


@metrics.get("/metrics")
async def exposition(daemon: TheDaemon, client: Reader) -> Response:
    """All metrics in Prometheus' text format."""
    return Response(daemon.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)
