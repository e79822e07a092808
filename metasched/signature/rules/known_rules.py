"""Answers to the questions for the rule of a number, kept where one search after another asks the same.

One way to tell roles apart is tried after the other, one grid after the other, and once more with the messages of each
run put in order: mostly the same numbers stand in the same rows, and where they follow no rule the search is longest.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from metasched.arrays import Floats
from metasched.signature.rules import step_rules
from metasched.signature.rules.attributes import Attribute
from metasched.signature.rules.samples import Samples

#: How many answers are kept, the last ones.
MOST_KEPT = 4096

_known: dict[Hashable, Attribute | None] = {}


def attribute(
    samples: Samples,
    values: Floats,
    topologies: Sequence[str],
    peer: bool,
    tolerance: float,
    grids: Sequence[str],
    known: Sequence[Attribute],
    beside: str,
) -> Attribute | None:
    """What :func:`metasched.signature.rules.step_rules.attribute` finds, searched once for equal rows and values."""
    question = (samples.fingerprint(values), *map(tuple, (topologies, grids, known)), peer, tolerance, beside)
    if question in _known:
        return _known[question]
    found = step_rules.attribute(samples, values, topologies, peer, tolerance, grids, known, beside)
    _known[question] = found
    if len(_known) > MOST_KEPT:
        _known.pop(next(iter(_known)), None)
    return found
