"""Time limits as Grid Engine and PBS spell them."""

from __future__ import annotations

import math


def seconds(text: str) -> float | None:
    """A limit, such as 3600, 1:0:0 or infinity, in seconds; None if there is none.

    >>> [seconds(text) for text in ("500", "1:0:30", ":10:", "3600.000000", "infinity", "")]
    [500.0, 3630.0, 600.0, 3600.0, None, None]
    """
    total = 0.0
    try:
        for part in text.split(":"):
            total = 60.0 * total + float(part or 0)
    except ValueError:
        return None
    return total if 0 < total < math.inf else None
