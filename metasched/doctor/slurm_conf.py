"""The settings of slurm.conf and of the files that it includes, as Slurm reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

#: Files within each other that are read.
DEEPEST = 8


def slurm_settings(path: Path) -> dict[str, str] | None:
    """Lines ``Key=value`` of slurm.conf, keys in small letters, the last one of a key; None where it cannot be read.

    Of a line with several, as those of nodes and partitions have, only the first counts.

    Parameters
    ----------
    path : of slurm.conf; the files that it includes are found from the folder of whoever includes them.
    """
    try:
        return dict(_pairs(path, DEEPEST))
    except OSError:
        return None


def _pairs(path: Path, depth: int) -> Iterator[tuple[str, str]]:
    """The keys and values of a file in their order; OSError where it cannot be read."""
    cluster = ""
    for line in path.read_text(encoding="utf-8", errors="replace").replace("\\\n", "").split("\n"):
        said = line.partition("#")[0].strip()
        included = re.fullmatch(r"include\s+(\S+)", said, re.IGNORECASE)
        key, equals, value = (part.strip() for part in said.partition("="))
        if included and depth:
            yield from _pairs(path.parent / included[1].replace("%c", cluster), depth - 1)
        elif equals:
            value = re.sub(r'^"([^"]*)"$', r"\1", value)
            cluster = value if key.lower() == "clustername" else cluster
            yield key.lower(), value
