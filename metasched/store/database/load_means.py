"""Loads as means over five minutes and over hours: :func:`update_means` makes them, :func:`mean_loads` reads them.

Samples are kept for days; the means of what they said stay. Five-minute means are made from samples, hourly ones from
five-minute means, each weighed by how many samples it stands for. A sample that comes late, from an agent whose daemon
was away, drops the packed block of its minute or marks its slot as late; the next :func:`update_means` makes such slots
again.
"""

from __future__ import annotations

import math
import time
from itertools import chain, groupby
from typing import Any

import numpy as np
from sqlalchemy import Connection, Float, Integer, Select, and_, cast, delete, func, literal, select

from metasched.store.database import load_blocks as packed
from metasched.store.database.engine import reading, writing
from metasched.store.database.load_blocks import nodes_with_samples
from metasched.store.database.rows import insert_into
from metasched.store.database.store import Store
from metasched.store.database.tables import FIVE_MINUTES, LateSlotRow, LoadMeanRow, LoadRow, table
from metasched.store.files.loads import Loads

HOUR = 3600
STEPS = (FIVE_MINUTES, HOUR)


def update_means(store: Store, now: float | None = None, *, pause: float = 0.0) -> int:
    """Compute the means and pack the minutes that are over or received a late sample; the daemon calls it periodically.

    Each slot of five minutes is a transaction of its own, so that loads can come in between. ``pause`` is a rest (s)
    after every few thousand samples, in which other threads of the process get their turn.

    Parameters
    ----------
    store : whose means are updated.
    now : the present (s since 1970); None for the clock's.
    pause : rest between transactions (s), in which others may write.

    Returns
    -------
    Minutes packed.
    """
    moment = time.time() if now is None else now
    with reading(store.engine, long=True) as connection:
        if connection.scalar(select(LoadRow.node).limit(1)) is None:
            return 0
        newest = _newest(connection, FIVE_MINUTES)
        minutes = packed.missing(connection, moment)
        late = connection.scalars(select(LateSlotRow.slot).order_by(LateSlotRow.slot)).all()
    if newest < moment - packed.KEPT:
        roll_up(store, moment - packed.KEPT, since=newest)
    for slot, group in groupby(minutes, key=lambda minute: int(_slot(minute, FIVE_MINUTES))):
        with reading(store.engine, long=True) as connection:
            samples = [packed.gather(connection, minute, pause) for minute in group]
        with writing(store.engine, long=True) as connection:
            packed.pack(connection, samples)
            packed.forget(connection, moment - packed.KEPT - packed.MINUTE)
            _make_slot(connection, slot, moment)
    for slot in late:
        with writing(store.engine, long=True) as connection:
            packed.lock(connection)
            connection.execute(delete(LateSlotRow).where(LateSlotRow.slot == slot))
            _make_slot(connection, slot, moment)
    return len(minutes)


def roll_up(store: Store, now: float, *, since: float | None = None) -> None:
    """Make the means of all slots that are over; those that began before ``since`` stay as they are.

    Parameters
    ----------
    store : where the loads are.
    now : the present (s); a slot is over when its end is not after it.
    since : time from which on slots are computed again (s); by default from the newest one on, or all if there is none.
    """
    with writing(store.engine, long=True) as connection:
        begin = _newest(connection, FIVE_MINUTES) if since is None else since
        for step in STEPS:
            _make(connection, step, begin, now)


def mean_loads(store: Store, step: int, *, since: float, until: float) -> Loads:
    """Means of all nodes over ``step`` seconds, of slots that begin from ``since`` up to and without ``until``.

    What is not rolled up yet at the end of the span is averaged from the samples, so that the newest slot is never
    missing.

    Parameters
    ----------
    store : where the means are.
    step : length of a slot (s): five minutes or an hour.
    since, until : begin of the slots, seconds since 1970, ``until`` not included.

    Raises
    ------
    ValueError : when there are no means over ``step`` seconds.
    """
    if step not in STEPS:
        raise ValueError(f"step is {step}, expected one of {', '.join(map(str, STEPS))}")
    columns = (LoadMeanRow.node, LoadMeanRow.time, LoadMeanRow.available_cpu, LoadMeanRow.available_bandwidth)
    inside = and_(LoadMeanRow.step == step, LoadMeanRow.time >= since, LoadMeanRow.time < until)
    with reading(store.engine, long=True) as connection:
        parts = [*packed.fetched(connection.execute(select(*columns).where(inside)))]
        rest = max(since, _newest(connection, step) + step)
        if rest < until:
            parts += packed.fetched(connection.execute(_from_samples(step, rest, until)))
    node, moment, cpu, bandwidth = ([*chain.from_iterable(part[at] for part in parts)] for at in range(4))
    return Loads.sort(node, moment, cpu, bandwidth)


