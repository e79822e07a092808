"""Runs that could not be stored when they ended wait here, one small file each, until the database takes them.

A finished job cannot be run once more to please a database. The files lie in the user's state folder, apart from the
database, which may be on a disk that is full or read-only; each names the database that it is meant for.
"""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from metasched.records import InputError, Run
from metasched.store.database.engine import default_location, name_of, url_of
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from metasched.store.files.user_folders import state_folder
from metasched.store.files.whole_files import read_text, write_text_atomically

_FORMAT = 1
#: How long a locked database is waited for (s).
TIMEOUT = 5.0


def folder() -> Path:
    """Where the files lie: ``$XDG_STATE_HOME/metasched/spool``, by default under ``~/.local/state``."""
    return state_folder("spool")


def keep(record: RecordedRun, location: str | os.PathLike[str] | None) -> tuple[str, ...]:
    """Store a run, and with it those that wait in the spool; where that fails spool it. Never raises.

    Parameters
    ----------
    record : the run and how it ended.
    location : database; None for the usual one.

    Returns
    -------
    tuple of str
        Warnings; empty when all went well.
    """
    problem = ""
    try:
        with Store.open(location, timeout=TIMEOUT) as store:
            store.runs.add_all([record])
            return drain(store)
    except Exception as error:
        problem = f"the run could not be stored ({' '.join(str(error).split())})"
    try:
        path = _spool(record, location)
    except Exception as error:
        return (f"{problem} and is lost, since it could not be spooled either ({' '.join(str(error).split())})",)
    return (f"{problem}; it waits in {path} and is stored with the next run",)


def drain(store: Store) -> tuple[str, ...]:
    """Store the runs that wait for this database, each once; return a warning for every file that cannot be read."""
    warnings = []
    for path in sorted(folder().glob("*.json")):
        try:
            meant_for, record = _from_document(json.loads(read_text(path)))
            if _canonical(meant_for) == _canonical(store.name):
                store.runs.add_all([record])
                path.unlink(missing_ok=True)
        except (KeyError, TypeError, ValueError) as error:
            if not path.exists():  # another process has stored it meanwhile
                continue
            warnings.append(f"{path} is not a spooled run ({' '.join(str(error).split())}); mend it or remove it")
    return tuple(warnings)


def _spool(record: RecordedRun, location: str | os.PathLike[str] | None) -> Path:
    folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder() / f"{record.uid}.json"
    database = _canonical(os.fspath(default_location() if location is None else location))
    write_text_atomically(path, json.dumps(_document(record, database), indent=1), mode=0o600)
    return path


def _canonical(location: str) -> str:
    """One spelling for each database, whichever folder we are in, without a password."""
    try:
        name = name_of(url_of(location))
    except InputError:  # the run waits until the file is mended by hand
        return location
    return name if "://" in name else str(Path(name).resolve())


def _document(record: RecordedRun, database: str) -> dict[str, Any]:
    run = {f.name: getattr(record.run, f.name) for f in fields(Run) if f.name != "marks"}
    run["extra"] = dict(record.run.extra)
    return {
        "format": _FORMAT,
        "database": database,
        "uid": record.uid,
        "exit_status": record.exit_status,
        "learnable": record.learnable,
        "run": run,
    }


def _from_document(document: Any) -> tuple[str, RecordedRun]:
    if document["format"] != _FORMAT:
        raise InputError(f"format is {document['format']}, expected {_FORMAT}")
    run = dict(document["run"])
    run["nodes"], run["extra"] = tuple(run["nodes"]), MappingProxyType(dict(run["extra"]))
    record = RecordedRun(Run(**run), document["exit_status"], document["learnable"], document["uid"])
    return document["database"], record
