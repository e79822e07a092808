"""Routes by which an administrator sees and sets the mode of the running daemon."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, HTTPException

from metasched.service.asking import Admin, Reader, TheDaemon
from metasched.service.daemon import Daemon
from metasched.service.messages import ModeIn

router = APIRouter(prefix="/v1")


@router.get("/mode")
async def mode(daemon: TheDaemon, client: Reader) -> dict[str, Any]:
    """The mode, what the configuration says, and who set another one when."""
    return told(daemon)


@router.put("/mode")
def set_mode(wanted: ModeIn, daemon: TheDaemon, client: Admin) -> dict[str, Any]:
    """Set the mode: it counts from the next answer on, and after a restart too."""
    try:
        daemon.set_mode(wanted.mode, client.name)
    except RuntimeError as error:
        raise HTTPException(503, f"not set: {error}") from None
    return told(daemon)


def told(daemon: Daemon) -> dict[str, Any]:
    """What is told of the mode; ``set_by`` and ``set_at`` (s) are None where it is the configuration's."""
    last = daemon.switch.last
    return {
        "mode": daemon.configuration.mode,
        "configured": daemon.switch.configured,
        "set_by": None if last is None else last.by,
        "set_at": None if last is None else last.set_at,
    }
