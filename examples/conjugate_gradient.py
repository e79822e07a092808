"""A parallel application to try metasched on: Poisson's equation on an N x N grid by conjugate gradients.

P processes hold a block of rows each. Before every product with the matrix they exchange border rows with their
neighbours, and twice an iteration they add up a scalar over all; all of it goes over TCP connections on the loopback
interface. The iteration ends when the residual has fallen by 1e-8, so its length grows with N and the run time about as
N cubed.

    python examples/conjugate_gradient.py --problem-size 400 --processors 2
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Client, Connection, Listener

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

Grid = NDArray[np.float64]

TOLERANCE = 1e-8


@dataclass
class Links:
    """The connections of one process: to the rows above and below, and either to the root or, in the root, to all."""

    above: Connection | None = None
    below: Connection | None = None
    root: Connection | None = None
    members: list[Connection] = field(default_factory=list)

    def exchange(self, block: Grid) -> None:
        """Fill the first and the last row of a block with the neighbours' border rows.

        Rows flow down, then up. The last process of a flow only receives, so that however long a row is nobody waits
        in a circle.
        """
        for source, target, ours, theirs in ((self.above, self.below, -2, 0), (self.below, self.above, 1, -1)):
            if target is not None:
                target.send_bytes(block[ours])
            if source is not None:
                source.recv_bytes_into(block[theirs])

    def total(self, part: float) -> float:
        """Sum of one number over all processes."""
        if self.root is not None:
            self.root.send_bytes(np.float64(part).tobytes())
            return float(np.frombuffer(self.root.recv_bytes())[0])
        whole = np.float64(part + sum(float(np.frombuffer(member.recv_bytes())[0]) for member in self.members))
        for member in self.members:
            member.send_bytes(whole.tobytes())
        return float(whole)


def solve(size: int, rows: int, links: Links) -> tuple[int, float]:
    """Solve -laplace(u) = 1, u = 0 on the border, on this process' rows; return iterations and relative residual."""
    right = np.ones((rows, size))
    solution = np.zeros_like(right)
    residual = right.copy()
    # One more row at either end for the neighbours' values; they stay 0 where there is no neighbour.
    direction = np.zeros((rows + 2, size))
    direction[1:-1] = residual
    product = np.empty_like(right)
    scratch = np.empty_like(right)
    start = norm = links.total(float(np.vdot(residual, residual)))
    iterations = 0
    while norm > TOLERANCE**2 * start:
        _multiply(direction, product, links)
        inner = direction[1:-1]
        step = norm / links.total(float(np.vdot(inner, product)))
        solution += np.multiply(inner, step, out=scratch)
        residual -= np.multiply(product, step, out=scratch)
        previous, norm = norm, links.total(float(np.vdot(residual, residual)))
        inner *= norm / previous
        inner += residual
        iterations += 1
    # The recurrence drifts; the answer is judged by the residual that it really leaves.
    direction[1:-1] = solution
    _multiply(direction, product, links)
    left = links.total(float(np.sum((right - product) ** 2)))
    return iterations, float(np.sqrt(left / start))


def _multiply(block: Grid, product: Grid, links: Links) -> None:
    """Apply the five-point matrix to a block with its two border rows."""
    links.exchange(block)
    inner = block[1:-1]
    np.multiply(inner, 4.0, out=product)
    product -= block[:-2]
    product -= block[2:]
    product[:, 1:] -= inner[:, :-1]
    product[:, :-1] -= inner[:, 1:]


def connect(processors: int) -> list[Links]:
    """The connections of all processes, each a pair of TCP sockets."""
    links = [Links() for _ in range(processors)]
    for rank in range(1, processors):
        links[rank - 1].below, links[rank].above = _pair()
        member, links[rank].root = _pair()
        links[0].members.append(member)
    return links


def _pair() -> tuple[Connection, Connection]:
    with Listener(("127.0.0.1", 0)) as listener:
        there = Client(listener.address)
        return listener.accept(), there


def _work(size: int, rows: int, links: Links) -> tuple[int, float]:
    with threadpool_limits(1):
        return solve(size, rows, links)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it, and say how long it took and how well it was solved."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--problem-size", type=int, required=True, metavar="N")
    parser.add_argument("--processors", type=int, default=1, metavar="P")
    options = parser.parse_args(arguments)
    size, processors = options.problem_size, options.processors
    if not 1 <= processors <= size:
        parser.error(f"--processors is {processors}, expected a number from 1 to the problem size, {size}")
    begin = time.perf_counter()
    links = connect(processors)
    rows = [len(part) for part in np.array_split(np.arange(size), processors)]
    fork = multiprocessing.get_context("fork")
    others = [fork.Process(target=_work, args=(size, rows[rank], links[rank])) for rank in range(1, processors)]
    for process in others:
        process.start()
    iterations, residual = _work(size, rows[0], links[0])
    for process in others:
        process.join()
    seconds = time.perf_counter() - begin
    print(f"N {size}  P {processors}  iterations {iterations}  residual {residual:.1e}  seconds {seconds:.3f}")
    return int(residual > 100 * TOLERANCE or any(process.exitcode for process in others))


if __name__ == "__main__":
    sys.exit(main())
