"""Where a user's data, state and caches lie, as the XDG Base Directory Specification says."""

from __future__ import annotations

import os
from pathlib import Path

from metasched.records import InputError
from metasched.store.files.whole_files import refusal


def data_folder() -> Path:
    """The user's data folder, which is created if it is missing: ``$XDG_DATA_HOME/metasched``, else in ``~/.local``.

    Raises
    ------
    InputError : when it cannot be created.
    """
    folder = _folder("XDG_DATA_HOME", ".local/share")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be created: {refusal(error)}", where=str(folder)) from None
    return folder


def state_folder(name: str) -> Path:
    """The folder of a kind of waiting files: ``$XDG_STATE_HOME/metasched/NAME``, by default in ``~/.local/state``."""
    return _folder("XDG_STATE_HOME", ".local/state") / name


def cache_folder() -> Path:
    """The folder of what can be made again: ``$XDG_CACHE_HOME/metasched``, by default in ``~/.cache``."""
    return _folder("XDG_CACHE_HOME", ".cache")


def _folder(variable: str, usual: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / usual) / "metasched"
