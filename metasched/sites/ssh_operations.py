"""Jobs at a site that are held, released and cancelled by its scheduler's commands, over OpenSSH."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metasched.schedulers.grid_engine.commands import parsed
from metasched.schedulers.portable import Portable
from metasched.sites import ssh
from metasched.sites.resending import JobState

_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
#: Slurm's reasons of a pending job that is held.
_HELD = ("JobHeldUser", "JobHeldAdmin")
_WORDS = {
    "slurm": {
        "hold": ("scontrol", "hold"), "release": ("scontrol", "release"), "cancel": ("scancel",),
        "state": ("squeue", "--noheader", "--states=all", "--me", "--format=%F|%T|%r|%j"),
    },
    "grid_engine": {
        "hold": ("qhold",), "release": ("qrls",), "cancel": ("qdel",), "state": ("qstat", "-xml"),
    },
}  # fmt: skip


def slurm_state(listed: str, job: str, name: str) -> JobState:
    r"""The state of a job by squeue.

    Parameters
    ----------
    listed : lines of number, state, reason and name; the tasks of an array have one number.
    job, name : its number and its name.

    Examples
    --------
    >>> listed = "7|PENDING|JobHeldUser|cg\n8|RUNNING|None|cg\n8|PENDING|JobHeldUser|cg\n"
    >>> [slurm_state(listed, each, "cg") for each in ("7", "8", "9")], slurm_state(listed, "7", "lu")
    (['held', 'started', 'unknown'], 'started')
    """
    rows = [[*line.strip().split("|", 3), "", "", ""] for line in listed.splitlines()]
    return _of_tasks(_slurm_task(row[1], row[2]) if row[3] == name else "started" for row in rows if row[0] == job)


def _slurm_task(state: str, reason: str) -> JobState:
    if state == "PENDING":
        return "held" if reason in _HELD else "waiting"
    return "cancelled" if state == "CANCELLED" else "started"


def grid_engine_state(listed: str, job: str, name: str) -> JobState:
    """The state of a job by the document of qstat, which does not show ended jobs; RuntimeError if it is none.

    >>> fields = "<JB_job_number>7</JB_job_number><JB_name>cg</JB_name><state>hqw</state>"
    >>> listed = f"<q><job_list>{fields}</job_list></q>"
    >>> grid_engine_state(listed, "7", "cg"), grid_engine_state(listed, "8", "cg"), grid_engine_state(listed, "7", "lu")
    ('held', 'unknown', 'started')
    """
    try:
        jobs = [each for each in parsed(listed).iter("job_list") if each.findtext("JB_job_number") == job]
    except ValueError as error:
        raise RuntimeError(f"qstat does not print XML: {error}") from None
    return _of_tasks(
        _grid_engine_task(each.findtext("state", "")) if each.findtext("JB_name") == name else "started"
        for each in jobs
    )


def _grid_engine_task(state: str) -> JobState:
    if "qw" not in state:
        return "started"
    return "held" if "h" in state else "waiting"


def _of_tasks(states: Iterable[JobState]) -> JobState:
    """The state of a job by those of its tasks: it has started once one has, and is held only as a whole.

    A job that is called otherwise counts as started: numbers are given again, and what is not ours is left alone.
    """
    found = {*states}
    order: tuple[JobState, ...] = ("started", "waiting", "held", "cancelled")
    return next((each for each in order if each in found), "unknown")


@dataclass(frozen=True, slots=True)
class SshOperations:
    """Works at sites that OpenSSH reaches.

    Parameters
    ----------
    sites : what the grid's daemon says of each site, by name: ``ssh`` and ``scheduler``.
    job : that is submitted.
    paths, folder : data that is brought there first, and the folder for it.
    held_by : sites that hold the data already.
    """

    sites: Mapping[str, Mapping[str, Any]]
    job: Portable
    paths: Sequence[Path]
    folder: str
    held_by: Collection[str]

    def state_of(self, site: str, job: str) -> JobState:
        """The state of a job by the site's scheduler."""
        _, scheduler = self._reached(site)
        listed = self._run(site, "state")
        return (slurm_state if scheduler == "slurm" else grid_engine_state)(listed, job, self.job.name)

    def hold(self, site: str, job: str) -> None:
        """Keep a waiting job from starting."""
        self._run(site, "hold", job)

    def release(self, site: str, job: str) -> None:
        """Let a held job start when its turn comes; nothing happens to one that is not held."""
        self._run(site, "release", job)

    def cancel(self, site: str, job: str) -> None:
        """End a job that waits or is held, before it has run."""
        self._run(site, "cancel", job)

    def submit_held(self, site: str, partition: str) -> tuple[str, float, float]:
        """Transfer the data and submit the job as a held one: its number, the data (GB) and the duration (s)."""
        return self.submit(site, partition, held=True)

    def submit(self, site: str, partition: str, *, held: bool = False) -> tuple[str, float, float]:
        """Transfer the data and submit the job: its number, the data (GB) and the duration (s).

        Raises
        ------
        RuntimeError : when the site cannot be reached, or refuses.
        """
        destination, scheduler = self._reached(site)
        size, seconds = 0.0, 0.0
        if self.paths and site not in self.held_by:
            size, seconds = ssh.bring(destination, self.paths, self.folder)
        words = ssh.submit_words(self.job, scheduler, "" if self.job.asked.partitions else partition, held=held)
        return ssh.submit(destination, self.job, words), size, seconds

    def _run(self, site: str, what: str, *jobs: str) -> str:
        destination, scheduler = self._reached(site)
        if not all(_NUMBER.fullmatch(job) for job in jobs):
            raise RuntimeError(f"{jobs[0]!r:.40} is not a job number")
        return ssh.command(destination, [*_WORDS[scheduler][what], *jobs])

    def _reached(self, site: str) -> tuple[str, str]:
        if site not in self.sites:
            raise RuntimeError(f"site {site} is not configured any more")
        table = self.sites[site]
        if not table.get("ssh"):
            raise RuntimeError("its table has no ssh")
        return table["ssh"], table["scheduler"]
