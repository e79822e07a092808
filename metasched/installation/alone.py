"""One setup at a time: two that read and write the same file would add lines twice, and undo half of them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metasched.records import InputError


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Be the only one who installs something into a folder, or removes it.

    Nothing is written for it: what is locked is the folder that is to hold this one, or the nearest that there is.

    Parameters
    ----------
    folder : of the installation, which need not be there; an absolute path.

    Raises
    ------
    InputError : when somebody else does so already, or it cannot be seen whether.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place, alone(Path(place, "hooks")), alone(Path(place, "hooks")):
    ...     pass  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    metasched.records.errors.InputError: ...: another setup is running, expected it to end first
    """
    there = next(each for each in folder.parents if each.is_dir())
    try:
        lock = os.open(there, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", where=str(there)) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError("another setup is running, expected it to end first", where=str(folder)) from None
        yield
    finally:
        os.close(lock)
