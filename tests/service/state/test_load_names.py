"""Two schedulers may each have a node of one name: its loads are those of one machine only where that is configured."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from quiet_scheduler import QuietScheduler
from waiting import until

from metasched.jobs import EndedJob, Mark
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.records import InputError, Load, Run
from metasched.service.app import make_app
from metasched.service.configuration import Configuration, read_configuration
from metasched.service.daemon import Daemon
from metasched.service.learning.run_outcome import conclude
from metasched.service.state.load_names import LoadNames
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from monitors.sources.power_history import Drawn
from monitors.sources.slurm import parsed

NODES = ("n1", "n2")
WEST, EAST = {"name": "west"}, {"name": "east"}


class Scheduler(QuietScheduler):
    """One whose nodes are called n1 and n2, as those of another."""

    def __init__(self, name: str) -> None:
        self.name = name

    def partitions(self) -> Sequence[Partition]:
        return [Partition(ClusterState.make(f"{self.name}-p", NODES), self.name, self.name, "p")]

    def finished(self, since: float) -> Sequence[EndedJob]:
        return ()


@contextmanager
def running(folder: Path, **settings: Any) -> Iterator[Daemon]:
    configuration = Configuration.model_validate({"slurm": [WEST, EAST]} | settings)
    sources: Any = [Scheduler(name) for name in configuration.schedulers]
    with Store.open(folder / "metasched.db") as store:
        daemon = Daemon(configuration, store, sources)
        daemon.start()
        try:
            yield daemon
        finally:
            daemon.stop()


def loads(daemon: Daemon, scheduler: str) -> list[float]:
    partition = daemon.clusters.refresh(time.time()).find(scheduler, "p")
    assert partition is not None
    return [float(each) for each in partition.state.available_cpu]


@pytest.mark.parametrize(
    ("settings", "sent", "west", "east", "fault"),
    [
        ({}, {"n1": 0.2}, [1.0, 1.0], [1.0, 1.0], True),
        ({"shared_nodes": "n1"}, {"n1": 0.2, "n2": 0.4}, [0.2, 1.0], [0.2, 1.0], True),
        ({"shared_nodes": "n[1-2]"}, {"n1": 0.2, "n2": 0.4}, [0.2, 0.4], [0.2, 0.4], False),
        ({"slurm": [WEST | {"prefix": "w-"}, EAST]}, {"n1": 0.2, "w-n1": 0.7}, [0.7, 1.0], [0.2, 1.0], False),
        ({"slurm": [WEST | {"prefix": "w-"}]}, {"n1": 0.2, "w-n1": 0.7}, [0.7, 1.0], None, False),
        ({"slurm": [WEST]}, {"n1": 0.2, "n2": 0.4}, [0.2, 0.4], None, False),
    ],
)
def test_a_node_has_only_its_own_loads(
    settings: dict[str, Any], sent: dict[str, float], west: list[float], east: list[float] | None, fault: bool,
    tmp_path: Path,
) -> None:  # fmt: skip
    with running(tmp_path, **settings) as daemon:
        daemon.writes.loads([Load(time.time(), node, cpu, 90.0) for node, cpu in sent.items()]).result()
        daemon.clusters.note(Load(time.time(), node, cpu, 90.0) for node, cpu in sent.items())
        assert loads(daemon, "west") == west
        if east is not None:
            assert loads(daemon, "east") == east
        assert ("nodes" in daemon.faults()) == fault
        health = TestClient(make_app(daemon)).get("/v1/health").json()
        assert (health["status"] == "nodes", "doctor" in "".join(health["faults"])) == (fault, fault)


def test_what_is_learned_and_forecast_of_a_node_comes_from_its_own_loads(tmp_path: Path) -> None:
    now = time.time()
    with running(tmp_path, slurm=[WEST | {"prefix": "w-"}, EAST]) as daemon:
        daemon.writes.loads(
            Load(now - 30.0 * k, node, cpu, 90.0) for k in range(100) for node, cpu in (("n1", 0.2), ("w-n1", 0.7))
        ).result()
    with running(tmp_path, slurm=[WEST | {"prefix": "w-"}, EAST]) as daemon:
        for name, cpu in (("west", 0.7), ("east", 0.2)):
            ended = EndedJob(name, "7", "", "p", ("n1",), 1, now - 60.0, now, 0)
            run = conclude(ended, Mark("cg", 900.0), daemon.clusters, daemon.models, daemon.store).record.run
            assert run.min_avg_avail_cpu == pytest.approx(cpu)
            state = ClusterState.make(f"{name}-p", NODES)

            def expected(state: ClusterState = state) -> float:
                daemon.views.forecast()
                return float(daemon.load_forecaster.forecasts.over(state, 60.0).available_cpu[0])

            until(lambda expected=expected, cpu=cpu: abs(expected() - cpu) < 0.01)
            until(lambda name=name: len(daemon.history.of(f"{name}-p", day=True)) > 1)
            first, *_ = daemon.history.of(f"{name}-p", day=True)
            assert first.cpu[0] == pytest.approx(cpu)


def test_a_job_has_the_energy_of_its_own_nodes(tmp_path: Path) -> None:
    now = time.time()
    drawn = {
        node: Drawn("node", np.array([now - 10.0, now]), np.array([watts]))
        for node, watts in (("n1", 50.0), ("w-n1", 90.0))
    }
    meter: Any = SimpleNamespace(drawn=lambda start, end: (drawn, ""))
    with running(tmp_path, slurm=[WEST | {"prefix": "w-"}, EAST]) as daemon:
        daemon.jobs.energies.meters = (meter,)
        for name, watts in (("west", 90.0), ("east", 50.0)):
            job = daemon.jobs.energies.of(EndedJob(name, "7", "", "p", ("n1",), 1, now - 10.0, now, 0))
            assert job.energy == pytest.approx(10.0 * watts)


def test_loads_of_contested_nodes_are_kept_for_when_it_is_known_whose_they_are(tmp_path: Path) -> None:
    now = time.time()
    with running(tmp_path) as daemon:
        daemon.writes.loads([Load(now, "n1", 0.2, 90.0)]).result()
        ended = EndedJob("west", "7", "", "p", ("n1",), 1, now - 60.0, now + 1.0, 0)
        assert not conclude(ended, Mark("cg", 900.0), daemon.clusters, daemon.models, daemon.store).record.run.measured
    with running(tmp_path, shared_nodes="n[1-9]") as daemon:
        assert loads(daemon, "west") == loads(daemon, "east") == [0.2, 1.0]


class Silent(Scheduler):
    """One that does not answer until it is told to, and has then only the second of the nodes."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.answers = False

    def partitions(self) -> Sequence[Partition]:
        if not self.answers:
            raise RuntimeError("it is down")
        return [Partition(ClusterState.make(f"{self.name}-p", NODES[1:]), self.name, self.name, "p")]


