"""Model files: one versioned JSON document each, written whole or not at all."""

from __future__ import annotations

import os

from metasched.predictors.contract import Predictor, Saved
from metasched.store import documents
from metasched.store.files.whole_files import read_text, write_text_atomically


def read_model(path: str | os.PathLike[str]) -> Saved:
    """Read a model file.

    Raises
    ------
    InputError : when it cannot be read, is cut short, or is no sound model of a known version.
    """
    return documents.parse(read_text(path), where=str(path))


def write_model(path: str | os.PathLike[str], predictor: Predictor) -> None:
    """Write a model file.

    Raises
    ------
    InputError : when the folder may not be written, or the predictor is of a kind that cannot be saved.
    """
    write_text_atomically(path, documents.dump(predictor) + "\n")