def _newest(connection: Connection, step: int) -> float:
    newest = connection.scalar(select(func.max(LoadMeanRow.time)).where(LoadMeanRow.step == step))
    return -math.inf if newest is None else newest


def _make(connection: Connection, step: int, since: float, now: float) -> None:
    """Make the slots of one step again: those that begin in [since, now] and are over."""
    first, end = _slot(since, step), _slot(now, step)
    source = _from_samples(step, first, end) if step == FIVE_MINUTES else _from_means(step, first, end)
    names = ["node", "time", "available_cpu", "available_bandwidth", "samples", "step"]
    connection.execute(_newer(connection).from_select(names, source.add_columns(literal(step, Integer))))


def _newer(connection: Connection) -> Any:
    """A statement that stores means in the place of earlier ones of as many samples or fewer.

    Of slots whose samples, or whose five-minute means, are deleted by and by, what is left makes no mean.
    """
    means = table(LoadMeanRow)
    statement = insert_into(connection, means)
    given = statement.excluded
    values = {name: given[name] for name in ("available_cpu", "available_bandwidth", "samples")}
    return statement.on_conflict_do_update(
        index_elements=[*means.primary_key], set_=values, where=given["samples"] >= means.c.samples
    )


def _make_slot(connection: Connection, slot: int, now: float) -> None:
    """Make one slot of five minutes again from its samples, and its hour, where they are over."""
    if slot + FIVE_MINUTES > now:
        return
    # Samples may be gone already where their means stay.
    if len(loads := packed.read(connection, slot, slot + FIVE_MINUTES)):
        _replace(connection, slot, loads)
        if (hour := _slot(slot, HOUR)) + HOUR <= now:
            _make(connection, HOUR, hour, hour + HOUR)


def _replace(connection: Connection, slot: int, loads: Loads) -> None:
    counts = np.diff(loads.offsets)
    cpu, bandwidth = (
        np.add.reduceat(column, loads.offsets[:-1]) / counts
        for column in (loads.available_cpu, loads.available_bandwidth)
    )
    means = zip(loads.nodes, cpu.tolist(), bandwidth.tolist(), counts.tolist(), strict=True)
    names = ("node", "available_cpu", "available_bandwidth", "samples")
    rows = [{"step": FIVE_MINUTES, "time": float(slot)} | dict(zip(names, mean, strict=True)) for mean in means]
    connection.execute(_newer(connection), rows)


def _from_samples(step: int, first: float, end: float) -> Select[tuple[str, float, float, float, int]]:
    """Means of the samples in [first, end), slot by slot."""
    nodes = nodes_with_samples()
    slot = (func.floor(LoadRow.time / step, type_=Float) * step).label("time")
    return (
        select(
            LoadRow.node,
            slot,
            func.avg(LoadRow.available_cpu).label("available_cpu"),
            func.avg(LoadRow.available_bandwidth).label("available_bandwidth"),
            func.count().label("samples"),
        )
        .join_from(nodes, LoadRow, LoadRow.node == nodes.c.node)
        .where(LoadRow.time >= first, LoadRow.time < end, packed.possible(LoadRow))
        .group_by(LoadRow.node, slot)
    )


def _from_means(step: int, first: float, end: float) -> Select[tuple[str, float, float, float, int]]:
    """Means of the five-minute means in [first, end), each weighed by its samples."""
    slot = (func.floor(LoadMeanRow.time / step, type_=Float) * step).label("time")
    count = func.sum(LoadMeanRow.samples)
    cpu, bandwidth = (
        (func.sum(column * LoadMeanRow.samples) / count).label(column.key)
        for column in (LoadMeanRow.available_cpu, LoadMeanRow.available_bandwidth)
    )
    return (
        select(LoadMeanRow.node, slot, cpu, bandwidth, cast(count, Integer).label("samples"))
        .where(LoadMeanRow.step == FIVE_MINUTES, LoadMeanRow.time >= first, LoadMeanRow.time < end)
        .group_by(LoadMeanRow.node, slot)
    )


def _slot(moment: float, step: int) -> float:
    return moment if math.isinf(moment) else math.floor(moment / step) * step
