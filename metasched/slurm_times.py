"""Spans of time as Slurm writes them: limits in ``squeue``, ``sinfo`` and ``sacct``, and what jobs ran."""

from __future__ import annotations

import re

_SPAN = re.compile(
    r"(?:(?P<days>\d{1,6})-(?P<h>\d{1,6})(?::(?P<hm>\d{1,6})(?::(?P<hms>\d{1,6}))?)?"
    r"|(?:(?P<hours>\d{1,6}):(?=\d+:))?(?P<minutes>\d{1,12})(?::(?P<seconds>\d{1,6}))?)(?P<parts>\.\d{1,9})?",
    re.ASCII,
)


def span(text: str) -> float | None:
    """The seconds of a span, such as 1-12:00:00, 12:00:00 or 30:00; None where there is none, as for no limit.

    A bare number is minutes, as everywhere in Slurm (``sbatch --time``), also in sacct's ``TimelimitRaw``; its
    ``ElapsedRaw`` alone is in seconds, and no span.

    >>> [span(text) for text in ("1-12:00:00", "2:00:00", "30:00", "90", "2-6", "00:00.250", "infinite")]
    [129600.0, 7200.0, 1800.0, 5400.0, 194400.0, 0.25, None]
    """
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        return None
    digits_of = found.groupdict()
    parts = float(digits_of.pop("parts") or 0.0)
    part = {name: int(digits or 0) for name, digits in digits_of.items()}
    hours, minutes, seconds = part["h"] + part["hours"], part["hm"] + part["minutes"], part["hms"] + part["seconds"]
    return 86_400.0 * part["days"] + 3600.0 * hours + 60.0 * minutes + seconds + parts
