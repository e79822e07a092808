"""Documents of models that somebody has changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from metasched.records import InputError
from metasched.store.documents import dump, parse


def refusal(predictor: Any, path: str, value: Any) -> str:
    """Why the document of a predictor is refused with another value at a path, such as ``window.0.1``."""
    whole = document = json.loads(dump(predictor))
    *steps, last = path.split(".")
    for step in steps:
        document = document[int(step) if step.isdigit() else step]
    document[int(last) if last.isdigit() else last] = value
    with pytest.raises(InputError, match=r"^m\.json: .*\Z") as refused:
        parse(json.dumps(whole), where="m.json")
    return str(refused.value)
