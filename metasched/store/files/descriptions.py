"""Description files: clusters and applications in TOML, with the host lists and Slurm files that they name."""

from __future__ import annotations

import os
from pathlib import Path

from metasched.placement.clusters.description import Description, build_description
from metasched.store.files.hardware import read_entry
from metasched.store.files.whole_files import read_text
from metasched.validation import parse_toml


def read_description(path: str | os.PathLike[str]) -> Description:
    """Read a description; files that it names are looked for beside it.

    Raises
    ------
    InputError : with the file, the field, its value and what was expected.
    """
    beside = Path(path).parent
    return build_description(
        parse_toml(read_text(path), where=str(path)),
        where=str(path),
        read=lambda name: read_text(beside / name),
        entry=lambda name: read_entry(str(beside / name) if name.endswith(".toml") else name),
        folder=beside,
    )
