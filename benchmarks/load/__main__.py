"""``python -m benchmarks.load``: put the daemon under load and print what it stood."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.load import client, site

#: What is promised: 99 of 100 placements within so many seconds, memory (MB), and how little it may grow (a share).
P99, MEMORY, GROWTH = 0.020, 400.0, 0.02
#: Seconds before memory is watched: buffers fill and the database's cache warms up.
WARM = 20.0


def main() -> int:
    """Run it; 0 where all that is promised was kept."""
    parser = argparse.ArgumentParser(prog="benchmarks.load", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long (default 1)")
    parser.add_argument("--placements", type=float, default=300.0, help="placements a second (default 300)")
    parser.add_argument("--samples", type=float, default=5000.0, help="load samples a second (default 5000)")
    parser.add_argument("--mode", default="shadow", choices=("shadow", "advise", "act"))
    parser.add_argument("--running", type=int, default=0, help="jobs that run already and that placements share with")
    parser.add_argument("--folder", help="keep the site here, and take up one that was kept")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(options.folder or work)
        site.describe(folder, running=options.running)
        lengths = site.learned(folder)
        daemon = site.Daemon(folder, mode=options.mode)
        try:
            told = measured(daemon, options, lengths)
        finally:
            daemon.stop()
    if options.json:
        print(json.dumps(told))
    else:
        for name, value in told.items():
            print(f"{name:28} {value:.4g}" if isinstance(value, float) else f"{name:28} {value}")
    return 0 if all(told["kept"].values()) else 1


def measured(daemon: site.Daemon, options: argparse.Namespace, lengths: list[int]) -> dict[str, object]:
    """What the daemon stood."""
    memory: list[tuple[float, float]] = []
    began, used = time.monotonic(), daemon.cpu()
    own = time.process_time()

    def watch() -> None:
        memory.append((time.monotonic() - began, daemon.memory()))

    asked, sent = asyncio.run(
        client.load(daemon.socket, options.placements, options.samples, 60.0 * options.minutes, watch)
    )
    passed = time.monotonic() - began
    latency = np.quantile(asked.seconds, [0.5, 0.9, 0.99, 1.0]) if asked.seconds else np.zeros(4)
    warm = np.array([size for at, size in memory if at >= min(WARM, passed / 3)])
    part = max(1, warm.size // 5)
    growth = float(np.median(warm[-part:]) / np.median(warm[:part]) - 1.0)
    rates = len(asked.seconds) / passed, client.TOGETHER * len(sent.seconds) / passed
    return {
        "nodes": site.NODES,
        "applications": site.APPLICATIONS,
        "sorted lists": f"{min(lengths)} to {max(lengths)} models",
        "mode": options.mode,
        "running jobs": options.running,
        "seconds": passed,
        "placements a second": rates[0],
        "load samples a second": rates[1],
        "refused": asked.refused + sent.refused,
        "placement p50 (ms)": 1e3 * float(latency[0]),
        "placement p90 (ms)": 1e3 * float(latency[1]),
        "placement p99 (ms)": 1e3 * float(latency[2]),
        "placement longest (ms)": 1e3 * float(latency[3]),
        "loads p99 (ms)": 1e3 * float(np.quantile(sent.seconds, 0.99)) if sent.seconds else 0.0,
        "daemon processors used": (daemon.cpu() - used) / passed,
        "client processors used": (time.process_time() - own) / passed,
        "memory (MB)": float(warm.max()),
        "memory growth": growth,
        "kept": {
            "rates": rates[0] > 0.98 * options.placements and rates[1] > 0.98 * options.samples,
            "p99": float(latency[2]) <= P99,
            "memory": float(warm.max()) <= MEMORY,
            "flat": growth <= GROWTH,
            "nothing refused": asked.refused + sent.refused == 0,
        },
    }


if __name__ == "__main__":
    sys.exit(main())
