"""Paths in a file of settings start at its folder; URLs, and names of entries, stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from monitors.relative_paths import FileOrEntry, PathText, PlacedPath


class Read(BaseModel):
    text: PathText = ""
    path: PlacedPath = Path()
    entry: FileOrEntry = ""


@pytest.mark.parametrize(
    ("given", "text", "entry"),
    [
        ("a/b.toml", "/etc/m/a/b.toml", "/etc/m/a/b.toml"),
        ("b", "/etc/m/b", "b"),
        ("/b.toml", "/b.toml", "/b.toml"),
        ("http://n1/b", "http://n1/b", "http://n1/b"),
        ("", "", ""),
    ],
)
def test_a_path_starts_at_the_folder_of_the_file_that_names_it(given: str, text: str, entry: str) -> None:
    found = Read.model_validate({"text": given, "entry": given}, context=Path("/etc/m"))
    assert (found.text, found.entry) == (text, entry)
    assert Read.model_validate({"path": "b"}, context=Path("/etc/m")).path == Path("/etc/m/b")


def test_without_a_folder_a_path_stays_as_it_is() -> None:
    found = Read.model_validate({"text": "b", "path": "b", "entry": "b.toml"})
    assert (found.text, found.path, found.entry) == ("b", Path("b"), "b.toml")
