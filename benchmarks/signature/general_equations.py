"""General equations as the paper has them (section 3.2.2): of a distance in n, and null communications put in.

The product's rules are found among more forms, for whole programs, by :mod:`metasched.signature.rules.fitting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from metasched.signature.equations.local_equations import Peer
from metasched.signature.equations.transforms import TRANSFORMS, WholeForm, are_whole

#: Largest factor of a transform in a general equation of distances.
LARGEST_FACTOR = 8


def completed(distances: Sequence[int], fullest: Sequence[int]) -> list[Peer]:
    """The communications of a process, completed with null communications to those of the fullest one.

    Those it has are put in the places that the fullest has them in; an order that the fullest has not is given up, as
    the paper's own example needs (process 3 sends down before it sends left).

    Raises
    ------
    ValueError
        When the process has a distance that the fullest has not.

    Examples
    --------
    Fig. 5, process 3 beside process 5:

    >>> completed([4, -1], [1, 4, -1, -4])
    [None, 4, -1, None]
    """
    left = list(distances)
    found: list[Peer] = []
    for distance in fullest:
        if distance in left:
            left.remove(distance)
            found.append(distance)
        else:
            found.append(None)
    if left:
        raise ValueError(f"distance {left[0]:+d} is not among those of the fullest process")
    return found


def distance_form(counts: Sequence[int], distances: Sequence[int]) -> WholeForm | None:
    """The general equation of a distance: a whole combination of transforms of n that holds at every count.

    Examples
    --------
    >>> str(distance_form([256, 324, 484], [241, 307, 463]))
    'n - sqrt(n) + 1'
    """
    names = [name for name, transform in TRANSFORMS.items() if are_whole([transform(n) for n in counts])]
    names.sort(key=lambda name: -TRANSFORMS[name](max(counts)))
    for size in range(3):
        for chosen in combinations(names, size):
            columns = np.array([[1.0, *(TRANSFORMS[name](n) for name in chosen)] for n in counts])
            if len(counts) < size + 1 or np.linalg.matrix_rank(columns) <= size:
                continue
            solved = np.linalg.lstsq(columns, np.array(distances, dtype=float), rcond=None)[0]
            factors = [round(float(each)) for each in solved]
            if any(abs(each) > LARGEST_FACTOR for each in factors[1:]) or 0 in factors[1:]:
                continue
            form = WholeForm(factors[0], tuple(zip(chosen, factors[1:], strict=True)))
            if all(form(n) == distance for n, distance in zip(counts, distances, strict=True)):
                return form
    return None
