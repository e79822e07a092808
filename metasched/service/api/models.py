"""Routes of models: which there are, what they predict, and the time limits that follow."""

from __future__ import annotations

import math
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from starlette.concurrency import run_in_threadpool

from metasched.advised_placements import SettingsAsked
from metasched.predictors.abilities import with_usual_threads
from metasched.predictors.walltime import MOST_LOADS, Question, suggestions
from metasched.records import Request
from metasched.service.api.dependencies import OneAtATime, Reader, TheModels, TheStore
from metasched.service.api.names import without_names
from metasched.service.schemas import PredictIn, WalltimesIn
from metasched.service.state.models import Models
from metasched.store.database.store import Store

router = APIRouter(prefix="/v1")

#: Platforms that time limits are suggested for at once.
MOST_PLATFORMS = 20


@router.get("/applications")
async def applications(models: TheModels, client: Reader) -> list[dict[str, Any]]:
    """The known applications, with the platforms that have models."""
    known: dict[str, dict[str, int]] = {}
    for (application, platform), learned in models.learned().items():
        known.setdefault(application, {})[platform] = learned.runs
    return [{"application": name, "runs": runs} for name, runs in sorted(known.items())]


@router.get("/models")
def saved(store: TheStore, client: Reader) -> list[dict[str, Any]]:
    """The saved models with their newest versions."""
    return [
        {"application": application, "platform": platform, "cluster": platform, "version": version, "saved_at": at}
        for application, platform, version, at in store.models.all()
    ]


@router.get("/models/{application}/{platform}")
def model(
    application: str,
    platform: str,
    store: TheStore,
    client: Reader,
    version: Annotated[int | None, Query(ge=1, le=2_147_483_647)] = None,
) -> dict[str, Any]:
    """One saved model, as the document read by ``metasched predict``; users by name only for administrators."""
    if not any((application, platform) == known[:2] for known in store.models.all()):
        raise HTTPException(404, f"no model of {application} on {platform}")
    document = store.models.document(application, platform, version)
    return document if client.sees_all else dict(without_names(document, client.users))


@router.post("/predictions")
async def predict(question: PredictIn, models: TheModels, client: Reader) -> dict[str, Any]:
    """Predict one execution time, with its interval and its model."""
    predictor = models.predictor(question.application, question.platform)
    if predictor is None:
        raise HTTPException(404, f"no model of {question.application} on {question.platform}")
    request = Request(
        question.problem_size,
        question.processors,
        question.available_cpu,
        question.available_bandwidth,
        question.settings
        if "threads" in question.model_fields_set
        else with_usual_threads(question.settings, predictor),
    )
    prediction = predictor.predict(request, question.level)
    if not math.isfinite(prediction.interval.high):
        raise HTTPException(422, f"the prediction for {request} is too large for a number")
    return prediction.as_dict()


@router.post("/walltimes")
async def walltimes(
    question: WalltimesIn, models: TheModels, store: TheStore, one: OneAtATime, client: Reader
) -> dict[str, Any]:
    """Suggest time limits for a job, each with the probability that the job is killed; for 20 platforms at most."""
    async with one:
        return await run_in_threadpool(_suggested, question, models, store)


def _suggested(question: WalltimesIn, models: Models, store: Store) -> dict[str, Any]:
    every = sorted(platform for application, platform in models.keys if application == question.application)
    platforms = every if question.platform is None else [question.platform]
    found = ((platform, models.predictor(question.application, platform)) for platform in platforms)
    known = dict(islice(((platform, each) for platform, each in found if each is not None), MOST_PLATFORMS))
    if not known:
        where = "" if question.platform is None else f" on {question.platform}"
        raise HTTPException(404, f"no model of {question.application}{where}, expected one to be learned first")
    asked = question.model_dump(exclude={"platform", *SettingsAsked.model_fields})
    unstated = "threads" not in question.model_fields_set
    job = Question(**asked, settings=question.settings, usual_threads=unstated)
    return suggestions(
        job, known,
        lambda platform: store.runs.learnable(application=job.application, platform=platform, last=MOST_LOADS),
    )  # fmt: skip
