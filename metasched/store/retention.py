"""Letting go of what is too old to be of use."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete

from metasched.store.database import Store
from metasched.store.engine import writing
from metasched.store.tables import LoadRow, PlacementRow


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows were let go."""

    loads: int
    placements: int


def prune(store: Store, *, loads_before: float, placements_before: float) -> Pruned:
    """Remove loads and placements from before these times (s). Runs and models are what was learned: they stay."""
    with writing(store.engine) as connection:
        loads = connection.execute(delete(LoadRow).where(LoadRow.time < loads_before)).rowcount
        placements = connection.execute(delete(PlacementRow).where(PlacementRow.made_at < placements_before)).rowcount
    return Pruned(loads, placements)
