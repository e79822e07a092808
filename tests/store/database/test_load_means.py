"""Means of loads: right however late samples come, and still there when the samples are gone."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.records import Load
from metasched.store.database import load_blocks
from metasched.store.database.engine import writing
from metasched.store.database.load_means import FIVE_MINUTES, HOUR, mean_loads, roll_up, update_means
from metasched.store.database.retention import prune
from metasched.store.database.store import Store
from metasched.store.files.loads import Loads

START = 7200.0


def by_hand(loads: list[Load], step: int) -> dict[tuple[str, float], tuple[float, float]]:
    slots: dict[tuple[str, float], list[tuple[float, float]]] = {}
    for load in loads:
        values = (load.available_cpu, load.available_bandwidth)
        slots.setdefault((load.node, load.time // step * step), []).append(values)
    return {slot: tuple(np.mean(values, axis=0)) for slot, values in slots.items()}  # type: ignore[misc]


def as_slots(loads: Loads) -> dict[tuple[str, float], tuple[float, float]]:
    nodes = np.repeat(loads.nodes, np.diff(loads.offsets))
    values = zip(loads.available_cpu, loads.available_bandwidth, strict=True)
    return dict(zip(zip(nodes.tolist(), loads.time.tolist(), strict=True), values, strict=True))


def same(
    left: dict[tuple[str, float], tuple[float, float]], right: dict[tuple[str, float], tuple[float, float]]
) -> bool:
    return left.keys() == right.keys() and all(left[slot] == pytest.approx(right[slot]) for slot in left)


samples = st.lists(
    st.builds(
        Load,
        st.integers(0, 4 * HOUR).map(lambda offset: START + offset),
        st.sampled_from(["a", "b", "n/2"]),
        st.floats(0, 1),
        st.floats(0, 1000),
    ),
    min_size=1,
    max_size=60,
    unique_by=lambda load: (load.node, load.time),
)


@settings(max_examples=15, deadline=None)
@given(samples, st.data())
def test_means_are_those_of_the_samples_however_they_come(loads: list[Load], data: st.DataObject) -> None:
    late = data.draw(st.integers(0, len(loads)))
    with Store.open(":memory:") as store:
        store.loads.add(loads[late:])
        roll_up(store, START + 3 * HOUR)
        store.loads.add(loads[:late])
        roll_up(store, START + 4 * HOUR, since=START)
        for step in (FIVE_MINUTES, HOUR):
            found = as_slots(mean_loads(store, step, since=0.0, until=START + 5 * HOUR))
            assert same(found, by_hand(loads, step))


def steps_to_make_again(nodes: int) -> int:
    """Hundreds of SQLite's steps in which the means of some nodes are made a second time."""
    steps: list[None] = []
    with Store.open(":memory:") as store:
        store.loads.add([Load(START + 10.0 * k, f"n{node}", 0.5, 90.0) for node in range(nodes) for k in range(9)])
        roll_up(store, START + HOUR)
        with store.engine.connect() as connection:
            raw = connection.connection.driver_connection
        raw.set_progress_handler(lambda: steps.append(None), 100)  # type: ignore[union-attr]
        roll_up(store, START + HOUR, since=START)
    return len(steps)


def test_means_are_made_again_in_proportion_to_the_samples() -> None:
    few = steps_to_make_again(50)
    assert 0 < steps_to_make_again(400) < 12 * few


def regular(until: float) -> list[Load]:
    moments = np.arange(START, until, 60.0)
    return [Load(float(t), node, 0.5 + 0.4 * np.sin(t / 900), 90.0) for t in moments for node in ("a", "b")]


def test_what_is_not_rolled_up_yet_comes_from_the_samples(tmp_path: Path) -> None:
    loads = regular(START + HOUR)
    with Store.open(tmp_path / "db") as store:
        store.loads.add(loads)
        roll_up(store, START + HOUR / 2)
        found = as_slots(mean_loads(store, FIVE_MINUTES, since=START, until=START + HOUR))
    assert same(found, by_hand(loads, FIVE_MINUTES))


def test_means_stay_when_samples_are_let_go(tmp_path: Path) -> None:
    loads = regular(START + 6 * HOUR)
    with Store.open(tmp_path / "db") as store:
        store.loads.add(loads)
        gone = prune(store, loads_before=START + 5 * HOUR, placements_before=0.0)
        assert gone.loads == 2 * 5 * 60
        hourly = as_slots(mean_loads(store, HOUR, since=0.0, until=START + 6 * HOUR))
        prune(store, loads_before=START + 5 * HOUR, placements_before=0.0)
        assert as_slots(mean_loads(store, HOUR, since=0.0, until=START + 6 * HOUR)) == hourly
    assert same(hourly, by_hand(loads, HOUR))


