"""The true share of a processor for a moment: :func:`spin` computes continuously and measures its progress.

Threads hash, which sets Python's lock free, so that k of them run on k processors as k processes would. The share is
processor time over wall-clock time; where two processors share a core, how fast the work went is counted too.
"""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass
from threading import BrokenBarrierError

#: Hashing rounds between two readings of the clock: about a quarter of a millisecond.
_ROUNDS = 500


@dataclass(frozen=True, slots=True)
class Spin:
    """The result of a probe of the processor.

    Parameters
    ----------
    share : processor time each thread got over wall-clock time, the mean over the threads, in (0, 1].
    pace : work per second of processor time, in no unit: two spins' paces can be compared.
    cost : processor time that the spin took (s).
    """

    share: float
    pace: float
    cost: float


def spin(seconds: float = 0.2, threads: int = 1) -> Spin:
    """Work for ``seconds`` of wall-clock time on ``threads`` threads.

    Raises
    ------
    RuntimeError : when so many threads cannot be started; none is left then.

    Examples
    --------
    >>> 0 < spin(0.01).share <= 1
    True
    """
    results: list[tuple[float, float, int]] = []
    gate = threading.Barrier(threads)

    def work() -> None:
        try:
            gate.wait()
        except BrokenBarrierError:
            return
        start, used, done = time.perf_counter(), time.thread_time(), 0
        while time.perf_counter() - start < seconds:
            hashlib.pbkdf2_hmac("sha256", b"spin", b"probe", _ROUNDS)
            done += 1
        results.append((time.thread_time() - used, time.perf_counter() - start, done))

    helpers = [threading.Thread(target=work, daemon=True) for _ in range(threads - 1)]
    try:
        for helper in helpers:
            helper.start()
    except BaseException:
        gate.abort()
        raise
    work()
    for helper in helpers:
        helper.join()
    cost = sum(used for used, _, _ in results)
    share = sum(min(used / wall, 1.0) for used, wall, _ in results) / threads
    return Spin(share, sum(done for _, _, done in results) / max(cost, 1e-9), cost)