@pytest.mark.parametrize("prefix", ["", "e-"])
def test_nodes_of_a_scheduler_that_is_down_at_the_start_are_contested_as_before(prefix: str, tmp_path: Path) -> None:
    now, west, east = time.time(), Scheduler("west"), Silent("east")
    settings = Configuration.model_validate({"slurm": [WEST, EAST | {"prefix": prefix}]})
    run = Run("cg", "east", 900.0, 1, 1.0, 90.0, 9.0, now - 60.0, ("n1",), extra={"scheduler": "east"})
    with Store.open(tmp_path / "metasched.db") as store:
        store.runs.add_all([RecordedRun(run)])
        store.loads.add([Load(now, "n1", 0.2, 90.0), Load(now, "n2", 0.4, 90.0)])
        daemon = Daemon(settings, store, [west, east])
        daemon.start()
        try:
            assert loads(daemon, "west") == [0.2 if prefix else 1.0, 0.4]
            east.answers = True
            daemon.views.ask(east)
            assert loads(daemon, "west") == [0.2, 0.4 if prefix else 1.0]
            daemon.clusters.expect("east", NODES)
            assert loads(daemon, "west") == [0.2, 0.4 if prefix else 1.0]
        finally:
            daemon.stop()


def test_a_scheduler_that_gives_a_node_up_leaves_it_to_the_other() -> None:
    names = LoadNames().having("west", NODES).having("east", NODES)
    assert names.of("east", NODES) == ("n1 of east", "n2 of east")
    assert names.having("west", ["n2"]).of("east", NODES) == ("n1", "n2 of east")
    assert names.having("west", NODES) is names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('shared_nodes = "n[1-"', "shared_nodes"),
        ("shared_nodes = 3", "shared_nodes"),
        ('[[slurm]]\nname = "west"\nprefix = "a b"', "prefix"),
        ('[[source]]\nkind = "slurm"\nprefix = "a\\nb"', "prefix"),
        ('[[source]]\nkind = "agent"\nurl = "http://n1:1"\nprefix = "w-"', "prefix is not a key of the kind agent"),
    ],
)
def test_mistakes_in_these_settings_are_told(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        read_configuration(tmp_path / "m.toml")


def test_a_source_of_one_scheduler_puts_its_prefix_before_the_names() -> None:
    settings = Configuration.model_validate(
        {
            "source": [
                {"kind": "prometheus", "url": "http://p:9090", "prefix": "w-", "power": True, "names": {"a:1": "n1"}}
            ]
        }
    )
    (table,) = settings.source
    power, source = table.power_history(), table.source()
    assert power is not None
    assert power.node("a:1") == source.node("a:1") == "w-n1"  # type: ignore[attr-defined]
    assert power.node("n2:9100") == "w-n2"
    nodes = {"nodes": [{"name": "n1", "cpus": 4, "cpu_load": 200}]}
    assert [each.node for each in parsed(nodes, 0.0, "w-").samples] == ["w-n1"]
