"""Paths in files of settings: relative ones start at the folder of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, ValidationInfo

Named = TypeVar("Named", str, Path)


def _placed(name: Named, read: ValidationInfo) -> Named:
    """A path as it counts where the file was read in a folder, its context; a URL, or nothing, stays as it is."""
    folder: Path | None = read.context
    return name if folder is None or not str(name) or "://" in str(name) else type(name)(folder / name)


def _placed_file(name: str, read: ValidationInfo) -> str:
    return _placed(name, read) if name.endswith(".toml") else name


#: A path as text, or a URL; a path; and a file that ends in .toml, or else the name of an entry of a database.
PathText = Annotated[str, AfterValidator(_placed)]
PlacedPath = Annotated[Path, AfterValidator(_placed)]
FileOrEntry = Annotated[str, AfterValidator(_placed_file)]
