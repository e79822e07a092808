"""The share of messages that leave a server, from the pattern of communication between ranks.

Saad and El-Mahdy take every pair of processes as equally likely, (11) and (12). Real applications send to neighbours
more than to others, and a server holds a block of neighbours. Where the application's process grid is known its pairs
are counted; elsewhere the distance in rank between partners follows a power law, whose exponent comes from the mean
distance that a profiler saw: 0 is the paper's even spread, large ones are a ring.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from metasched.arrays import Floats, Ints

#: Exponent of a ring, in which only neighbours communicate.
_STEEPEST = 20.0


@dataclass(frozen=True, slots=True)
class Locality:
    """The pattern of communication between ranks: a distance law or a process grid.

    Parameters
    ----------
    exponent : of the distance law.
    dimensions : of the process grid, row by row as MPI_Cart_create numbers it; None where there is none.

    Examples
    --------
    >>> Locality(dimensions=2).leaving(np.array([8, 8])), Locality().leaving(np.array([8, 8])).round(3)
    (array([0.25, 0.25]), array([0.533, 0.533]))
    """

    exponent: float = 0.0
    dimensions: int | None = None

    def leaving(self, distribution: Ints) -> Floats:
        """Share of the messages of each server's processes that leave it, shape (servers,), ranks dealt in blocks."""
        if distribution.sum() < 2:
            return np.zeros(distribution.shape)
        if self.dimensions is not None:
            return _leaving_in_grid(self.dimensions, distribution)
        return _leaving_by_distance(self.exponent, distribution)


def grid_shape(processes: int, dimensions: int) -> tuple[int, ...]:
    """Sides of the process grid, as equal as they can be and largest first, as MPI_Dims_create chooses them.

    >>> grid_shape(32, 2), grid_shape(24, 3), grid_shape(7, 2)
    ((8, 4), (4, 3, 2), (7, 1))
    """
    if dimensions == 1:
        return (processes,)
    root = processes ** (1.0 / dimensions)
    side = min(
        (divisor for divisor in range(1, processes + 1) if processes % divisor == 0),
        key=lambda divisor: (abs(math.log(divisor / root)), -divisor),
    )
    return tuple(sorted((side, *grid_shape(processes // side, dimensions - 1)), reverse=True))


def neighbours(processes: int, dimensions: int) -> int:
    """How many messages a process of a grid sends for one to each neighbour, ends being neighbours too.

    Along a side of two both ways lead to the same process; along a side of one there is no neighbour.

    >>> neighbours(2, 2), neighbours(64, 2), neighbours(64, 3)
    (2, 4, 6)
    """
    return 2 * sum(side > 1 for side in grid_shape(processes, dimensions))


def distance_law(exponent: float, processes: int) -> Floats:
    """Probability of each circular distance 1, 2, ..., n // 2 between partners, shape (n // 2,).

    >>> distance_law(0.0, 4)
    array([0.66666667, 0.33333333])
    """
    distance = np.arange(1, processes // 2 + 1, dtype=float)
    # Two processes are at every distance but the farthest of an even number.
    weight = np.where(2 * distance == processes, 1.0, 2.0) * distance**-exponent
    return np.asarray(weight / weight.sum())


def exponent_of(mean_distance: float, processes: int) -> float:
    """The exponent of the distance law with a given mean; at least 0, where all distances are equally likely.

    Parameters
    ----------
    mean_distance : mean difference of the numbers of two processes that exchange a message.
    processes : how many there are, in a ring.

    Examples
    --------
    >>> exponent_of(1.0, 8), round(exponent_of(16 / 7, 8), 6)
    (20.0, 0.0)
    """
    distance = np.arange(1, processes // 2 + 1)

    def beyond(exponent: float) -> float:
        return float(distance_law(exponent, processes) @ distance) - mean_distance

    if beyond(0.0) <= 0:
        return 0.0
    return _STEEPEST if beyond(_STEEPEST) >= 0 else float(scipy.optimize.brentq(beyond, 0.0, _STEEPEST))


def _leaving_in_grid(dimensions: int, distribution: Ints) -> Floats:
    """Count the pairs of neighbours, both ways along each side that is longer than 1, ends being neighbours too."""
    server = np.repeat(np.arange(distribution.size), distribution)
    grid = server.reshape(grid_shape(server.size, dimensions))
    steps = [(axis, step) for axis, side in enumerate(grid.shape) if side > 1 for step in (1, -1)]
    out = np.mean([(np.roll(grid, step, axis) != grid).ravel() for axis, step in steps], axis=0)
    leaving = np.bincount(server, weights=out, minlength=distribution.size)
    return np.asarray(leaving / np.maximum(distribution, 1))


def _leaving_by_distance(exponent: float, distribution: Ints) -> Floats:
    law = distance_law(exponent, int(distribution.sum()))
    distance = np.arange(1, law.size + 1)
    block = distribution[:, None].astype(float)
    # Of a block of b processes, b - d find their partner at distance d inside it, d + b - n by going round.
    inside = np.maximum(block - distance, 0.0) + np.maximum(block + distance - distribution.sum(), 0.0)
    stay = np.divide(inside, block, out=np.ones_like(inside), where=block > 0)
    return np.asarray((1.0 - stay) @ law)
