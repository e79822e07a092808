"""Available bandwidth as the probe says it, over links of known rate between network namespaces, beside a fixed 64 KB.

    sudo python -m benchmarks.sensors_network

Needs root, ``ip`` and ``tc``; says so and leaves where it has not got them. Each link is a pair of virtual interfaces
with a token bucket at either end; the truth is the bucket's rate less what Ethernet, IP and TCP headers take of it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from monitors.sensors.network.channel import Channel
from monitors.sensors.network.probe import BandwidthProbe, _transfer

#: Rates of the links (Mbit/s).
RATES = (10.0, 50.0, 100.0, 500.0, 1000.0)
#: Payload in a full Ethernet frame over the frame, with TCP's timestamps: what a transfer can get of the rate.
PAYLOAD = 1448 / 1514
PORT = 7071


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def link(rate: float) -> Iterator[tuple[str, str]]:
    """Two namespaces joined at this rate: name of the far one, its address."""
    tag = secrets.token_hex(2)
    near, far = f"ms-{tag}a", f"ms-{tag}b"
    try:
        for name in (near, far):
            run("ip", "netns", "add", name)
        run("ip", "link", "add", f"v{tag}a", "netns", near, "type", "veth", "peer", "name", f"v{tag}b", "netns", far)
        for name, interface, address in ((near, f"v{tag}a", "10.231.0.1/24"), (far, f"v{tag}b", "10.231.0.2/24")):
            run("ip", "-n", name, "address", "add", address, "dev", interface)
            run("ip", "-n", name, "link", "set", interface, "up")
            bucket = ("rate", f"{rate}mbit", "burst", f"{max(int(rate * 250), 3000)}b", "latency", "50ms")
            run("tc", "-n", name, "qdisc", "add", "dev", interface, "root", "tbf", *bucket)
        yield near, far
    finally:
        for name in (near, far):
            subprocess.run(("ip", "netns", "del", name), capture_output=True, check=False)


SERVE = """
import sys
from monitors.sensors.network.server import ProbeServer
ProbeServer(("10.231.0.2", {port}), {secret!r}).serve_forever()
"""
MEASURE = "from benchmarks.sensors_network import measure; measure({secret!r})"


def measure(secret: bytes, repeats: int = 5) -> None:
    """Inside the near namespace: print what adaptive probes and single transfers of 64 KB find."""
    probe = BandwidthProbe(secret)
    for _ in range(repeats):
        found = probe.measure("10.231.0.2", PORT)
        with Channel.call("10.231.0.2", PORT, secret) as channel:
            seconds, _ = _transfer(channel, 64 << 10, time.monotonic() + 10.0)
        print(found.bandwidth, 8 * (64 << 10) / seconds / 1e6, found.transferred, found.round_trip)


def judge(rate: float) -> np.ndarray:
    """Rows of (adaptive, fixed, bytes, round trip) for a link of this rate."""
    secret = secrets.token_bytes(32)
    with link(rate) as (near, far):
        inside = ("ip", "netns", "exec")
        server = subprocess.Popen((*inside, far, sys.executable, "-c", SERVE.format(port=PORT, secret=secret)))
        try:
            time.sleep(1.5)
            command = (*inside, near, sys.executable, "-c", MEASURE.format(secret=secret))
            answer = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        finally:
            server.terminate()
            server.wait()
    return np.array([line.split() for line in answer.stdout.splitlines()], dtype=float)


def main() -> int:
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
        print("skipped: needs root, ip and tc")
        return 0
    print(f"{'link':>12}{'truth':>10}{'adaptive':>10}{'64 KB':>10}{'sent':>12}{'round trip':>12}")
    errors = []
    for rate in RATES:
        rows, truth = judge(rate), rate * PAYLOAD
        adaptive, fixed, sent, round_trip = np.median(rows, axis=0)
        errors.append(np.abs(rows[:, :2] - truth).mean(axis=0) / rate)
        figures = f"{truth:>10.1f}{adaptive:>10.1f}{fixed:>10.1f}{sent / 1e3:>9.0f} kB{1e3 * round_trip:>9.2f} ms"
        print(f"{rate:>7.0f} Mb/s{figures}")
    adaptive, fixed = np.mean(errors, axis=0)
    print(f"mean absolute error over the link's rate: adaptive {adaptive:.1%} (aim 10 %), fixed 64 KB {fixed:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
