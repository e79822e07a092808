"""Alert rules and the Grafana dashboard beside the real Prometheus: rules load, alerts fire, every query finds data."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from metasched.store.database.store import Store
from tests.free_ports import free_port
from tests.service.daemons import CLUSTERS, learned_database
from tests.system import real_prometheus
from tests.system.real_daemon import Daemon

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(280),
    pytest.mark.skipif(bool(real_prometheus.why_not()), reason=real_prometheus.why_not()),
]
DEPLOYED = Path(__file__).resolve().parents[2] / "deploy"
wait_for = partial(until, timeout=90.0, pause=0.3)
RULES = DEPLOYED / "prometheus" / "metasched-rules.yml"


@contextmanager
def prometheus(folder: Path, target: str, token: str) -> Iterator[str]:
    """The address of a Prometheus that asks the daemon every second and has loaded the rules."""
    (folder / "token").write_text(token)
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: ['{RULES}']\n"
        f"scrape_configs:\n- job_name: metasched\n  authorization: {{credentials_file: '{folder}/token'}}\n"
        f"  static_configs:\n  - targets: ['{target}']\n"
    )
    port = free_port()
    words = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", "--log.level=error")
    server = subprocess.Popen([str(real_prometheus.SERVER), *words, f"--web.listen-address=127.0.0.1:{port}"])
    try:
        yield f"http://127.0.0.1:{port}/api/v1"
    finally:
        server.terminate()
        server.wait(timeout=20)


def ask(url: str, path: str, **words: str) -> Any:
    try:
        with urllib.request.urlopen(f"{url}/{path}?{urllib.parse.urlencode(words)}", timeout=10) as answer:
            return json.load(answer)["data"]
    except OSError:
        return None


def queries() -> list[str]:
    """The queries of every panel, over the last ten seconds."""
    board = json.loads((DEPLOYED / "grafana" / "metasched.json").read_text())
    return [
        target["expr"].replace("$__rate_interval", "10s") for panel in board["panels"] for target in panel["targets"]
    ]


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_each_alert_fires_when_it_should_and_only_then() -> None:
    words = ["promtool", "test", "rules", "metasched-rules-test.yml"]
    done = subprocess.run(words, cwd=RULES.parent, capture_output=True, text=True, check=False)
    assert (done.returncode, "SUCCESS" in done.stdout + done.stderr) == (0, True), done.stderr
    text = RULES.read_text()
    named = set(re.findall(r"alert: (\w+)", text))
    assert len(named) == text.count("- alert:")
    assert {name for name in named if (RULES.parent / "metasched-rules-test.yml").read_text().count(name) < 2} == set()


def test_prometheus_loads_the_rules_and_finds_data_for_every_panel(tmp_path: Path) -> None:
    port = free_port()
    (tmp_path / "clusters.toml").write_text(CLUSTERS)
    (tmp_path / "metasched.db").write_bytes(learned_database())
    daemon = Daemon(
        tmp_path,
        'clusters = "clusters.toml"\n[periods]\npartitions = 1.0\n[[slurm]]\nname = "c"\nconfiguration = "/nowhere"\n',
        port=port,
    )
    with Store.open(daemon.database) as store:
        token = store.tokens.add("prometheus", "reader")
    daemon.start()
    try:
        with prometheus(tmp_path, f"127.0.0.1:{port}", token) as url:
            groups = wait_for(lambda: ask(url, "rules"))["groups"]
            assert [each["name"] for each in groups] == ["metasched"]

            def empty() -> list[str]:
                now = time.time()
                samples = [[at, 0.5, 90.0] for at in (now, now + 1e6)]
                daemon.ask("POST", "/v1/loads", {"node": "e1", "samples": samples})
                question = {"application": "cg", "problem_size": 900, "processors": [2]}
                daemon.ask("POST", "/v1/placements", question)
                return [query for query in queries() if not (ask(url, "query", query=query) or {}).get("result")]

            assert len(queries()) > 15
            wait_for(lambda: not empty())
            assert wait_for(lambda: ask(url, "query", query='up{job="metasched"}')["result"])[0]["value"][1] == "1"
            daemon.stop()
            wait_for(lambda: "MetaschedDown" in {each["labels"]["alertname"] for each in ask(url, "alerts")["alerts"]})
    finally:
        daemon.stop()
