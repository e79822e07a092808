"""Load that comes and goes on this host: processes that compute, and traffic over the loopback interface.

Spells of load and of quiet follow each other with random lengths; in a spell one or more spinners compute for a random
share of the time, and sometimes a stream of a random rate flows. The same seed gives the same spells. It ends when it
is asked to (SIGTERM, Ctrl-C) or with the process that started it.

    python examples/load.py --seed 7
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess

#: Mean length of a spell of load, and of quiet (s).
MEAN_LOAD, MEAN_QUIET = 12.0, 8.0
#: One period of a spinner that computes for a share of the time (s).
PERIOD = 0.02
CHUNK = 1 << 18


@dataclass(frozen=True)
class Spell:
    """A time of load: share of a processor for each spinner, rate of the stream (Mbit/s, 0 for none), seconds."""

    shares: tuple[float, ...]
    rate: float
    length: float


def draw(source: random.Random, processors: int) -> Spell:
    """Draw the next spell of load for a host of so many processors."""
    shares = tuple(source.uniform(0.3, 1.0) for _ in range(source.randint(1, processors)))
    rate = source.uniform(500, 4000) if source.random() < 0.5 else 0.0
    return Spell(shares, rate, max(0.5, source.expovariate(1 / MEAN_LOAD)))


def spin(share: float, parent: int) -> None:
    """Compute for a share of every period, until ended, or without the parent process."""
    while os.getppid() == parent:
        end = time.perf_counter() + share * PERIOD
        while time.perf_counter() < end:
            sum(range(200))
        time.sleep((1 - share) * PERIOD)


def stream(rate: float, parent: int) -> None:
    """Send so many Mbit/s over the loopback interface, until ended, or without the parent process."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sender = socket.create_connection(server.getsockname())
        receiver, _ = server.accept()
    buffer = bytearray(CHUNK)

    def drain() -> None:
        while receiver.recv_into(buffer):
            pass

    threading.Thread(target=drain, daemon=True).start()
    chunk, sent, begin = bytes(CHUNK), 0, time.perf_counter()
    while os.getppid() == parent:
        sender.sendall(chunk)
        sent += CHUNK
        time.sleep(max(0.0, 8e-6 * sent / rate - (time.perf_counter() - begin)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Load this host until asked to stop."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    source = random.Random(options.seed)
    processors = len(os.sched_getaffinity(0))
    parent = os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    fork = multiprocessing.get_context("fork")
    while os.getppid() == parent:
        spell = draw(source, processors)
        # A worker that is just being started when this process ends is not killed by it, so each checks for itself.
        workers: list[BaseProcess] = [
            fork.Process(target=spin, args=(share, os.getpid()), daemon=True) for share in spell.shares
        ]
        if spell.rate:
            workers.append(fork.Process(target=stream, args=(spell.rate, os.getpid()), daemon=True))
        for worker in workers:
            worker.start()
        try:
            time.sleep(spell.length)
        finally:
            for worker in workers:
                worker.kill()
                worker.join()
        time.sleep(source.expovariate(1 / MEAN_QUIET))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
