"""Loads as means over five minutes and over hours: :func:`roll_up` keeps them up, :func:`mean_loads` reads them.

Samples are kept for days; the means of what they said stay. Five-minute means are made from samples, hourly ones from
five-minute means, each weighed by how many samples it stands for. A sample that comes late, from an agent whose daemon
was away, counts when its slot is made again: the latest slots every time, all others once more before their samples go.
"""

from __future__ import annotations

import math
import time

from sqlalchemy import Connection, Float, Integer, Select, and_, cast, delete, func, literal, select
from sqlalchemy.sql.selectable import CTE

from metasched.store.campaigns import Loads
from metasched.store.database import Store
from metasched.store.engine import reading, writing
from metasched.store.tables import LoadMeanRow, LoadRow, table

FIVE_MINUTES, HOUR = 300, 3600
STEPS = (FIVE_MINUTES, HOUR)
#: Slots this young are made again at every call (s): most late samples come within it.
_LATE = 2 * HOUR


def roll_up(store: Store, now: float | None = None, *, since: float | None = None) -> int:
    """Make the means of all slots that are over; those that began before ``since`` stay as they are.

    Parameters
    ----------
    store : where the loads are.
    now : the present (s); a slot is over when its end is not after it.
    since : how far back slots are made anew (s); by default two hours, and all the way where there are none yet.

    Returns
    -------
    Means made or made anew.
    """
    moment = time.time() if now is None else now
    with writing(store.engine) as connection:
        if since is None:
            newest = connection.scalar(select(func.max(LoadMeanRow.time)).where(LoadMeanRow.step == FIVE_MINUTES))
            since = -math.inf if newest is None else min(newest, moment - _LATE)
        return sum(_make(connection, step, since, moment) for step in STEPS)


def mean_loads(store: Store, step: int, *, since: float, until: float) -> Loads:
    """Means of all nodes over ``step`` seconds, of slots that begin from ``since`` up to and without ``until``.

    What is not rolled up yet at the end of the span is averaged from the samples, so that the newest slot is never
    missing.

    Raises
    ------
    ValueError
        When there are no means over so many seconds.
    """
    if step not in STEPS:
        raise ValueError(f"step is {step}, expected one of {', '.join(map(str, STEPS))}")
    columns = (LoadMeanRow.node, LoadMeanRow.time, LoadMeanRow.available_cpu, LoadMeanRow.available_bandwidth)
    inside = and_(LoadMeanRow.step == step, LoadMeanRow.time >= since, LoadMeanRow.time < until)
    with reading(store.engine) as connection:
        rows = [tuple(row) for row in connection.execute(select(*columns).where(inside))]
        made = connection.scalar(select(func.max(LoadMeanRow.time)).where(LoadMeanRow.step == step))
        rest = max(since, -math.inf if made is None else made + step)
        rows += [tuple(row)[:4] for row in connection.execute(_from_samples(step, rest, until))]
    return Loads.sort(*(zip(*rows, strict=True) if rows else ((), (), (), ())))


def forget_means(connection: Connection, step: int, before: float) -> int:
    """Remove the means over ``step`` seconds that began before a time; return how many."""
    return connection.execute(delete(LoadMeanRow).where(LoadMeanRow.step == step, LoadMeanRow.time < before)).rowcount


def _make(connection: Connection, step: int, since: float, now: float) -> int:
    """Make the slots of one step anew: those that begin in [since, now] and are over."""
    first, end = _slot(since, step), _slot(now, step)
    source = _from_samples(step, first, end) if step == FIVE_MINUTES else _from_means(step, first, end)
    means = table(LoadMeanRow)
    names = ["node", "time", "available_cpu", "available_bandwidth", "samples", "step"]
    made = source.add_columns(literal(step, Integer))
    inside = and_(LoadMeanRow.step == step, LoadMeanRow.time >= first, LoadMeanRow.time < end)
    if step == FIVE_MINUTES:
        # Samples may be gone already where their means stay: only slots that have samples are made anew.
        fresh = made.subquery()
        again = select(fresh.c.node).where(fresh.c.node == LoadMeanRow.node, fresh.c.time == LoadMeanRow.time)
        connection.execute(delete(LoadMeanRow).where(inside, again.exists()))
    else:
        connection.execute(delete(LoadMeanRow).where(inside))
    return connection.execute(means.insert().from_select(names, made)).rowcount


def _from_samples(step: int, first: float, end: float) -> Select[tuple[str, float, float, float, int]]:
    """Means of the samples in [first, end), slot by slot."""
    nodes = _nodes()
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
        .where(LoadRow.time >= first, LoadRow.time < end)
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


def _nodes() -> CTE:
    """Every node that has samples, found by one look into the key for each: not by reading all samples."""
    nodes = select(func.min(LoadRow.node).label("node")).cte("nodes", recursive=True)
    following = select(func.min(LoadRow.node)).where(LoadRow.node > nodes.c.node).scalar_subquery()
    return nodes.union_all(select(following).where(nodes.c.node.is_not(None)))


def _slot(moment: float, step: int) -> float:
    return moment if math.isinf(moment) else math.floor(moment / step) * step
