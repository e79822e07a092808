"""Prometheus and node_exporter as Debian ships them, started on free ports of the loopback interface."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitors.sources.prometheus import Prometheus

EXPORTER, SERVER = shutil.which("prometheus-node-exporter"), shutil.which("prometheus")
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not (EXPORTER and SERVER), reason="needs prometheus and prometheus-node-exporter"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server that scrapes one exporter every second: its URL and the exporter's instance."""
    folder: Path = tmp_path_factory.mktemp("prometheus")
    instance, port = f"127.0.0.1:{free_port()}", free_port()
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs:\n- job_name: node\n  static_configs:\n  - targets: ['{instance}']\n"
    )
    commands = (
        [EXPORTER, f"--web.listen-address={instance}", "--log.level=error"],
        [
            SERVER,
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ],
    )
    processes = [subprocess.Popen(command) for command in commands]
    try:
        yield f"http://127.0.0.1:{port}", instance
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=20)


def test_a_real_server_gives_the_load_of_its_node(server: tuple[str, str]) -> None:
    url, instance = server
    source = Prometheus(url, nodes={instance: "n0"}, window=10.0)
    deadline = time.monotonic() + 60
    while not (readings := source.read()).samples and time.monotonic() < deadline:
        time.sleep(0.5)
    assert readings.samples, readings.fault
    (sample,) = readings.samples
    assert sample.node == "n0"
    assert 0 < sample.available_cpu <= 1
    assert abs(sample.time - time.time()) < 30


def test_a_question_the_server_refuses_becomes_a_fault(server: tuple[str, str]) -> None:
    source = Prometheus(f"{server[0]}/nowhere")
    deadline = time.monotonic() + 30
    while "refused" in (fault := source.read().fault).lower() and time.monotonic() < deadline:
        time.sleep(0.5)  # the server is still starting
    assert fault
