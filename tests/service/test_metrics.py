"""What the daemon tells Prometheus: all that alerts and panels ask for, each fault, and whom it has not heard."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from waiting import until

from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.records import Load
from metasched.service.daemon import Daemon
from metasched.service.state.live_clusters import LiveClusters
from metasched.store.database.store import Store
from tests.service.daemons import running
from tests.service.state.test_write_queue import placement

DEPLOYED = Path(__file__).resolve().parents[2] / "deploy"
SUFFIX = re.compile(r"_(bucket|sum|count|created)$")
PERIODS = {"partitions": 20.0, "loads": 0.1}
SOURCE = {"kind": "agent", "url": "http://127.0.0.1:9", "name": "gone", "period": 300.0}


def shown(daemon: Daemon) -> dict[str, float]:
    lines = daemon.metrics.exposition().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


@pytest.mark.parametrize("file", ["prometheus/metasched-rules.yml", "grafana/metasched.json"])
def test_alerts_and_panels_ask_for_metrics_that_there_are(file: str, tmp_path: Path) -> None:
    text = (DEPLOYED / file).read_text()
    asked = {SUFFIX.sub("", name) for name in re.findall(r"metasched_\w+", " ".join(expressions(text)))}
    with running(tmp_path, slurm=[{"name": "c", "configuration": "/nowhere"}]) as daemon:
        described = re.findall(r"^# TYPE (\w+) ", daemon.metrics.exposition().decode(), re.MULTILINE)
    assert len(asked) > 8
    assert asked - {SUFFIX.sub("", each) for each in described} == set()


def expressions(text: str) -> list[str]:
    if text.startswith("{"):
        return [target["expr"] for panel in json.loads(text)["panels"] for target in panel["targets"]]
    return re.findall(r"expr: ((?:.|\n)*?)\n +(?:for|labels):", text)


def test_each_fault_of_health_is_shown_whether_it_is_there_or_not(tmp_path: Path) -> None:
    # However busy the host is, no view is late.
    with running(tmp_path, periods={"loads": 60.0}) as daemon:
        before = shown(daemon)
        until(lambda: daemon.work.idle)  # the check at the start would find nothing afterwards
        daemon.upkeep.damage = "page 3"
        (tmp_path / "metasched.db").rename(tmp_path / "away.db")
        with pytest.raises(Exception, match="put it back"):
            daemon.writes.loads([Load(1.0, "e1", 0.5, 90.0)]).result(60.0)
        after = shown(daemon)
        (tmp_path / "away.db").rename(tmp_path / "metasched.db")
    faults = {name: f'metasched_fault{{fault="{name}"}}' for name in ("damaged", "database", "late", "clock", "nodes")}
    assert {name for name in before if name.startswith("metasched_fault")} == {*faults.values()}
    assert [before[line] for line in faults.values()] == [0.0] * 5
    assert {name: after[line] for name, line in faults.items()} == {
        "damaged": 1.0, "database": 1.0, "late": 0.0, "clock": 0.0, "nodes": 0.0
    }  # fmt: skip


def test_schedulers_and_sources_show_how_long_they_are_silent_and_how_often_they_are_asked(tmp_path: Path) -> None:
    slurm = [{"name": "c", "configuration": "/nowhere"}]
    with running(tmp_path, learned=False, slurm=slurm, source=[SOURCE], periods=PERIODS) as daemon:
        never = shown(daemon)
        daemon.clusters.put("c", [], daemon.clock.now() - 70.0)
        heard = shown(daemon)
    for name, period in (("c", 20.0), ("gone", 300.0)):
        assert never[f'metasched_source_age_seconds{{source="{name}"}}'] == float("inf")
        assert never[f'metasched_source_period_seconds{{source="{name}"}}'] == period
        assert f'metasched_source_failures_total{{source="{name}"}}' in never
    assert 70.0 <= heard['metasched_source_age_seconds{source="c"}'] < 190.0


def test_who_follows_asks_no_source_of_loads_and_shows_none_as_silent(tmp_path: Path) -> None:
    with running(tmp_path, learned=False, source=[SOURCE]) as daemon:
        assert shown(daemon)["metasched_leads"] == 1.0
        assert [each.name for each in daemon.load_sources.reports()] == ["gone"]
        with Store.open(tmp_path / "metasched.db") as store:
            follower = Daemon(daemon.configuration, store)
            sources = follower._load_sources(daemon.configuration.source)
            assert (sources.names, sources.reports()) == (("gone",), ())


def test_only_nodes_that_are_up_and_were_heard_are_silent() -> None:
    clusters, now = LiveClusters(), 1000.0
    state = ClusterState.make("c", ["n1", "n2", "n3", "n4"], up=[True, True, False, True])
    # Two partitions share their nodes.
    clusters.put("s", [Partition.of(state), Partition.of(state)], now)
    clusters.note([Load(990.0, "n1", 0.5, 90.0), Load(600.0, "n2", 0.5, 90.0), Load(600.0, "n3", 0.5, 90.0)])
    assert clusters.refresh(now).silent() == 1


def test_placements_that_are_kept_for_a_database_that_takes_nothing_are_waiting(tmp_path: Path) -> None:
    with running(tmp_path, periods=PERIODS) as daemon:
        (tmp_path / "metasched.db").rename(tmp_path / "away.db")
        daemon.writes.placements([placement(1)])
        until(lambda: daemon.writes.failing)
        assert shown(daemon)["metasched_batches_to_write"] == 1.0
        (tmp_path / "away.db").rename(tmp_path / "metasched.db")
