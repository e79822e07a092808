"""Routes for people who want to know more than where a job should run: whole rankings, and why a placement is so.

They compute for some hundredths of a second and may read the database, so they run in threads, one at a time:
placements go on being answered beside them.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path
from starlette.concurrency import run_in_threadpool

from metasched.service.asking import Reader, TheDaemon
from metasched.service.daemon import Daemon
from metasched.service.explaining import explain_advice, explain_answer
from metasched.service.messages import ExplainIn, RankIn
from metasched.service.ranking import ranked
from metasched.store.placements import Advice

router = APIRouter(prefix="/v1")

Uid = Annotated[str, Path(pattern=r"^[0-9a-f]{32}$")]


@router.post("/rankings")
async def rank(question: RankIn, daemon: TheDaemon, client: Reader) -> dict[str, Any]:
    """The best resource sets, best first, as ``metasched rank --json`` answers; where there is none, ``why``."""
    view, models, placer = daemon.board.view, daemon.models, daemon.placer
    async with daemon.consulting:
        return await run_in_threadpool(ranked, question, view, models, placer, time.time())


@router.post("/explanations")
async def explain(question: ExplainIn, daemon: TheDaemon, client: Reader) -> dict[str, Any]:
    """One placement of a ranking term by term, as ``metasched explain --json`` answers."""
    async with daemon.consulting:
        return await run_in_threadpool(
            explain_answer,
            question.application,
            question.problem_size,
            question.placement,
            daemon.board.view,
            daemon.models,
        )


@router.get("/placements/{uid}")
def placement(uid: Uid, daemon: TheDaemon, client: Reader) -> dict[str, Any]:
    """One placement, with what became of its job."""
    return _found(uid, daemon).as_dict()


@router.get("/placements/{uid}/explanation")
async def explanation(uid: Uid, daemon: TheDaemon, client: Reader) -> dict[str, Any]:
    """One placement term by term, with the model and the loads of the time when it was made."""
    async with daemon.consulting:
        return await run_in_threadpool(
            lambda: explain_advice(_found(uid, daemon), daemon.board.view, daemon.models, daemon.store)
        )


def _found(uid: str, daemon: Daemon) -> Advice:
    advice = daemon.placements.find(uid)
    if advice is None:
        raise HTTPException(404, f"no placement {uid}")
    return advice
