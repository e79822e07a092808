"""Routes that answer where a job should run and how long it would take; they look at memory and nothing else."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, HTTPException

from metasched.records import Request
from metasched.service.asking import Reader, Scheduler, TheDaemon
from metasched.service.messages import Answer, Ask, PredictIn
from metasched.store.placements import Advice

router = APIRouter(prefix="/v1")


@router.post("/placements")
async def place(ask: Ask, daemon: TheDaemon, client: Scheduler) -> Answer:
    """Say where a job should run. The placement is noted, so that it can be told later how good it was."""
    now = time.time()
    answer = daemon.placer.answer(ask, now)
    if ask.trial:
        return answer
    daemon.metrics.placements.labels("placed" if answer.placed else "nothing").inc()
    advised = Advice(answer.id, now, ask.application, ask.model_dump(), answer.model_dump(exclude={"id"}))
    daemon.askers.note(advised.question)
    daemon.writer.placements([advised])
    return answer


@router.post("/predictions")
async def predict(question: PredictIn, daemon: TheDaemon, client: Reader) -> dict[str, Any]:
    """Predict one execution time, with its interval and the model it comes from."""
    predictor = daemon.models.predictor(question.application, question.cluster)
    if predictor is None:
        raise HTTPException(404, f"no model of {question.application} on {question.cluster}")
    request = Request(question.problem_size, question.processors, question.available_cpu, question.available_bandwidth)
    return predictor.predict(request, question.level).as_dict()
