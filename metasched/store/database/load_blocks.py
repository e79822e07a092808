"""Fast access to every sample of a period: past minutes are also stored packed, one block for all nodes.

The rows of ``loads`` are what was stored; a block is a copy of one minute of them, node by node, for the last hours. To
read a span, whole blocks are laid side by side and only minutes without one are read row by row. A block is dropped in
the transaction that adds a sample to its minute, so that what is read is always what was stored; :func:`pack` makes it
again. Samples that cannot be, whoever wrote them into the database, are not read.
"""

from __future__ import annotations

import json
import math
import sys
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    CursorResult,
    Result,
    Select,
    and_,
    delete,
    func,
    insert,
    select,
    text,
)

from metasched.arrays import Flags, Floats
from metasched.store.database.tables import LoadBlockRow, LoadRow
from metasched.store.errors import StoreError
from metasched.store.files.loads import Loads
from monitors.sources.screening import sound

_COLUMNS = (LoadRow.node, LoadRow.time, LoadRow.available_cpu, LoadRow.available_bandwidth)
#: Seconds that a block holds.
MINUTE = 60
#: Retention of blocks (s).
KEPT = 2 * 3600
#: Delay from the end of a minute to its packing (s), since agents send their samples a moment later.
SETTLED = 15.0
#: Minutes that one statement names at most: databases bound its parameters.
_TOGETHER = 500
#: Nodes that one statement names at most.
_NAMED = 20_000
#: Rows that are read at once.
_AT_ONCE = 2048


def read(connection: Connection, since: float, until: float) -> Loads:
    """The samples of all nodes from ``since`` up to and without ``until`` (s); either may be infinite."""
    inside = (LoadBlockRow.minute > since - MINUTE, LoadBlockRow.minute < until)
    query = select(LoadBlockRow.minute, LoadBlockRow.nodes, LoadBlockRow.samples).where(*inside)
    blocks = connection.execute(query.order_by(LoadBlockRow.minute)).all()
    parts: list[tuple[float, Loads]] = [(minute, _unpacked(nodes, packed)) for minute, nodes, packed in blocks]
    for start, end in _gaps([b[0] for b in blocks], since, until):
        parts.append((start, _loads(connection.execute(_query(start, end)))))
    loads = _joined([part for _, part in sorted(parts, key=lambda part: part[0])])
    return _only(loads, (loads.time >= since) & (loads.time < until))


def read_node(connection: Connection, node: str, since: float, until: float, most: int | None = None) -> Loads:
    """The samples of one node from ``since`` up to and without ``until`` (s), at most ``most``, the oldest.

    The key of the table leads straight to them.
    """
    query = select(*_COLUMNS).where(LoadRow.node == node, LoadRow.time >= since, LoadRow.time < until)
    return _loads(connection.execute(query.order_by(LoadRow.time).limit(most)))


def read_nodes(connection: Connection, nodes: Sequence[str], since: float, until: float) -> Loads:
    """The samples of some nodes from ``since`` up to and without ``until`` (s), asked for at once."""
    query = select(*_COLUMNS).where(LoadRow.time >= since, LoadRow.time < until)
    parts = [
        _loads(connection.execute(query.where(LoadRow.node.in_(nodes[start : start + _NAMED]))))
        for start in range(0, len(nodes), _NAMED)
    ]
    return _joined(parts)


def missing(connection: Connection, now: float) -> list[int]:
    """The minutes of the last hours that are over and have no block, ascending."""
    first, end = _minute(now - KEPT), _minute(now - SETTLED)
    there = set(connection.scalars(select(LoadBlockRow.minute).where(LoadBlockRow.minute >= first)))
    return [minute for minute in range(first, end, MINUTE) if minute not in there]


@dataclass(frozen=True, slots=True)
class Gathered:
    """The valid samples of a minute, and the number of its rows, with invalid ones."""

    minute: int
    rows: int
    loads: Loads


def gather(connection: Connection, minute: int, pause: float = 0.0) -> Gathered:
    """Read a minute that is to be packed, with a rest (s) after every few thousand samples.

    Parameters
    ----------
    connection : that reads.
    minute : its first second, since 1970.
    pause : length of a rest (s).
    """
    found = connection.execute(_query(minute, minute + MINUTE))
    parts = []
    for part in _parts(found):
        parts.append(part)
        time.sleep(pause)
    loads = _sound(_joined(parts))
    return Gathered(minute, sum(map(len, parts)), loads)


def pack(connection: Connection, gathered: Iterable[Gathered]) -> None:
    """Make the blocks of some minutes, in a transaction that writes.

    One that got a sample since it was gathered is left for the next time.
    """
    lock(connection)
    for each in gathered:
        connection.execute(delete(LoadBlockRow).where(LoadBlockRow.minute == each.minute))
        counting = _query(each.minute, each.minute + MINUTE).with_only_columns(func.count())
        if connection.scalar(counting) == each.rows:
            connection.execute(insert(LoadBlockRow), packed(each.minute, each.loads))


