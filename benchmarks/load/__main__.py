"""``python -m benchmarks.load``: put the daemon under load and print what it stood."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.load import client, site

#: What is promised: 99 of 100 placements within so many seconds, memory (MB), and how little it may grow (a share).
P99, MEMORY, GROWTH = 0.020, 400.0, 0.02
#: Processor time over that of the framework alone, and p99 of placements under twice what saturates it (s).
RATIO, P99_OVERLOADED = 3.0, 0.050
#: Batches whose median takes so long are late (s); the largest factor that the rates are raised by.
LATE, MOST = 1.0, 20.0
#: Seconds from which on the growth of memory is judged: of fewer it is that of single samples.
LONG = 60.0
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
    parser.add_argument(
        "--ratio", action="store_true", help="compare with the same requests answered empty by the same framework"
    )
    parser.add_argument(
        "--overload", action="store_true", help="find what saturates it, and put it under twice as much"
    )
    parser.add_argument("--folder", help="keep the site here, and take up one that was kept")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(options.folder or work)
        folder.mkdir(parents=True, exist_ok=True)
        site.describe(folder, running=options.running)
        lengths = site.learned(folder)
        kinds = {"overload": overloaded, "ratio": compared}
        kind = next((kinds[name] for name in kinds if getattr(options, name)), loaded)
        found = kind(folder, options, lengths)
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:40} {value:.4g}" if isinstance(value, float) else f"{name:40} {value}")
    return 0 if all(found["kept"].values()) else 1


def loaded(folder: Path, options: argparse.Namespace, lengths: list[int]) -> dict[str, Any]:
    """What the daemon stands at this load."""
    daemon = site.Server.daemon(folder, mode=options.mode)
    try:
        return measured(daemon, options, lengths)
    finally:
        daemon.stop()


def compared(folder: Path, options: argparse.Namespace, lengths: list[int]) -> dict[str, Any]:
    """The processor time of the daemon beside that of the framework alone, at the same load."""
    took = {}
    for name, make in (("framework", site.Server.empty), ("daemon", site.Server.daemon)):
        server = make(folder)
        try:
            asyncio.run(client.load(server.socket, options.placements, options.samples, 5.0, lambda: None))
            began, used = time.monotonic(), server.cpu()
            seconds = 60.0 * options.minutes
            asked, sent = asyncio.run(
                client.load(server.socket, options.placements, options.samples, seconds, lambda: None)
            )
            requests = len(asked.seconds) + len(sent.seconds)
            took[name] = server.cpu() - used
            print(f"{name:10} {took[name] / requests * 1e3:.3f} ms of processor time a request, "
                  f"{requests / (time.monotonic() - began):.0f} requests a second, "
                  f"{asked.put_off + sent.put_off} of them put off", file=sys.stderr)  # fmt: skip
        finally:
            server.stop()
    ratio = took["daemon"] / took["framework"]
    return {"processor time (s)": took["daemon"], "of the framework (s)": took["framework"], "ratio": ratio,
            "kept": {"ratio": ratio <= RATIO}}  # fmt: skip


def overloaded(folder: Path, options: argparse.Namespace, lengths: list[int]) -> dict[str, Any]:
    """Raise both rates until the samples are put off or late, then twice that: what becomes of the placements."""
    daemon = site.Server.daemon(folder, mode=options.mode)
    try:
        factor = 0.5
        while factor < MOST:
            rates = factor * options.placements, factor * options.samples
            _, sent = asyncio.run(client.load(daemon.socket, *rates, 10.0, lambda: None))
            done = client.TOGETHER * (len(sent.seconds) - sent.put_off) / 10.0
            if done < 0.9 * rates[1] or np.quantile(sent.seconds, 0.5) > LATE:
                break
            factor *= 1.25
        # Placements as asked: jobs are submitted no faster because nodes report more often.
        asked, sent = asyncio.run(
            client.load(daemon.socket, options.placements, 2.0 * rates[1], 60.0 * options.minutes, lambda: None)
        )
    finally:
        daemon.stop()
    p99 = float(np.quantile(asked.seconds, 0.99))
    return {
        "saturated by (placements, samples a second)": f"{rates[0]:.0f}, {rates[1]:.0f}",
        "asked": f"{options.placements:.0f}, {2.0 * rates[1]:.0f}",
        "placements refused": asked.refused + asked.put_off,
        "placement p99 (ms)": 1e3 * p99,
        "batches sent": len(sent.seconds),
        "batches put off": sent.put_off,
        "batches refused for good": sent.refused,
        "kept": {
            "p99": p99 <= P99_OVERLOADED,
            "no placement refused": asked.refused + asked.put_off == 0,
            "no sample lost": sent.refused == 0,
        },
    }


def measured(daemon: site.Server, options: argparse.Namespace, lengths: list[int]) -> dict[str, Any]:
    """What the daemon stood."""
    memory: list[tuple[float, float]] = []
    began, used = time.monotonic(), daemon.cpu()
    own = time.process_time()

    def watch() -> None:
        memory.append((time.monotonic() - began, daemon.memory()))

    asked, sent = asyncio.run(
        client.load(daemon.socket, options.placements, options.samples, 60.0 * options.minutes, watch)
    )
    passed, took = time.monotonic() - began, daemon.cpu() - used
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
        "refused": asked.refused + sent.refused + asked.put_off + sent.put_off,
        "placement p50 (ms)": 1e3 * float(latency[0]),
        "placement p90 (ms)": 1e3 * float(latency[1]),
        "placement p99 (ms)": 1e3 * float(latency[2]),
        "placement longest (ms)": 1e3 * float(latency[3]),
        "loads p99 (ms)": 1e3 * float(np.quantile(sent.seconds, 0.99)) if sent.seconds else 0.0,
        "daemon processors used": took / passed,
        "daemon processor time a placement (ms)": 1e3 * took / max(1, len(asked.seconds)),
        "load average of the machine": os.getloadavg()[0],
        "client processors used": (time.process_time() - own) / passed,
        "memory (MB)": float(warm.max()),
        "memory growth": growth,
        "kept": {
            "rates": rates[0] > 0.98 * options.placements and rates[1] >= 0.98 * options.samples,
            "p99": float(latency[2]) <= P99,
            "memory": float(warm.max()) <= MEMORY,
            **({"flat": growth <= GROWTH} if passed >= LONG else {}),
            "nothing refused": asked.refused + sent.refused + asked.put_off + sent.put_off == 0,
        },
    }


if __name__ == "__main__":
    sys.exit(main())
