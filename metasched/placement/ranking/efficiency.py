"""The floor of parallel efficiency: added processors must contribute a minimum share of what the first ones do.

With P0 the fewest processors that are allowed and T0 the time of the cluster's best set of them, a set of P processors
that takes T has the parallel efficiency P0 T0 / (P T). Sets below the floor are not advised. The efficiency of a set
only falls with its time, so the floor leaves the optimum where the exact search looks for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from metasched.arrays import Flags, Floats, Ints

#: Factor on the score of a set that is not to be advised, and the least score of one: it comes behind all that are,
#: without a change of its order.
BEYOND, ADVISED_UP_TO = 2.0**400, 2.0**300
#: Efficiencies that fall short by no more than this part are rounded.
ROUNDED = 1e-9


def put_beyond(scores: Floats, sets: Flags | Ints) -> None:
    """Put some sets behind all that may be advised, whatever their scores are, in place.

    Parameters
    ----------
    scores : of k sets, the smaller the better.
    sets : which are not to be advised: their numbers, or flags of shape (k,).

    Examples
    --------
    >>> scores = np.array([0.0, 5.0, 3.0])
    >>> put_beyond(scores, np.array([0, 2]))
    >>> (scores < ADVISED_UP_TO).tolist(), int(scores.argmax())
    ([False, True, False], 2)
    """
    scores[sets] = BEYOND * scores[sets] + ADVISED_UP_TO


def longest(processors: ArrayLike, of_fewest: ArrayLike, least_efficiency: float) -> Floats:
    """The execution times (s) beyond which sets are below the floor, array of shape (k,).

    Parameters
    ----------
    processors : P of k sets.
    of_fewest : P0 T0 of each one's cluster (s); infinite where nothing is predicted for P0.
    least_efficiency : the floor, in [0, 1].

    Examples
    --------
    100 s on one processor: on 4 processors an efficiency of 0.25 is 100 s, on 16 it is 25 s.

    >>> longest([1, 4, 16], 100.0, 0.25).round().tolist()
    [400.0, 100.0, 25.0]
    >>> longest([1, 4], 100.0, -0.0).tolist()
    [inf, inf]
    """
    if not least_efficiency:
        return np.full(np.shape(processors), np.inf)
    return np.asarray((1.0 + ROUNDED) * np.asarray(of_fewest) / (least_efficiency * np.asarray(processors, float)))