def lock(connection: Connection) -> None:
    """Keep samples from being stored, where several may write at once, until the transaction ends.

    A sample that is being stored is then either seen, or finds the block that it has to drop.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE load_blocks IN SHARE ROW EXCLUSIVE MODE"))


def drop(connection: Connection, times: Iterable[float], now: float) -> list[int]:
    """Drop the blocks that hold these times, before samples of them are stored; return those soon too old for any.

    Parameters
    ----------
    connection : within the transaction that stores the samples.
    times : of the samples, seconds since 1970.
    now : the moment, seconds since 1970.
    """
    minutes = sorted({_minute(at) for at in times})
    for start in range(0, len(minutes), _TOGETHER):
        connection.execute(delete(LoadBlockRow).where(LoadBlockRow.minute.in_(minutes[start : start + _TOGETHER])))
    return minutes[: bisect_left(minutes, _minute(now - KEPT / 2))]


def forget(connection: Connection, before: float) -> None:
    """Drop the blocks that began before a time (s)."""
    connection.execute(delete(LoadBlockRow).where(LoadBlockRow.minute < before))


def nodes_with_samples() -> CTE:
    """Every node that has samples, found by one look into the key for each: not by reading all samples."""
    nodes = select(func.min(LoadRow.node).label("node")).cte("nodes", recursive=True)
    following = select(func.min(LoadRow.node)).where(LoadRow.node > nodes.c.node).scalar_subquery()
    return nodes.union_all(select(following).where(nodes.c.node.is_not(None)))


def possible(sample: Any) -> ColumnElement[bool]:
    """Whether a sample, a row of ``loads`` or an alias of it, is one that can be; SQLite holds texts to be larger."""
    return and_(sample.available_cpu.between(0, 1), sample.available_bandwidth.between(0, sys.float_info.max))


def _query(since: float, until: float) -> Select[str, float, float, float]:
    """The rows of a span, node by node."""
    nodes = nodes_with_samples()
    query = select(*_COLUMNS).join_from(nodes, LoadRow, LoadRow.node == nodes.c.node)
    return query.where(LoadRow.time >= since, LoadRow.time < until)


def _loads(found: Result[str, float, float, float]) -> Loads:
    """Rows as loads, without those that cannot be."""
    return _sound(_joined([*_parts(found)]))


def _parts(found: Result[str, float, float, float]) -> Iterator[Loads]:
    """Rows as loads, a few thousand at a time: no thread of the daemon must hold the others up for longer."""
    for columns in fetched(found):
        try:
            yield Loads.sort(*columns)
        except (TypeError, ValueError):  # SQLite holds any value in any column
            rows = [row for row in zip(*columns, strict=True) if [*map(type, row)] == [str, float, float, float]]
            yield Loads.sort(*(zip(*rows, strict=True) if rows else [()] * 4))


def fetched(found: Result[*tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], ...]]:
    """The columns of rows as the driver gives them, a few thousand at a time.

    To give each row names takes longer than to read it, and to turn many at once into columns holds up other threads.
    """
    cursor = found.cursor if isinstance(found, CursorResult) else None
    while cursor is not None and (rows := cursor.fetchmany(_AT_ONCE)):
        yield tuple(zip(*rows, strict=True))


def _sound(loads: Loads) -> Loads:
    return _only(loads, sound(loads.time, loads.available_cpu, loads.available_bandwidth))


def _gaps(minutes: Sequence[int], since: float, until: float) -> Iterator[tuple[float, float]]:
    """The parts of a period that no block covers."""
    ends = chain([since], (minute + MINUTE for minute in minutes))
    yield from (gap for gap in zip(ends, chain(minutes, [until]), strict=True) if gap[0] < gap[1])


def packed(minute: int, loads: Loads) -> dict[str, object]:
    """The row of a block: the loads of the minute that begins at a time (s)."""
    counts = np.diff(loads.offsets).astype("<u4")
    values = np.concatenate([loads.time, loads.available_cpu, loads.available_bandwidth]).astype("<f8")
    return {"minute": minute, "nodes": json.dumps(loads.nodes), "samples": counts.tobytes() + values.tobytes()}


def _unpacked(nodes: str, packed: bytes) -> Loads:
    try:
        names = tuple(json.loads(nodes))
        counts = np.frombuffer(packed, "<u4", len(names))
        time, cpu, bandwidth = np.frombuffer(packed, "<f8", offset=counts.nbytes).reshape(3, -1)
    except (TypeError, ValueError) as error:
        raise StoreError(f"a packed minute of loads is damaged ({error}), restore the database from a copy") from None
    return Loads(names, np.concatenate(([0], counts.cumsum(dtype=np.intp))), time, cpu, bandwidth)


def _joined(parts: Sequence[Loads]) -> Loads:
    """Loads of spans that follow each other as one."""
    names = sorted({name for nodes in {part.nodes for part in parts} for name in nodes})
    place = {name: index for index, name in enumerate(names)}
    small = np.uint16 if len(names) < 2**16 else np.intp  # sorting sixteen bits takes two passes and no comparison
    at = {nodes: np.array([place[name] for name in nodes], dtype=small) for nodes in {part.nodes for part in parts}}
    which = np.concatenate([np.zeros(0, small), *(np.repeat(at[part.nodes], np.diff(part.offsets)) for part in parts)])
    order = which.argsort(kind="stable")
    offsets = np.concatenate(([0], np.bincount(which, minlength=len(names)).cumsum()))

    def column(name: str) -> Floats:
        return np.concatenate([np.zeros(0), *(getattr(part, name) for part in parts)])[order]

    return Loads(tuple(names), offsets, column("time"), column("available_cpu"), column("available_bandwidth"))


def _only(loads: Loads, kept: Flags) -> Loads:
    """Some of the samples, and the nodes that have any."""
    if kept.all():
        return loads
    below = np.concatenate(([0], kept.cumsum()))[loads.offsets]
    there = np.flatnonzero(np.diff(below))
    return Loads(
        tuple(loads.nodes[index] for index in there),
        np.append(below[there], below[-1]) if len(there) else np.zeros(1, dtype=np.intp),
        loads.time[kept],
        loads.available_cpu[kept],
        loads.available_bandwidth[kept],
    )


def _minute(at: float) -> int:
    return math.floor(at / MINUTE) * MINUTE