def test_five_minutes_stay_ten_times_as_long_by_the_daemons_time_whatever_the_time_of_day(tmp_path: Path) -> None:
    now = time.time() + 100 * 24 * HOUR  # the time of day was set back
    loads = [Load(now - HOUR * age - 30.0, "a", 0.5, 90.0) for age in range(20)]
    with Store.open(tmp_path / "db") as store:
        store.loads.add(loads)
        update_means(store, now)
        prune(store, loads_before=now - HOUR, placements_before=0.0, now=now)
        kept = mean_loads(store, FIVE_MINUTES, since=0.0, until=now)
    assert len(kept) == 10


def test_hours_stay_when_their_five_minutes_are_let_go_too(tmp_path: Path) -> None:
    now = time.time() // HOUR * HOUR
    loads = [Load(now - 60.0 * age, "a", 0.5 + 0.4 * np.sin(age), 90.0) for age in range(30 * 60, 0, -1)]
    with Store.open(tmp_path / "db") as store:
        store.loads.add(loads)
        for _ in range(3):  # each time in the middle of a slot, whose other samples stay
            prune(store, loads_before=now - HOUR - 777.0, placements_before=0.0)
        # One that comes when all others of its slot are gone says nothing of it.
        store.loads.add([Load(loads[0].time + 1.0, "a", 0.0, 0.0)])
        update_means(store)
        prune(store, loads_before=now - HOUR - 777.0, placements_before=0.0)
        hours, minutes = (
            as_slots(mean_loads(store, step, since=0.0, until=now - HOUR)) for step in (HOUR, FIVE_MINUTES)
        )
    assert same(hours, {slot: mean for slot, mean in by_hand(loads, HOUR).items() if slot[1] < now - HOUR})
    expected = by_hand(loads, FIVE_MINUTES)
    last = now - 10 * HOUR
    assert all(minutes[slot] == pytest.approx(expected[slot]) for slot in expected if last <= slot[1] < now - HOUR)


def test_samples_that_cannot_be_count_in_no_mean(tmp_path: Path) -> None:
    loads = regular(START + HOUR)
    wrong = [(7.0, 90.0), (-1.0, 90.0), (0.5, float("inf")), (0.5, -1.0), ("half", 90.0), (0.5, "fast")]
    with Store.open(tmp_path / "db") as store:
        store.loads.add(loads)
        with writing(store.engine) as connection:
            for second, values in enumerate(wrong, start=1):
                connection.exec_driver_sql("INSERT INTO loads VALUES ('a', ?, ?, ?)", (START + second, *values))
        for _ in range(2):  # from the samples, then from what was made of them
            for step in (FIVE_MINUTES, HOUR):
                found = as_slots(mean_loads(store, step, since=START, until=START + HOUR))
                assert same(found, by_hand(loads, step))
            roll_up(store, START + HOUR)


def test_rolling_up_again_changes_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "db") as store:
        store.loads.add(regular(START + 2 * HOUR))
        roll_up(store, START + 2 * HOUR)
        once = as_slots(mean_loads(store, FIVE_MINUTES, since=0.0, until=START + 2 * HOUR))
        roll_up(store, START + 2 * HOUR)
        assert as_slots(mean_loads(store, FIVE_MINUTES, since=0.0, until=START + 2 * HOUR)) == once


@settings(max_examples=10, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 3 * HOUR), st.floats(0, 1)), max_size=5), min_size=1, max_size=3))
def test_keeping_up_makes_the_same_means_however_late_samples_come(batches: list[list[tuple[int, float]]]) -> None:
    now = time.time() // FIVE_MINUTES * FIVE_MINUTES
    stored: dict[float, Load] = {}
    with pytest.MonkeyPatch.context() as patch, Store.open(":memory:") as store:
        patch.setattr(load_blocks, "KEPT", 1200)  # each minute that is packed takes its time
        for batch in batches:
            loads = [Load(now - 60.0 - age, "a", cpu, 90.0) for age, cpu in batch]
            store.loads.add(loads)
            stored = {load.time: load for load in reversed(loads)} | stored
            update_means(store, now)
        update_means(store, now + 60.0)  # the last minute is settled
        for step in (FIVE_MINUTES, HOUR):
            found = as_slots(mean_loads(store, step, since=0.0, until=now))
            assert same(found, by_hand([*stored.values()], step))


def test_there_are_no_means_over_other_steps(tmp_path: Path) -> None:
    with Store.open(tmp_path / "db") as store, pytest.raises(ValueError, match="expected one of 300, 3600"):
        mean_loads(store, 60, since=0.0, until=1.0)
