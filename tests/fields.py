"""Prints the fields of requests, configurations and files with their bounds and defaults, a line each.

``python -m tests.fields >tests/fields.txt`` writes down those that a test compares with the models.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

from tests.executed_lines import sources

ROOT = Path(__file__).parents[1]
#: What is said about a field and is none of its bounds.
SAID = ("title", "description", "examples")


def fields() -> Iterator[str]:
    """A line for each field of each model of the product's own, in order."""
    for path in sources(ROOT):
        if "BaseModel" in (text := path.read_text(encoding="utf-8")) or "Field(" in text:
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            module = importlib.import_module(name)
            for _, model in inspect.getmembers(module, inspect.isclass):
                if issubclass(model, BaseModel) and model.__module__ == name:
                    yield from _fields_of(model)


def _fields_of(model: type[BaseModel]) -> Iterator[str]:
    try:
        schema = model.model_json_schema()
    except PydanticInvalidForJsonSchema:
        return  # No message of it is written down as JSON.
    # One that refers to itself stands among its parts.
    own = schema if "properties" in schema else schema.get("$defs", {}).get(model.__name__, {})
    for name, bounds in sorted(own.get("properties", {}).items()):
        required = " required" if name in own.get("required", ()) else ""
        yield f"{model.__module__}.{model.__name__}.{name}{required} {json.dumps(_bounds(bounds), sort_keys=True)}"


def _bounds(part: Any) -> Any:
    """A part of a JSON schema without what is only said."""
    if isinstance(part, dict):
        return {key: _bounds(value) for key, value in part.items() if key not in SAID}
    return [_bounds(each) for each in part] if isinstance(part, list) else part


if __name__ == "__main__":
    print(*fields(), sep="\n")
