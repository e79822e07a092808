"""Submits jobs at sites by OpenSSH: argument lists here, every word quoted for the login shell there.

Connections to a site are shared (ControlMaster), so that the second job does not wait for a handshake. Nothing is asked
of the user: a site without a key that is accepted is left out (BatchMode).
"""

from __future__ import annotations

import math
import os
import re
import shlex
import stat
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from metasched.schedulers.portable import Portable
from metasched.sites.resending import UnclearError
from metasched.store.files.whole_files import refusal
from monitors.bounded_commands import ExitError, run

#: Time limit of a submission, and for how long an unused connection stays open (s).
TIMEOUT, PERSISTS = 60.0, 600
#: Time limit of a data transfer (s).
LONGEST = 86_400.0
#: Exit statuses with which a command at a site refuses. Larger ones are of a shell whose command was killed, and 255 is
#: OpenSSH's own where the connection failed or was lost.
REFUSED = range(1, 128)
#: What a scheduler's command says that has sent its request and got no answer: the job may have been accepted.
_UNANSWERED = re.compile(r"(?:failed|error).*(?:timed? ?out|receiv|zero bytes|read error|unexpected message)", re.I)
_NUMBER = re.compile(r"(?P<number>\d{1,18})(?:[.;].*)?", re.ASCII)
_DESTINATION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,254}", re.ASCII)
#: Bytes in a gigabyte.
_GIGABYTE = 1e9


def submit_words(job: Portable, scheduler: str, partition: str = "", *, held: bool = False) -> list[str]:
    """The command that submits a job whose script is read from standard input.

    Parameters
    ----------
    job : what is submitted, without arguments.
    scheduler : "slurm" or "grid_engine".
    partition : in the scheduler's words, empty for its own choice.
    held : whether it shall not start before it is released.

    Examples
    --------
    >>> from metasched.schedulers.portable import portable
    >>> job = portable(["-n", "4", "-t", "10", "-J", "cg", "--comment=metasched:app=cg,n=900", "/bin/true"])
    >>> " ".join(submit_words(job, "slurm", "new"))
    'sbatch --parsable -J cg -n 4 -o cg.out -t 10 -p new --comment metasched:app=cg,n=900'
    >>> " ".join(submit_words(job, "grid_engine"))
    'qsub -terse -cwd -j y -N cg -o cg.out -pe * 4 -l h_rt=600 -ac metasched=app=cg,n=900'
    """
    output, where = job.output.name, partition or ",".join(job.asked.partitions)
    if scheduler == "slurm":
        words = ["sbatch", "--parsable", "-J", job.name, "-n", f"{job.asked.processors}", "-o", output]
        if job.time_limit is not None:
            words += ["-t", f"{math.ceil(job.time_limit / 60.0)}"]
        words += ["-p", where] if where else []
        words += ["-H"] if held else []
        return [*words, "--comment", job.comment] if job.comment else words
    words = ["qsub", "-terse", "-cwd", "-j", "y", "-N", job.name, "-o", output]
    if job.asked.processors > 1:
        # Any parallel environment of the queues: their names are the site's own.
        words += ["-pe", "*", f"{job.asked.processors}"]
    if job.time_limit is not None:
        words += ["-l", f"h_rt={math.ceil(job.time_limit)}"]
    words += ["-q", where] if where else []
    words += ["-h"] if held else []
    return [*words, "-ac", job.context] if job.context else words


def submit(destination: str, job: Portable, words: Sequence[str]) -> str:
    """Submit a job at a site; its number there.

    Parameters
    ----------
    destination : ``user@host``, or a name of ssh_config.
    job : its script is sent.
    words : the command there.

    Raises
    ------
    UnclearError : when its answer is lost or has no number.
    RuntimeError : when it cannot be reached in time, or refuses.
    """
    command(destination, ["true"])  # a site that cannot be reached has certainly not accepted the job
    try:
        printed = run(
            "ssh", *_shared(), "--", _checked(destination), shlex.join(words),
            environment={}, timeout=TIMEOUT, given=job.script,
        )  # fmt: skip
    except RuntimeError as error:
        if isinstance(error, ExitError) and error.status in REFUSED and not _UNANSWERED.search(error.reason):
            raise
        raise UnclearError(str(error)) from None
    # What the login shell there prints comes before.
    found = next((match for line in printed.splitlines()[::-1] if (match := _NUMBER.fullmatch(line.strip()))), None)
    if found is None:
        raise UnclearError(f"{destination} reports no job number")
    return found["number"]


def command(destination: str, words: Sequence[str]) -> str:
    """Run a command at a site and return what it prints.

    Raises
    ------
    RuntimeError : when it cannot be reached in time, or fails.
    """
    return run("ssh", *_shared(), "--", _checked(destination), shlex.join(words), environment={}, timeout=TIMEOUT)


def bring(destination: str, paths: Sequence[Path], folder: str = "") -> tuple[float, float]:
    """Copy files and folders to a site; return the size (GB) and the duration (s).

    Parameters
    ----------
    destination : as for :func:`submit`.
    paths : of the data here.
    folder : where it goes there, made if it is missing; by default the home folder.

    Raises
    ------
    RuntimeError : when it cannot be copied.
    """
    try:
        size = size_of(paths)
    except OSError as error:
        raise RuntimeError(f"{error.filename} cannot be read: {refusal(error)}") from None
    names, there = [f"{path.absolute()}" for path in paths], folder.removeprefix("~/")
    if there:
        # Into a folder that is missing scp copies a file, or what is in a folder, under the name of that folder.
        command(destination, ["mkdir", "-p", "--", there])
        there = f"{there}/"
    began = time.monotonic()
    run("scp", "-r", "-p", "-q", *_shared(), "--", *names, f"{_checked(destination)}:{there}", environment={},
        timeout=LONGEST)  # fmt: skip
    return size, max(time.monotonic() - began, 1e-3)


def size_of(paths: Sequence[Path]) -> float:
    """The size of files and folders (GB); links are not followed."""
    files = [each for path in paths for each in ([path] if not path.is_dir() else path.rglob("*"))]
    return sum(each.lstat().st_size for each in files if not each.is_dir()) / _GIGABYTE


def _shared() -> list[str]:
    folder = Path(tempfile.gettempdir()) / f"metasched-ssh-{os.geteuid()}"
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
    except OSError as error:
        raise RuntimeError(f"{folder} cannot be made: {refusal(error)}") from None
    # Anyone may make a folder of that name; connections of ours may lie only in one of our own.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise RuntimeError(f"{folder} is open to others, expected a folder of our own with mode 700")
    options: Mapping[str, str] = {
        "BatchMode": "yes", "ConnectTimeout": "10", "ControlMaster": "auto", "ControlPath": f"{folder}/%C",
        "ControlPersist": f"{PERSISTS}",
    }  # fmt: skip
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def _checked(destination: str) -> str:
    if not _DESTINATION.fullmatch(destination):
        raise RuntimeError(f"{destination!r:.60} is not a valid ssh destination")
    return destination
