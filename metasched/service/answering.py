"""Routes that answer where a job should run and how long it would take; they look at memory and nothing else."""

from __future__ import annotations

import math
import time
from typing import Any

from fastapi import APIRouter, HTTPException, Response

from metasched.records import Request
from metasched.service.asking import Reader, TheDaemon
from metasched.service.daemon import Daemon
from metasched.service.messages import Answer, Ask, PredictIn
from metasched.store.placements import Advice

router = APIRouter(prefix="/v1")


@router.post("/placements", response_model=Answer)
async def place(ask: Ask, daemon: TheDaemon, client: Reader) -> Response:
    """Say where a job should run. The placement is noted, so that it can be told later how good it was.

    A trial changes nothing, so that whoever may read may try.
    """
    if not ask.trial and not client.may("scheduler"):
        raise HTTPException(403, f"the role {client.role} may ask for trials only, expected scheduler")
    now = time.time()
    answer = daemon.placer.answer(ask, now)
    if not ask.trial:
        _noted(daemon, ask, answer, now)
    # Spelt out here: the framework would check what was checked when it was made.
    return Response(answer.model_dump_json(), media_type="application/json")


def _noted(daemon: Daemon, ask: Ask, answer: Answer, now: float) -> None:
    daemon.metrics.placements.labels("placed" if answer.placed else "nothing").inc()
    advised = Advice(answer.id, now, ask.application, ask.model_dump(), answer.model_dump(exclude={"id"}))
    daemon.jobs.askers.note(advised.question)
    daemon.writer.placements([advised])


@router.post("/predictions")
async def predict(question: PredictIn, daemon: TheDaemon, client: Reader) -> dict[str, Any]:
    """Predict one execution time, with its interval and the model it comes from."""
    predictor = daemon.models.predictor(question.application, question.cluster)
    if predictor is None:
        raise HTTPException(404, f"no model of {question.application} on {question.cluster}")
    request = Request(question.problem_size, question.processors, question.available_cpu, question.available_bandwidth)
    prediction = predictor.predict(request, question.level)
    if not math.isfinite(prediction.interval.high):
        raise HTTPException(422, f"the prediction for {request} is beyond all numbers")
    return prediction.as_dict()
