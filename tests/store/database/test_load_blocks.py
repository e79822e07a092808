"""Packed minutes: what is read is what was stored, whenever it came and whatever was packed in between."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, insert, select

from metasched.records import Load
from metasched.store.database import load_blocks as packed
from metasched.store.database.engine import reading, writing
from metasched.store.database.load_means import update_means
from metasched.store.database.retention import prune
from metasched.store.database.store import Store
from metasched.store.database.tables import LoadBlockRow, LoadRow, table
from metasched.store.files.loads import Loads

START = 7200.0
SPAN = 900


def as_rows(loads: Loads) -> list[tuple[float, ...]]:
    node = np.repeat(np.arange(len(loads.nodes)), np.diff(loads.offsets))
    return [
        (loads.nodes[k], *row)  # type: ignore[misc]
        for k, *row in zip(
            node.tolist(), loads.time.tolist(), loads.available_cpu.tolist(), loads.available_bandwidth.tolist(),
            strict=True,
        )
    ]  # fmt: skip


loads = st.builds(
    Load,
    st.floats(0, SPAN).map(lambda offset: START + round(offset, 1)),
    st.sampled_from(["a", "b", 'n"/2', "\N{SNOWMAN}"]),
    st.floats(0, 1),
    st.floats(0, 1000),
)
steps = st.one_of(st.lists(loads, min_size=1, max_size=8), st.floats(0, SPAN + 200))
bounds = st.one_of(st.none(), st.floats(-100, SPAN + 100).map(lambda offset: START + offset))


@settings(max_examples=20, deadline=None)
@given(st.lists(steps, max_size=12), st.lists(st.tuples(bounds, bounds), min_size=1, max_size=4))
def test_what_is_read_is_what_was_stored(
    story: list[list[Load] | float], spans: list[tuple[float | None, float | None]]
) -> None:
    kept: dict[tuple[str, float], Load] = {}
    with Store.open(":memory:") as store:
        for step in story:
            if isinstance(step, float):
                update_means(store, START + step)
                continue
            new = {(load.node, load.time): load for load in reversed(step)}
            assert store.loads.add(step) == len(new.keys() - kept.keys())
            kept = new | kept
        for since, until in [(None, None), *spans]:
            expected = sorted(
                (load.node, load.time, load.available_cpu, load.available_bandwidth)
                for load in kept.values()
                if (since is None or load.time >= since) and (until is None or load.time < until)
            )
            assert as_rows(store.loads.all(since=since, until=until)) == expected
            for node in ("a", "nobody"):
                of_node = [row for row in expected if row[0] == node]
                assert as_rows(store.loads.all(node=node, since=since, until=until)) == of_node
            last = {node: (node, *values) for node, *values in expected}
            newest = store.loads.newest(since=-math.inf if since is None else since, until=until)
            found = [(each.node, each.time, each.available_cpu, each.available_bandwidth) for each in newest]
            assert sorted(found) == sorted(last.values())


def regular(store: Store) -> None:
    store.loads.add(Load(START + 10.0 * k, f"n{k % 7}", 0.5, 90.0) for k in range(SPAN // 10))


def blocks(store: Store) -> int:
    with reading(store.engine) as connection:
        return connection.scalar(select(func.count()).select_from(LoadBlockRow)) or 0


def test_a_late_sample_unpacks_its_minute_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path / "db") as store:
        regular(store)
        update_means(store, START + SPAN + 100)
        before = blocks(store)
        store.loads.add([Load(START + 61.5, "n0", 0.1, 1.0)])
        assert blocks(store) == before - 1
        assert 0.1 in store.loads.all(since=START).available_cpu
        assert update_means(store, START + SPAN + 100) == 1
        assert blocks(store) == before


def test_blocks_go_with_their_samples(tmp_path: Path) -> None:
    with Store.open(tmp_path / "db") as store:
        regular(store)
        update_means(store, START + SPAN + 100)
        prune(store, loads_before=START + 300.0, placements_before=0.0)
        assert store.loads.all().time.min() == START + 300.0
        assert len(store.loads.all()) == (SPAN - 300) // 10


def test_blocks_go_after_some_hours(tmp_path: Path) -> None:
    with Store.open(tmp_path / "db") as store:
        regular(store)
        update_means(store, START + SPAN + 100)
        update_means(store, START + 10 * packed.KEPT)
        assert blocks(store) == (packed.KEPT - packed.SETTLED) // packed.MINUTE
        assert len(store.loads.all()) == SPAN // 10


def written_by_hand(store: Store, **changed: float) -> None:
    row = {"node": "n0", "time": START + 33.0, "available_cpu": 0.5, "available_bandwidth": 90.0}
    with writing(store.engine) as connection:
        connection.execute(insert(table(LoadRow)), row | changed)


def of_another_type(store: Store) -> None:
    with writing(store.engine) as connection:
        connection.exec_driver_sql("INSERT INTO loads VALUES ('n0', ?, 'half', 90.0)", (START + SPAN + 4.0,))


def test_samples_that_cannot_be_are_not_read_whoever_wrote_them(tmp_path: Path) -> None:
    changes: list[Callable[[Store], None]] = [
        lambda store: written_by_hand(store, available_cpu=7.0, time=START + 31.0),
        lambda store: written_by_hand(store, available_cpu=-1.0, time=START + 32.0),
        lambda store: written_by_hand(store, available_bandwidth=math.inf),
        lambda store: written_by_hand(store, available_cpu=2.0, time=START + SPAN + 1.0),
        lambda store: written_by_hand(store, available_bandwidth=-1.0, time=START + SPAN + 2.0),
        lambda store: written_by_hand(store, available_bandwidth=math.inf, time=START + SPAN + 3.0),
        of_another_type,
    ]
    with Store.open(tmp_path / "db") as store:
        regular(store)
        clean, newest = as_rows(store.loads.all()), store.loads.newest(since=START)
        for change in changes:
            change(store)
        assert as_rows(store.loads.all()) == clean
        update_means(store, START + SPAN + 100)
        assert as_rows(store.loads.all()) == clean
        assert as_rows(store.loads.all(node="n0")) == [row for row in clean if row[0] == "n0"]
        assert store.loads.newest(since=START) == newest


def test_a_minute_that_got_a_sample_while_it_was_gathered_is_packed_the_next_time() -> None:
    with Store.open(":memory:") as store:
        store.loads.add([Load(START + k, "n0", 0.5, 90.0) for k in range(60)])
        with reading(store.engine) as connection:
            gathered = packed.gather(connection, int(START))
        store.loads.add([Load(START + 0.5, "n1", 0.25, 80.0)])
        with writing(store.engine) as connection:
            packed.pack(connection, [gathered])
        assert blocks(store) == 0
        assert len(store.loads.all()) == 61
        update_means(store, START + 100)
        assert blocks(store) > 0
        assert len(store.loads.all()) == 61
