"""Jobs of a user that may be sent elsewhere: one file each in the state folder, with the job's script beside it.

Whoever submits has the keys, the script and the data; so it is not the daemon that sends jobs elsewhere, but a command
of the user. The files say how far each job has got.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from metasched.records import InputError
from metasched.schedulers.portable import Portable
from metasched.sites.resending import Resendable
from metasched.store.files.user_folders import state_folder
from metasched.store.files.whole_files import read_text, write_bytes_atomically, write_text_atomically
from metasched.validation import first_error


@dataclass(frozen=True, slots=True)
class KeptJob:
    """A job that may be sent elsewhere, with all that is needed to submit it.

    Parameters
    ----------
    state : how far it has got.
    job : what is submitted; its script is a copy of ours.
    paths, folder, held_by : of its data, as for ``metasched sites submit``.
    daemon : where the grid's daemon was asked that knows it; empty where that was not kept.
    """

    state: Resendable
    job: Portable
    paths: tuple[Path, ...]
    folder: str
    held_by: tuple[str, ...]
    daemon: str = ""


_KEPT = TypeAdapter(KeptJob)


def folder() -> Path:
    """Where the files lie: ``$XDG_STATE_HOME/metasched/sent``, by default under ``~/.local/state``."""
    return state_folder("sent")


def keep(
    state: Resendable, job: Portable, paths: Sequence[Path], there: str, held_by: Sequence[str], daemon: str
) -> None:
    """Store a submitted job (:class:`KeptJob`) with a copy of its script, so that exactly this can go elsewhere.

    Raises
    ------
    OSError, InputError : when it cannot be written.
    """
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    script = folder() / f"{state.uid}.script"
    write_bytes_atomically(script, job.script.read_bytes(), mode=0o700)
    whole = tuple(path.absolute() for path in paths)
    save(KeptJob(state, replace(job, script=script), whole, there, tuple(held_by), daemon))


@contextmanager
def alone() -> Iterator[bool]:
    """Hold the jobs against every other command of the user that sends them elsewhere; whether none is at work."""
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder() / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def save(kept: KeptJob) -> None:
    """Record the state of a job before its next step."""
    write_text_atomically(folder() / f"{kept.state.uid}.json", _KEPT.dump_json(kept).decode(), mode=0o600)


def drop(uid: str) -> None:
    """Look after a job no more."""
    for ending in ("json", "script"):
        with suppress(FileNotFoundError):
            (folder() / f"{uid}.{ending}").unlink()


def kept_files() -> list[Path]:
    """The files of the jobs that may be sent elsewhere, in any order."""
    return sorted(folder().glob("*.json"))


def kept_job(path: Path) -> KeptJob:
    """The job of a file.

    Raises
    ------
    InputError : when it cannot be read; it may be of a job that is on its way, so it is not passed over.
    """
    try:
        return _KEPT.validate_json(read_text(path))
    except ValidationError as error:
        raise InputError(f"does not say in what state its job is: {first_error(error)}", where=str(path)) from None
