"""What the hooks of all schedulers have in common: hooks.conf, its deadline, and the jobs that an epilog keeps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

#: Where prolog and epilog keep jobs, by default.
STATE = "/var/lib/metasched/hooks"
#: Longest deadline that leaves the controller free enough (s).
LONGEST = 1.0
#: What to do about jobs that are not delivered.
TELL = "run metasched-epilog --tell; see its output and the daemon's log"


def read_settings(path: Path) -> dict[str, str] | None:
    """Lines ``Key=value`` of slurm.conf or hooks.conf, keys in small letters; None where it cannot be read.

    Of a line with several, as those of nodes and partitions have, only the first counts.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    pairs = (line.partition("#")[0].partition("=") for line in lines)
    return {key.strip().lower(): value.strip() for key, equals, value in pairs if equals}


def deadline_of(conf: Mapping[str, str]) -> float:
    """The deadline that hooks.conf sets (s), NaN where it is no number.

    Examples
    --------
    >>> deadline_of({}), deadline_of({"deadline": "soon"})
    (0.2, nan)
    """
    try:
        return float(conf.get("deadline", "0.2"))
    except ValueError:
        return float("nan")


def undelivered(state: Path) -> str:
    """How many jobs an epilog keeps in its folder, in words; empty where there are none."""
    waiting, refused = len([*state.glob("ended.*.json")]), len([*state.glob("ended.*.refused")])
    return f"{waiting} jobs in {state} are undelivered, {refused} were refused" if waiting or refused else ""
