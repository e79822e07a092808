"""Deletes loads, placements and past jobs that are too old."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from sqlalchemy import delete

from metasched.store.database import load_blocks as packed
from metasched.store.database.engine import writing
from metasched.store.database.load_means import roll_up, update_means
from metasched.store.database.store import Store
from metasched.store.database.tables import FIVE_MINUTES, LoadMeanRow, LoadRow, PlacementRow

#: Retention of five-minute means, as a multiple of that of samples.
MEANS_KEEP = 9.0


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows of each kind were deleted."""

    loads: int
    placements: int
    past_jobs: int = 0


def prune(
    store: Store, *, loads_before: float, placements_before: float, past_jobs_before: float = -math.inf,
    now: float | None = None,
) -> Pruned:  # fmt: skip
    """Remove loads, placements and past jobs from before these times (s). Runs and models, what was learned, stay.

    Of the loads the means stay: those over five minutes ten times as long as the samples, those over hours for good.

    Parameters
    ----------
    store : that is pruned.
    loads_before, placements_before, past_jobs_before : seconds since 1970.
    now : the present (s since 1970); None for the clock's.
    """
    moment = time.time() if now is None else now
    update_means(store, moment)
    roll_up(store, loads_before, since=-math.inf)  # once more with whatever came late, before its samples go
    with writing(store.engine, long=True) as connection:
        means_before = loads_before - MEANS_KEEP * max(moment - loads_before, 0.0)
        old = LoadMeanRow.step == FIVE_MINUTES, LoadMeanRow.time < means_before
        connection.execute(delete(LoadMeanRow).where(*old))
        packed.forget(connection, loads_before)
        loads = connection.execute(delete(LoadRow).where(LoadRow.time < loads_before)).rowcount
        placements = connection.execute(delete(PlacementRow).where(PlacementRow.made_at < placements_before)).rowcount
    return Pruned(loads, placements, store.past_jobs.prune(past_jobs_before))
