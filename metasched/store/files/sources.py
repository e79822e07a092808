"""Files that hold ``[[source]]`` tables: where live loads come from."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, Field

from metasched.store.files.whole_files import read_text
from metasched.validation import toml_as
from monitors.sources.settings import SourceTable
from monitors.validated_fields import LenientFields


class _File(LenientFields, BaseModel):
    """A file of sources; the daemon's configuration is one too, so other tables are left to it."""

    source: list[SourceTable] = Field(min_length=1)


def read_sources(path: str | os.PathLike[str]) -> tuple[SourceTable, ...]:
    """The sources of a file; relative paths in it start at its folder.

    Raises
    ------
    InputError : with the file, the field, its value and what was expected.
    """
    return tuple(toml_as(_File, read_text(path), where=str(path), folder=Path(path).parent).source)
