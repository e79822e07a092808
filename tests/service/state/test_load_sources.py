"""Sources of loads in the daemon: screened, stored and counted with like agents' samples; none stops another."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from odd_servers import drip, prometheus, serving
from waiting import until

from metasched.client.live_loads import with_live_loads
from metasched.placement.clusters.state import ClusterState
from metasched.placement.loads.sampled import Sampled, sampled
from metasched.records import InputError
from metasched.service.configuration import read_configuration
from metasched.service.dashboard.health import checks
from metasched.service.state.load_sources import UNHEARD, LoadSources
from metasched.store.files.sources import read_sources
from monitors.sources.contract import Readings, Sample
from monitors.sources.screening import Rules
from monitors.sources.settings import SourceTable
from tests.service.daemons import running

URL = "http://127.0.0.1:9"


class Said:
    """A source that says what a function says."""

    def __init__(self, name: str, read: Callable[[], Readings]) -> None:
        self.name, self.read = name, read


@pytest.fixture
def hang() -> Iterator[Callable[[], Readings]]:
    """Answers only when the test is over."""
    over = threading.Event()

    def read() -> Readings:
        over.wait(120.0)
        return Readings()

    yield read
    over.set()


def fail() -> Readings:
    raise MemoryError("out of everything\nat once")


def test_one_source_that_raises_or_hangs_does_not_stop_the_others(
    hang: Callable[[], Readings], monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter(range(1, 1_000_000))
    reads = {
        "hanging": hang,
        "raising": fail,
        "sound": lambda: Readings((Sample("n0", float(next(moments)), 0.5, 90.0),)),
    }
    monkeypatch.setattr(SourceTable, "source", lambda table: Said(table.name, reads[table.name]))
    tables = [SourceTable(kind="prometheus", url=URL, name=name, period=0.1) for name in reads]
    taken, failed = [], []

    def take(table, own, samples, before) -> Sampled:
        found = sampled(samples, time.time(), known=lambda n: True, rules=lambda n: Rules(), bandwidth=lambda n: None)
        taken.extend(found.loads)
        return found

    sources = LoadSources(tables, take, failed.append)
    sources.start()
    until(lambda: len(taken) >= 3 and len(failed) >= 3)
    hanging, raising, sound = sources.reports()
    sources.stop()
    assert set(failed) == {"raising"}
    assert (sound.fault, sound.nodes, sound.failures) == ("", 1, 0)
    assert sound.well(sound.answered_at or 0.0)
    assert raising.failures >= 3
    assert raising.fault == "MemoryError: out of everything at once"
    assert (hanging.answered_at, hanging.well(time.time())) == (None, False)
    assert raising.as_dict(time.time())["age"] is None


def test_two_sources_of_one_name_are_refused() -> None:
    tables = [SourceTable(kind="prometheus", url=URL)] * 2
    with pytest.raises(InputError, match="two sources are called Prometheus"):
        LoadSources(tables, lambda *_: Sampled(()), lambda name: None)


def test_nodes_that_are_none_are_refused_at_the_start() -> None:
    with pytest.raises(InputError, match="source Slurm: nodes"):
        LoadSources([SourceTable(kind="slurm", nodes="n[1-")], lambda *_: Sampled(()), lambda name: None)


def test_what_cannot_be_is_refused_and_counted_as_an_agents_samples_are() -> None:
    now = 1000.0
    said = [
        Sample("n0", now - 5, 0.5, 90.0),
        Sample("n1", now + 3600, 0.5, 90.0),
        Sample("n2", now - 5, 0.5, 1e9),
        Sample("n3", now - 9e9, 0.5, 90.0),
        Sample("elsewhere", now, 0.5, 90.0),
        Sample("again", now - 5, 0.5, 90.0),
    ]
    found = sampled(
        said,
        now,
        known=lambda node: node != "elsewhere",
        rules=lambda node: Rules(bandwidth=1000.0, oldest=86_400.0),
        bandwidth=lambda node: None,
        taken={"again": now - 5},
    )
    assert [load.node for load in found.loads] == ["n0"]
    assert dict(found.screened.refused) == {"from the future": 1, "above capacity": 1, "too old": 1}
    assert (found.nodes, found.foreign) == (5, 1)
    assert found.fault.startswith("samples were refused: ")


def test_a_source_that_knows_none_of_our_nodes_says_so() -> None:
    said = [Sample("10.0.0.1", 1.0, 0.5, 90.0)]
    rules = {"rules": lambda n: Rules(), "bandwidth": lambda n: None}
    found = sampled(said, 2.0, known=lambda node: False, **rules)  # type: ignore[arg-type]
    assert "it reports 1 node, such as 10.0.0.1; none is known here: check nodes, names and label" in found.fault


def seen(cpu_idle: float, age: float = 0.0, **others: float) -> dict[str, float]:
    return {"idle": cpu_idle, "processors": 1.0, "runnable": 1.0, "time": time.time() - age} | others


def test_placements_count_with_what_prometheus_says(tmp_path: Path) -> None:
    nodes = {f"e{number}": seen(1.0, spare=50e6 / 8) for number in (1, 2, 3)} | {"mail": seen(0.0, spare=1.0)}
    nodes["e4"] = seen(0.0, age=120.0)  # and its link tells no speed
    with serving(prometheus(nodes)) as url, serving(drip) as slow:
        tables = [
            {"kind": "prometheus", "url": url, "name": "P", "period": 0.1, "bandwidth": 80.0},
            {"kind": "prometheus", "url": slow, "name": "slow", "period": 0.1, "timeout": 0.3},
            {"kind": "agent", "url": URL, "name": "gone", "period": 0.1},
        ]
        with running(tmp_path, learned=False, source=tables, periods={"loads": 0.1}) as daemon:
            until(lambda: [r.failures > 1 for r in daemon.load_sources.reports()] == [False, True, True])
            until(lambda: daemon.clusters.view.partitions[0].state.available_bandwidth[0] == 50.0)
            east, west = (each.state for each in daemon.clusters.view.partitions)
            assert east.available_cpu.tolist() == [1.0, 1.0, 1.0, 0.5]
            assert east.available_bandwidth.tolist() == [50.0, 50.0, 50.0, 80.0]
            assert 115.0 < east.age[3] < 240.0
            assert max(east.age[:3]) < 100.0
            assert west.available_cpu.tolist() == [0.5] * 4
            # What was scraped once is stored once, however often it is reported.
            before = daemon.metrics.loads._value.get()
            asked = daemon.load_sources.reports()[0].answered_at
            until(lambda: (daemon.load_sources.reports()[0].answered_at or 0) > (asked or 0) + 0.3)
            assert daemon.metrics.loads._value.get() == before == 4
            assert len(daemon.store.loads.all(node="e4")) == 1
            exposed = daemon.metrics.exposition().decode()
            assert 'metasched_source_age_seconds{source="gone"} +Inf' in exposed
            assert 'metasched_source_failures_total{source="P"} 0.0' in exposed
            lines = {check.name: check for check in checks(daemon, time.time())}
            assert lines["source P"].well
            assert "4 nodes" in lines["source P"].found
            assert not lines["source slow"].well
            assert "no whole answer within 0.3 s" in lines["source slow"].found


def test_a_source_may_speak_only_for_the_nodes_that_its_table_names(tmp_path: Path) -> None:
    nodes = {f"e{number}": seen(0.0, spare=50e6 / 8) for number in (1, 2)}
    with serving(prometheus(nodes)) as url:
        tables = [{"kind": "prometheus", "url": url, "period": 0.1, "nodes": "e[2-3]"}]
        with running(tmp_path, learned=False, source=tables) as daemon:
            until(lambda: daemon.clusters.latest)
            assert set(daemon.clusters.latest) == {"e2"}


def test_sources_stand_in_the_configuration_or_in_the_description(tmp_path: Path) -> None:
    table = f'[[source]]\nkind = "agent"\nurl = "{URL}"\ntoken_file = "token"\n'
    (tmp_path / "c.toml").write_text(table)
    (tmp_path / "wrong.toml").write_text("[[source]]\nkind = 'agent'\n")
    (tmp_path / "none.toml").write_text("[[sources]]\n")
    [configured] = read_configuration(tmp_path / "c.toml").source
    assert configured.token_file == tmp_path / "token"
    assert read_sources(tmp_path / "c.toml") == (configured,)
    for name, message in (("wrong", "url of the kind agent is ''"), ("none", "source is missing")):
        with pytest.raises(InputError, match=message):
            read_sources(tmp_path / f"{name}.toml")
    with pytest.raises(InputError, match=r"wrong\.toml: source: url of the kind agent"):
        read_configuration(tmp_path / "wrong.toml")
    described = "[[cluster]]\nname = 'east'\nnodes = [{ names = 'e1' }]\n" + table
    with running(tmp_path, learned=False, clusters=described) as daemon:
        assert [report.name for report in daemon.load_sources.reports()] == [f"agent {URL}"]


def test_a_source_that_may_take_longer_than_its_period_is_not_unheard_meanwhile() -> None:
    def well(age: float, timeout: float) -> bool:
        table = SourceTable(kind="agent", url=URL, name="a", period=5.0, timeout=timeout)
        sources = LoadSources([table], lambda *_: Sampled(()), lambda name: None)
        return replace(sources._reports["a"], answered_at=0.0).well(age)

    late = UNHEARD * 5.0 + 1.0
    assert (well(late - 2.0, 1.0), well(late, 1.0), well(late, 20.0)) == (True, False, True)


def test_live_loads_without_a_daemon_carry_their_age_and_faults_are_warnings() -> None:
    cluster = ClusterState.make("east", ["e1", "e2", "e3"], available_bandwidth=100.0)
    nodes = {"e1": seen(0.0, age=400.0), "e2": seen(1.0, age=-20.0)}
    with serving(prometheus(nodes)) as url:
        tables = [SourceTable(kind="prometheus", url=url), SourceTable(kind="agent", url=URL, name="gone")]
        (found,), warnings = with_live_loads([cluster], tables, {"e1": 80.0, "e2": 80.0})
        of_one = [SourceTable(kind="prometheus", url=url, nodes="e1")]
        (partly,), _ = with_live_loads([cluster], of_one, {"e1": 80.0, "e2": 80.0})
    assert partly.available_bandwidth.tolist() == [80.0, 100.0, 100.0]
    assert found.available_cpu.tolist() == [0.5, 1.0, 1.0]
    assert found.available_bandwidth.tolist() == [80.0, 80.0, 100.0]
    assert 395.0 < found.age[0] < 500.0
    assert found.age[1:].tolist() == [0.0, 0.0]
    assert [warning.partition(":")[0] for warning in warnings] == ["gone"]
    assert not math.isnan(found.available_bandwidth.sum())
