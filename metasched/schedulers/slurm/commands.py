"""Calls Slurm's commands.

Users choose names, paths and comments freely, line breaks among them. So tables are not asked for with a separator that
could occur in one: each call draws a random mark, which ends every field.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

from metasched.schedulers.commands import TIMEOUT, Commands


def utc_time(seconds: float) -> str:
    """A time (s) as sacct and sacctmgr understand it.

    They take local times, and no seconds since 1970. When daylight saving time ends, an hour of these comes twice, so
    they are run in a time zone without one.

    >>> utc_time(86_400.0)
    '1970-01-02T00:00:00'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def period(since: float, until: float | None = None) -> tuple[str, str]:
    """The options of sacct for what happened in a period, until now where it has no end.

    Asked for states, sacct finds none without an end.

    Parameters
    ----------
    since, until : begin and end, seconds since 1970.
    """
    return f"--starttime={utc_time(since)}", f"--endtime={'now' if until is None else utc_time(until)}"


class SlurmCommands(Commands):
    """squeue, sinfo, sacct and the others, asked so that no name that a user chose can forge a row."""

    __slots__ = ()

    @classmethod
    def of(cls, configuration: str = "", timeout: float = TIMEOUT) -> SlurmCommands:
        """Those of the cluster of a slurm.conf, by its path, empty for the usual one.

        Parameters
        ----------
        configuration : path of its slurm.conf.
        timeout : how long a command may take (s).
        """
        # Times as seconds since 1970 where a command prints times, and all tasks of an array where it prints these.
        spelling = {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0", "TZ": "UTC0"}
        return cls({"SLURM_CONF": configuration}, timeout, spelling)

    def table(self, columns: Sequence[str], *words: str) -> list[dict[str, str]]:
        """The rows that squeue, sinfo or sacct print, each a text for each of the columns.

        Parameters
        ----------
        columns : their names, as ``--Format`` of squeue and sinfo and ``--format`` of sacct take them.
        words : the command and its other options.

        Raises
        ------
        RuntimeError : when it fails, or prints something else.
        """
        mark = f"|{secrets.token_hex(8)}|"
        if words[0] == "sacct":
            form = ["--parsable", f"--delimiter={mark}", f"--format={','.join(columns)}"]
        else:
            form = [f"--Format={','.join(f'{column}:{mark}' for column in columns)}"]
        *cells, rest = self.run(*words, "--noheader", *form).split(mark)
        if len(cells) % len(columns) or rest.strip():
            raise RuntimeError(f"{words[0]} does not print {len(columns)} columns a row")
        first = columns[0]
        rows = [
            dict(zip(columns, cells[start : start + len(columns)], strict=True))
            for start in range(0, len(cells), len(columns))
        ]
        return [row | {first: row[first].removeprefix("\n")} for row in rows]
