"""The loads of nodes in the database: samples as they arrived, and fast reading of whole periods."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import aliased

from metasched.records import Load
from metasched.store.database import load_blocks as packed
from metasched.store.database.engine import reading, writing
from metasched.store.database.rows import insert_many_new, insert_new
from metasched.store.database.tables import FIVE_MINUTES, LateSlotRow, LoadRow, table
from metasched.store.files.loads import Loads


class LoadRecords:
    """The load samples of all nodes, in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, loads: Iterable[Load]) -> int:
        """Store loads, all or none; a node has one load a moment, the first stored. Return how many were new."""
        rows = [(load.node, load.time, load.available_cpu, load.available_bandwidth) for load in loads]
        with writing(self._engine) as connection:
            late = packed.drop(connection, {at for _, at, *_ in rows}, time.time())
            slots = [{"slot": slot} for slot in {minute // FIVE_MINUTES * FIVE_MINUTES for minute in late}]
            insert_new(connection, table(LateSlotRow), slots)
            return insert_many_new(connection, table(LoadRow), rows)

    def all(self, *, node: str | None = None, since: float | None = None, until: float | None = None) -> Loads:
        """The loads of one node or of all, from ``since`` up to and without ``until`` (s since 1970), if given."""
        if node is not None:
            return self.oldest(node, None, since=since, until=until)
        with reading(self._engine, long=True) as connection:
            return packed.read(connection, *_span(since, until))

    def of(self, nodes: Sequence[str], *, since: float, until: float) -> Loads:
        """The loads of some nodes from ``since`` up to and without ``until`` (s), asked for at once."""
        with reading(self._engine) as connection:
            return packed.read_nodes(connection, nodes, since, until)

    def oldest(self, node: str, most: int | None, *, since: float | None = None, until: float | None = None) -> Loads:
        """The oldest loads of one node, at most ``most`` if given, from ``since`` up to and without ``until`` (s)."""
        with reading(self._engine) as connection:
            return packed.read_node(connection, node, *_span(since, until), most)

    def newest(self, *, since: float, until: float | None = None) -> tuple[Load, ...]:
        """The newest load of each node that has one from ``since`` up to and without ``until`` (s)."""
        # The key leads to the newest sample of a node: the others, perhaps a thousand times as many, are not read.
        nodes, sample = packed.nodes_with_samples(), aliased(LoadRow)
        first, end = _span(since, until)
        newest = (
            select(func.max(sample.time))
            .where(sample.node == nodes.c.node, sample.time >= first, sample.time < end, packed.possible(sample))
            .scalar_subquery()
        )
        query = select(LoadRow.time, LoadRow.node, LoadRow.available_cpu, LoadRow.available_bandwidth).join_from(
            nodes, LoadRow, (LoadRow.node == nodes.c.node) & (LoadRow.time == newest)
        )
        with reading(self._engine) as connection:
            return tuple(Load(*row) for row in connection.execute(query))


def _span(since: float | None, until: float | None) -> tuple[float, float]:
    return -math.inf if since is None else since, math.inf if until is None else until
