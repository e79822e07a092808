"""What the agent costs a node, beside node_exporter scraped at the same pace in the same time.

    python -m benchmarks.agent_cost [--minutes 10]

Prints processor time as a share of one core, start-up left out, and the largest resident memory. The agent sends to a
daemon that takes everything, and probes the CPU as it does by default.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import psutil

#: What start-up costs is not what running costs.
SETTLE = 15.0
INTERVAL = 10.0


class Intake(BaseHTTPRequestHandler):
    """A daemon that takes everything."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Say that all was taken."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing to say."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    minutes = parser.parse_args().minutes
    daemon = HTTPServer(("127.0.0.1", 0), Intake)
    threading.Thread(target=daemon.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        fields = {
            "METASCHED_AGENT_DAEMON": f"http://127.0.0.1:{daemon.server_port}",
            "METASCHED_AGENT_SPOOL": f"{folder}/spool.db",
            "METASCHED_AGENT_INTERVAL": str(INTERVAL),
            "OPENBLAS_NUM_THREADS": "1",
            "MALLOC_ARENA_MAX": "2",
        }
        running = {
            "metasched agent": subprocess.Popen([sys.executable, "-m", "monitors.agent"], env=os.environ | fields)
        }
        exporter, port = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter"), free_port()
        if exporter:
            command = [exporter, f"--web.listen-address=127.0.0.1:{port}"]
            running["node_exporter"] = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            time.sleep(SETTLE)
            processes = {name: psutil.Process(child.pid) for name, child in running.items()}
            before = {name: sum(process.cpu_times()[:2]) for name, process in processes.items()}
            resident = dict.fromkeys(processes, 0)
            start = time.monotonic()
            while time.monotonic() - start < 60 * minutes:
                if exporter:
                    httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=10)
                for name, process in processes.items():
                    resident[name] = max(resident[name], process.memory_info().rss)
                time.sleep(INTERVAL)
            elapsed = time.monotonic() - start
            for name, process in processes.items():
                share = (sum(process.cpu_times()[:2]) - before[name]) / elapsed
                limit = " (limits 0.1 %, 60 MB)" if name == "metasched agent" else ""
                print(f"{name:<16} {share:.3%} of one core, {resident[name] / 1e6:.1f} MB resident{limit}")
        finally:
            for child in running.values():
                child.terminate()
                child.wait(timeout=20)


if __name__ == "__main__":
    main()
