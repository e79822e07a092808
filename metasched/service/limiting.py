"""The route that suggests time limits: for users who may not read the database."""

from __future__ import annotations

from itertools import islice
from typing import Any

from fastapi import APIRouter, HTTPException

from metasched.placement.walltime import CHANCES, MOST_LOADS, ExecutionTimes, loads_to_expect, suggested
from metasched.service.asking import Reader, TheDaemon
from metasched.service.messages import WalltimesIn

router = APIRouter(prefix="/v1")

#: Clusters that limits are suggested for at once.
MOST_CLUSTERS = 20


@router.post("/walltimes")
def walltimes(question: WalltimesIn, daemon: TheDaemon, client: Reader) -> dict[str, Any]:
    """Suggest time limits for a job, each with the chance that the job is killed by it; of 20 clusters at most."""
    known = {
        cluster: predictor
        for (application, cluster), predictor in daemon.models.all().items()
        if application == question.application and question.cluster in (None, cluster)
    }
    if not known:
        where = "" if question.cluster is None else f" on {question.cluster}"
        raise HTTPException(404, f"no model of {question.application}{where}, expected one to be learned first")
    size, processors = question.problem_size, question.processors
    told = []
    for cluster, predictor in islice(sorted(known.items()), MOST_CLUSTERS):
        runs = daemon.store.runs(application=question.application, cluster=cluster, last=MOST_LOADS)
        loads = loads_to_expect(runs, question.available_cpu, question.available_bandwidth)
        times = ExecutionTimes(predictor, size, processors, *loads)
        chances = question.chances or (() if question.limits else CHANCES)
        told.append(suggested(cluster, times, chances, question.limits).as_dict())
    return {"application": question.application, "problem_size": size, "processors": processors, "clusters": told}
