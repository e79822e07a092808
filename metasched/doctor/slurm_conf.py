"""The settings of slurm.conf, as far as one line holds one."""

from __future__ import annotations

from pathlib import Path


def slurm_settings(path: Path) -> dict[str, str] | None:
    """Lines ``Key=value`` of slurm.conf, keys in small letters; None where it cannot be read.

    Of a line with several, as those of nodes and partitions have, only the first counts.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition("#")[0].partition("=") for line in lines)
    return {key.strip().lower(): value.strip() for key, equals, value in pairs if equals}
