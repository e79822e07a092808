"""Prometheus and node_exporter as Debian ships them, started on free ports of the loopback interface."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.free_ports import free_port

EXPORTER, SERVER = shutil.which("prometheus-node-exporter"), shutil.which("prometheus")


def why_not() -> str:
    """Why they cannot be run here, empty where they can."""
    missing = [name for name in ("prometheus", "prometheus-node-exporter") if not shutil.which(name)]
    return f"not installed: {' '.join(missing)} (`make system-test` installs them as root on Debian)" if missing else ""


@dataclass(frozen=True)
class Prometheus:
    """A running server that scrapes one exporter every second."""

    url: str
    instance: str
    exporter: subprocess.Popen[bytes]
    server: subprocess.Popen[bytes]


@contextmanager
def running(folder: Path, sysfs: Path | None = None) -> Iterator[Prometheus]:
    """Both servers for the duration of a block; the exporter reads another ``/sys`` where one is given."""
    instance, port = f"127.0.0.1:{free_port()}", free_port()
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs:\n- job_name: node\n  static_configs:\n  - targets: ['{instance}']\n"
        "    labels: {nodename: e1}\n"
    )
    # What it misses on a host without systemd it says at every scrape.
    seen = [] if sysfs is None else [f"--path.sysfs={sysfs}"]
    command = [str(EXPORTER), f"--web.listen-address={instance}", *seen]
    exporter = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    words = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", "--log.level=error")
    server = subprocess.Popen([str(SERVER), *words, f"--web.listen-address=127.0.0.1:{port}"])
    try:
        yield Prometheus(f"http://127.0.0.1:{port}", instance, exporter, server)
    finally:
        for process in (exporter, server):
            process.terminate()
        for process in (exporter, server):
            process.wait(timeout=20)
