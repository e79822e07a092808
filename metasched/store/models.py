"""Model files: one versioned JSON document each, written whole or not at all."""

from __future__ import annotations

import json
import os

from metasched.predictors import documents
from metasched.predictors.contract import Predictor
from metasched.store.database import Store
from metasched.store.files import read_text, write_text_atomically


def read_model(path: str | os.PathLike[str]) -> documents.Saved:
    """Read a model file.

    Raises
    ------
    InputError
        When it cannot be read, is cut short, or is no sound model of a known version.
    """
    return documents.parse(read_text(path), where=str(path))


def write_model(path: str | os.PathLike[str], predictor: Predictor) -> None:
    """Write a model file.

    Raises
    ------
    InputError
        When the folder may not be written, or the predictor is of a kind that cannot be saved.
    """
    write_text_atomically(path, documents.dump(predictor) + "\n")


def stored_model(store: Store, application: str, cluster: str) -> documents.Saved:
    """The newest model of an application on a cluster in a database.

    Raises
    ------
    InputError
        When there is none, or it is no sound model of a known version.
    """
    document = json.dumps(store.load_model(application, cluster))
    return documents.parse(document, where=f"{store.name}, model of {application} on {cluster}")
