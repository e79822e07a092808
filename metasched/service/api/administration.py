"""Routes by which an administrator sees and sets the mode of the running daemon."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from metasched.audit import audit
from metasched.service.api.dependencies import Admin, Leading, Reader, TheMode
from metasched.service.schemas import ModeIn

router = APIRouter(prefix="/v1")


@router.get("/mode")
async def mode(switch: TheMode, client: Reader) -> dict[str, Any]:
    """The mode, that of the configuration, and who set another mode when."""
    return switch.as_dict()


@router.put("/mode", dependencies=[Leading])
def set_mode(wanted: ModeIn, switch: TheMode, client: Admin) -> dict[str, Any]:
    """Set the mode; it applies from the next answer, also after a restart."""
    switch.set(wanted.mode, client.name)
    audit(f"mode {wanted.mode}", f"client {client.name}")
    return switch.as_dict()
