"""Routes of the daemon itself: health, status, the clusters as they are now, and metrics."""

from __future__ import annotations

import math
from dataclasses import asdict
from itertools import islice
from typing import Any

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST

from metasched import __version__
from metasched.service.api.dependencies import Reader, TheClient, TheClusters, TheMetrics, WholeDaemon
from metasched.service.daemon import Daemon
from metasched.service.quality.verdict import next_step, verdict

router = APIRouter(prefix="/v1")
metrics = APIRouter()

#: Applications and platforms whose advice is shown separately, those with the most jobs.
PARTS = 200


@router.get("/health")
async def health(daemon: WholeDaemon, client: TheClient) -> dict[str, Any]:
    """Whether the daemon is healthy, whether it leads, and the caller's role; public, so it contains nothing else."""
    faults = daemon.faults()
    return {
        "status": next(iter(faults), "ok"),
        "faults": list(faults.values()),
        "leads": daemon.leads,
        "version": __version__,
        "mode": daemon.mode.mode,
        "role": client.role,
    }


@router.get("/status")
def status(daemon: WholeDaemon, client: Reader) -> dict[str, Any]:
    """The state of the daemon, and how good its advice was or would have been."""
    now, models = daemon.clock.now(), daemon.models.all()
    return {
        "version": __version__,
        **daemon.mode.as_dict(),
        "up": now - daemon.started_at,
        "database": daemon.store.name,
        "leads": daemon.leads,
        "faults": daemon.faults(),
        "partitions": len(daemon.clusters.view.partitions),
        "sources": {name: now - seen for name, seen in daemon.clusters.seen_at.items()},
        "releases": sorted({each.scheduler for each in daemon.clusters.view.partitions if each.releases}),
        "load_sources": [report.as_dict(now) for report in daemon.load_sources.reports()],
        "nodes_with_loads": len(daemon.clusters.latest),
        "models": len(models),
        "runs_to_learn": daemon.models.waiting,
        "learning_failures": daemon.models.failures,
        "moves": {"paid": daemon.moves.paid, "regretted": daemon.moves.regretted},
        "learned": [
            {
                "application": key[0],
                "platform": key[1],
                **asdict(learned),
                "notices": daemon.models.notices(*key) if client.sees_all else [],
            }
            for key, learned in islice(daemon.models.learned().items(), PARTS)
        ],
        **_advice(daemon),
    }


def _advice(daemon: Daemon) -> dict[str, Any]:
    """The quality of the advice, the verdict, and both for each application and platform."""
    report, mode, choice = daemon.jobs.ledger.report(), daemon.mode.mode, daemon.configuration.energy
    judged = verdict(report.overall, choice)
    return {
        "quality": report.overall.as_dict(),
        "verdict": judged.as_dict(),
        "next_step": next_step(mode, judged).as_dict(),
        "by_application": [
            {
                "application": name,
                "platform": platform,
                "cluster": platform,
                **part.as_dict(),
                "verdict": verdict(part, choice).as_dict(),
            }
            for (name, platform), part in islice(report.parts.items(), PARTS)
        ],
        "more_applications": max(0, len(report.parts) - PARTS),
    }


@router.get("/clusters")
async def clusters(live: TheClusters, client: Reader) -> list[dict[str, Any]]:
    """The partitions, with the current available CPU and bandwidth of each node."""
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
                    "age": None if math.isnan(age) else age,
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
        for each in live.view.partitions
    ]


@metrics.get("/metrics")
async def exposition(counted: TheMetrics, client: Reader) -> Response:
    """All metrics in Prometheus' text format."""
    return Response(counted.exposition(), media_type=CONTENT_TYPE_LATEST)
