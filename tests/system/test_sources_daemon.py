"""Real sources of loads and the real daemon: Prometheus with node_exporter, an agent, Slurm's own view of its nodes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import waiting

from metasched.store.database.store import Store
from monitors.sources.power_history import PowerHistory
from monitors.sources.prometheus import Prometheus
from monitors.sources.slurm import Slurm
from tests.free_ports import free_port
from tests.service.daemons import learned_database
from tests.system import real_prometheus, real_slurm
from tests.system.real_daemon import ROOT, TIMEOUT, Daemon

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]
#: Daemons and agents take seconds to start.
until = partial(waiting.until, timeout=TIMEOUT, pause=0.1)

CLUSTERS = """
[[cluster]]
name = "east"
nodes = [{ names = "e[1-2]", processors = 4, available_bandwidth = 100.0 }]
"""


def report(daemon: Daemon, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(s for s in daemon.ask("GET", "/v1/status")["load_sources"] if s["name"] == name)
    return found


def node(daemon: Daemon, name: str) -> dict[str, Any]:
    nodes = [each for cluster in daemon.ask("GET", "/v1/clusters") for each in cluster["nodes"]]
    found: dict[str, Any] = next(each for each in nodes if each["node"] == name)
    return found


@pytest.mark.skipif(bool(real_prometheus.why_not()), reason=real_prometheus.why_not())
def test_a_site_with_prometheus_needs_no_agent(tmp_path: Path) -> None:
    """The daemon and ``rank`` count with what Prometheus says; when it dies, its samples grow old and it is named."""
    (tmp_path / "clusters.toml").write_text(CLUSTERS)
    (tmp_path / "metasched.db").write_bytes(learned_database())
    with real_prometheus.running(tmp_path) as prometheus:
        source = Prometheus(prometheus.url, label="nodename", window=10.0)
        (sample,) = until(lambda: source.read().samples)
        assert sample.node == "e1"
        assert 0 < sample.available_cpu <= 1
        assert abs(sample.time - time.time()) < 60

        table = (
            f'[[source]]\nkind = "prometheus"\nurl = "{prometheus.url}"\nname = "P"\nwindow = 10\nbandwidth = 77.5\n'
            f'names = {{ "{prometheus.instance}" = "e1" }}\nperiod = 0.5\n'
        )
        broken = f'[[source]]\nkind = "agent"\nurl = "http://127.0.0.1:{free_port()}"\nname = "gone"\nperiod = 0.5\n'
        daemon = Daemon(tmp_path, 'clusters = "clusters.toml"\n' + table + broken)
        try:
            daemon.start()
            until(lambda: report(daemon, "P")["nodes"])
            with Store.open(daemon.database) as store:
                until(lambda: len(store.loads.all(node="e1")) >= 3)
                stored = store.loads.all(node="e1")
            assert 0 < stored.available_cpu.min() <= stored.available_cpu.max() <= 1
            # The newest sample at this moment, whichever it is, is one that was stored, and it counts.
            seen = node(daemon, "e1")
            with Store.open(daemon.database) as store:
                assert seen["available_cpu"] in store.loads.all(node="e1").available_cpu.tolist()
            assert node(daemon, "e2")["available_cpu"] == 1.0
            asked = {"application": "cg", "problem_size": 1000, "processors": [1], "forecast": False, "exclude": "e2"}
            (best, *_) = daemon.ask("POST", "/v1/rankings", asked)["placements"]
            with Store.open(daemon.database) as store:
                assert best["nodes"] == ["e1"]
                assert best["available_cpu"] in store.loads.all(node="e1").available_cpu.tolist()
            assert until(lambda: report(daemon, "gone")["failures"])
            assert report(daemon, "P")["fault"] == ""

            (tmp_path / "live.toml").write_text(table)
            words = "rank --application cg --problem-size 1000 --clusters clusters.toml --processors 1 --exclude e2"
            done = subprocess.run(
                [sys.executable, "-m", "metasched", *words.split(), "--db", daemon.database, "--source", "live.toml",
                 "--json"],
                cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
            )  # fmt: skip
            answer = json.loads(done.stdout)
            assert [line for line in answer["warnings"] if line.startswith("P: ")] == []
            assert answer["placements"][0]["nodes"] == ["e1"]
            assert answer["placements"][0]["available_bandwidth"] != 100.0  # which is what the description says

            # An exporter that dies takes its samples with it; the server that dies is named, and the daemon goes on.
            prometheus.server.kill()
            until(lambda: "onnect" in report(daemon, "P")["fault"])
            age = node(daemon, "e1")["age"]
            until(lambda: node(daemon, "e1")["age"] > age + 1.0)
            assert daemon.ask("GET", "/v1/health")["status"] == "ok"
            assert daemon.ask("POST", "/v1/rankings", asked)["placements"]
        finally:
            daemon.stop()


@pytest.mark.skipif(bool(real_prometheus.why_not()), reason=real_prometheus.why_not())
def test_energy_comes_from_counters_that_node_exporter_reads_through_their_wraps(tmp_path: Path) -> None:
    """A made powercap counts 120 W and 100 W, and wraps around; the joules of a time are those that were counted."""
    zones = {"intel-rapl:0": ("package-0", 120.0), "intel-rapl:1": ("package-1", 100.0)}
    most, begin, stopped = 700.0, time.monotonic(), threading.Event()

    def write() -> None:
        for zone, (name, watts) in zones.items():
            folder = tmp_path / "sys/class/powercap" / zone
            folder.mkdir(parents=True, exist_ok=True)
            joules = watts * (time.monotonic() - begin) % most
            for file, text in (("name", name), ("max_energy_range_uj", f"{most * 1e6:.0f}"),
                               ("energy_uj", f"{joules * 1e6:.0f}")):  # fmt: skip
                (folder / f"{file}.new").write_text(f"{text}\n")
                (folder / f"{file}.new").replace(folder / file)

    def count() -> None:
        while not stopped.wait(0.02):
            write()

    write()
    counting = threading.Thread(target=count)
    counting.start()
    try:
        with real_prometheus.running(tmp_path, tmp_path / "sys") as prometheus:
            asked = PowerHistory(prometheus.url, label="nodename", window=5.0)
            until(lambda: asked.drawn(time.time() - 5.0, time.time())[0], timeout=60.0)
            start = time.time()
            time.sleep(20.0)
            end = time.time()
            time.sleep(3.0)
            found, fault = asked.drawn(start, end)
    finally:
        stopped.set()
        counting.join()
    assert fault == ""
    assert found["e1"].covers == "package"
    assert found["e1"].joules(start, end) == pytest.approx(220.0 * (end - start), rel=0.05)


def test_the_daemon_asks_an_agent_that_does_not_send(tmp_path: Path) -> None:
    (tmp_path / "clusters.toml").write_text(CLUSTERS)
    (tmp_path / "token").write_text("a secret of agents\n")
    port = free_port()
    (tmp_path / "agent.toml").write_text(
        f'node = "e2"\ninterval = 0.2\nspool = "{tmp_path}/spool.db"\nlisten = "127.0.0.1:{port}"\n'
    )
    tables = "".join(
        f'[[source]]\nkind = "agent"\nurl = "http://127.0.0.1:{port}"\nname = "{name}"\nperiod = 0.2\n{more}'
        for name, more in (("right", 'token_file = "token"\n'), ("without", ""))
    )
    daemon = Daemon(tmp_path, 'clusters = "clusters.toml"\n' + tables)
    words = [sys.executable, "-m", "metasched", "agent", str(tmp_path / "agent.toml")]
    agent = subprocess.Popen(
        words, cwd=ROOT, env=os.environ | {"METASCHED_AGENT_TOKEN_FILE": str(tmp_path / "token")}
    )  # fmt: skip
    try:
        daemon.start()
        with Store.open(daemon.database) as store:
            until(lambda: len(store.loads.all(node="e2")) >= 3)
        until(lambda: node(daemon, "e2")["age"] is not None)
        assert 0 <= node(daemon, "e2")["age"] < 60
        assert "401" in report(daemon, "without")["fault"]
        # The verb has become the agent alone: a fresh interpreter without the command line in memory.
        assert b"monitors.agent" in Path(f"/proc/{agent.pid}/cmdline").read_bytes()
        agent.send_signal(signal.SIGKILL)
        until(lambda: report(daemon, "right")["fault"])
    finally:
        agent.kill()
        agent.wait(TIMEOUT)
        daemon.stop()


@pytest.mark.skipif(bool(real_slurm.why_not()), reason=real_slurm.why_not())
def test_slurms_own_view_of_its_nodes_counts_where_no_monitor_runs(tmp_path: Path) -> None:
    with real_slurm.running(tmp_path / "slurm", hook=False) as slurm:
        configuration = slurm.environment["SLURM_CONF"]
        source = Slurm(configuration=configuration)
        until(lambda: len(source.read().samples) == len(real_slurm.NODES), timeout=120.0)
        daemon = Daemon(
            tmp_path,
            f'[[slurm]]\nname = "proof"\nconfiguration = "{configuration}"\n'
            f'[[source]]\nkind = "slurm"\nconfiguration = "{configuration}"\nbandwidth = 940.0\nperiod = 0.5\n',
        )
        try:
            daemon.start()
            until(lambda: report(daemon, "Slurm")["nodes"] == len(real_slurm.NODES))
            seen = until(lambda: found if (found := node(daemon, "b3"))["available_bandwidth"] == 940.0 else None)
            document = json.loads(slurm.run("sinfo", "--json"))["nodes"]
            assert all(each["cpu_load"] >= 0 for each in document)
            assert 0 < seen["available_cpu"] <= 1
            with Store.open(daemon.database) as store:
                assert seen["available_cpu"] in store.loads.all(node="b3").available_cpu.tolist()
        finally:
            daemon.stop()
