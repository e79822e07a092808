"""Which model answers for which described cluster, and which loads count there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from known_model import Known

from metasched import described_placements
from metasched.described_placements import Scene, _from_files, _loaded, read_scene
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.running_jobs import RunningJob
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.forecast import RecordedLoads
from metasched.placement.ranking.co_scheduling import Coscheduled
from metasched.records import InputError, Load
from metasched.store.database.load_records import LoadRecords
from metasched.store.database.store import Store
from metasched.store.files import models as model_files
from metasched.store.files.loads import Loads
from monitors.forecasters.sets import HISTORY


@dataclass(frozen=True)
class Named(Known):
    application: str = "cg"
    cluster: str = "a"


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> dict[str, Named]:
    """Models by the name of their file."""
    known = {
        "cg-a": Named(work=1.0), "cg-b": Named(work=2.0, cluster="b"), "cg-z": Named(work=3.0, cluster="z"),
        "lu-a": Named(work=4.0, application="lu"), "ft-a": Named(work=5.0, application="ft"),
    }  # fmt: skip
    monkeypatch.setattr(model_files, "read_model", known.__getitem__)
    return known


def works(found: dict[Any, Any]) -> dict[Any, float]:
    return {key: predictor.work for key, predictor in found.items()}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("models", "own", "others"),
    [
        (["cg-a"], {"a": 1.0, "b": 1.0}, {}),  # one alone holds everywhere
        (["cg-z"], {"a": 3.0, "b": 3.0}, {}),
        (["cg-a", "cg-b"], {"a": 1.0, "b": 2.0}, {}),
        (["cg-a", "cg-z"], {"a": 1.0}, {}),  # of several each for its own
        (["b=cg-a"], {"b": 1.0}, {}),
        (["cg-a", "b=cg-z"], {"a": 1.0, "b": 3.0}, {}),
        (["a=cg-b", "b=cg-a"], {"a": 2.0, "b": 1.0}, {}),
        (["cg-a", "lu-a"], {"a": 1.0, "b": 1.0}, {("lu", "a"): 4.0, ("lu", "b"): 4.0}),
        (["cg-a", "b=lu-a"], {"a": 1.0, "b": 1.0}, {("lu", "b"): 4.0}),
    ],
)
def test_models_of_files_answer_for_their_clusters(
    models: list[str], own: dict[str, float], others: dict[tuple[str, str], float]
) -> None:
    found = _from_files("cg", models, ["a", "b"], {"lu"})
    assert (works(found[0]), works(found[1])) == (own, others)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("models", "said"),
    [
        (["ft-a"], "--model ft-a is of application ft, expected cg"),
        (["lu-a"], "no --model is of application cg"),
        (["c=cg-a"], "--model c=cg-a: cluster c is not described, expected one of a, b"),
        (["cg-a", "a=cg-b"], "--model a=cg-b: cluster a already has a model"),
        (["cg-z", "cg-b", "b=cg-a"], "--model b=cg-a: cluster b already has a model"),
    ],
)
def test_models_that_fit_nowhere_are_named(models: list[str], said: str) -> None:
    with pytest.raises(InputError, match=f"^{said}$"):
        _from_files("cg", models, ["a", "b"], {"lu"})


def test_a_file_whose_name_has_an_equals_sign_is_read_as_it_is(tmp_path: Path, files: dict[str, Named]) -> None:
    path = str(tmp_path / "b=cg-a")
    Path(path).touch()
    files[path] = Named(work=7.0)
    assert works(_from_files("cg", [path], ["a", "b"], set())[0]) == {"a": 7.0, "b": 7.0}


LOADS = Loads(
    nodes=("n1", "n2", "n3"),
    offsets=np.array([0, 3, 4, 4]),
    time=np.array([10.0, 20.0, 30.0, 25.0]),
    available_cpu=np.array([0.1, 0.2, 0.3, 0.4]),
    available_bandwidth=np.array([1.0, 2.0, 3.0, 4.0]),
)


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (9.9, []),
        (10.0, [Load(10.0, "n1", 0.1, 1.0)]),
        (24.9, [Load(20.0, "n1", 0.2, 2.0)]),
        (25.0, [Load(20.0, "n1", 0.2, 2.0), Load(25.0, "n2", 0.4, 4.0)]),
        (99.0, [Load(30.0, "n1", 0.3, 3.0), Load(25.0, "n2", 0.4, 4.0)]),
    ],
)
def test_the_last_load_of_each_node_until_then_counts(now: float, found: list[Load]) -> None:
    assert LOADS.newest(now) == tuple(found)


@pytest.mark.parametrize(("at", "now", "cpu", "age"), [(None, 30.0, 0.3, 0.0), (24.0, 24.0, 0.2, 4.0)])
def test_recorded_loads_count_at_a_time_or_at_their_end(
    at: float | None, now: float, cpu: float, age: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metasched.store.files.loads.read_loads", lambda source: LOADS)
    described = [ClusterState.make("c", ["n1", "n9"])]
    for forecast in (False, True):
        states, recorded = _loaded(described, "loads.csv", at, None, forecast=forecast)
        assert (states[0].available_cpu[0], states[0].age[0]) == (cpu, age)
        assert (recorded and recorded.now) == (now if forecast else None)


DAY, NOW = 86_400.0, 500_000.0


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], str]:
    """Makes a database of a day and an hour of two nodes until ``NOW``, sampled at some pace (s); one was silent."""
    monkeypatch.setattr(described_placements, "time", SimpleNamespace(time=lambda: NOW))

    def made(pace: float) -> str:
        source, path = np.random.default_rng(3), str(tmp_path / f"{pace:g}.db")
        with Store.open(path) as store:
            store.loads.add(
                Load(at, node, float(source.uniform(0.1, 1.0)), float(source.uniform(10, 90)))
                for node, until in (("n1", NOW), ("n2", NOW), ("silent", NOW - 50_000.0), ("gone", NOW - DAY - 300.0))
                for at in np.arange(NOW - DAY - 3600.0, until + pace / 2, pace).tolist()
            )
        return path

    return made


def test_of_the_store_the_newest_loads_of_a_day_count(stored: Callable[[float], str]) -> None:
    described = ClusterState.make("c", ["n1", "silent", "gone", "new"])
    [state], recorded = _loaded([described], "store", None, stored(100.0), forecast=False)
    assert state.age.tolist() == [0.0, 50_000.0, 0.0, 0.0]
    assert (state.available_cpu < 1.0).tolist() == [True, True, False, False]
    assert recorded is None
    [earlier], _ = _loaded([described], "store", NOW - 150.0, stored(100.0), forecast=False)
    assert earlier.age[:2].tolist() == [50.0, 49_850.0]


@pytest.mark.parametrize("pace", [20.0, 300.0])
def test_forecasts_by_the_store_are_those_by_all_that_was_recorded(pace: float, stored: Callable[[float], str]) -> None:
    described = [ClusterState.make("c", ["n1", "n2"])]
    path = stored(pace)
    [state], recorded = _loaded(described, "store", None, path, forecast=True)
    with Store.open(path) as store:
        loads = store.loads.all(since=NOW - DAY, until=NOW + 1.0)
    times, cpu, bandwidth = loads.grid()
    whole = RecordedLoads(times, loads.nodes, cpu, bandwidth, NOW)
    assert recorded is not None
    for horizon in (60.0, 3600.0):
        found, expected = recorded(state, horizon), whole(state, horizon)
        assert found.available_cpu == pytest.approx(expected.available_cpu)
        assert found.available_bandwidth == pytest.approx(expected.available_bandwidth)
    assert HISTORY < recorded.time.size < 2 * HISTORY or recorded.time.size == times.size


def test_no_more_of_the_store_is_read_than_forecasts_look_back(
    stored: Callable[[float], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, every, own = list[float](), LoadRecords.all, threading.get_ident()

    def noted(self: LoadRecords, **span: Any) -> Loads:
        if threading.get_ident() == own:  # daemons of other tests may read theirs meanwhile
            read.append(span["since"])
        return every(self, **span)

    monkeypatch.setattr(LoadRecords, "all", noted)
    paths = {pace: stored(pace) for pace in (20.0, 300.0)}
    for pace, back in ((20.0, 4.0), (300.0, 24.0)):
        _loaded([ClusterState.make("c", ["n1"])], "store", None, paths[pace], forecast=True)
        assert len(read) == 2
        assert min(read) >= NOW - back * 3600.0
        read.clear()


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"loads": "l.csv", "source": Path("s.toml")}, "both --loads and --source are given, expected one of them"),
        ({"at": 7.0}, "--at is given without --loads"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[[cluster]]\nname = "a"\nnodes = [{ names = "n[1-2]" }]\n')
    with pytest.raises(InputError, match=f"^{said}$"):
        read_scene("cg", tmp_path / "c.toml", models=["cg-a"], **options)
    scene = read_scene("cg", tmp_path / "c.toml", models=["cg-a"])
    assert ([each.name for each in scene.clusters], works(scene.predictors), works(dict(scene.others))) == (
        ["a"], {"a": 1.0}, {("cg", "a"): 1.0},
    )  # fmt: skip
    assert scene.sharing(100.0)[1] == {}


def test_contention_counts_a_silent_node_as_placements_do() -> None:
    cluster = ClusterState.make("a", ["n1", "n2", "n3"], available_cpu=[0.4, 0.8, 0.9], age=[0.0, 0.0, 600.0])
    job = RunningJob(("n1", "n3"), (1, 1), 60.0, 0.0)
    scene = Scene((cluster,), Constraints(), {}, {"a": (job,)})
    for options, expected in (((), [0.4, 0.8, 0.5]), ((900.0,), [0.4, 0.8, 0.9])):
        contention, running = scene.sharing(100.0, *options)
        assert isinstance(contention, Coscheduled)
        assert contention.clusters["a"].available_cpu.tolist() == pytest.approx(expected)
        assert running == {"a": (job,)}
