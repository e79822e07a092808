"""Prints what callers may say and leave out, a line each.

Fields of requests, configurations and files with their bounds and defaults; the values that public functions, records
and verbs take where an argument is left out; and the bounds of the verbs' options.
``python -m tests.fields >tests/fields.txt`` writes down those that a test compares with the product.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any, get_type_hints

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

from tests.executed_lines import dotted, sources
from tests.recording import PRODUCT

ROOT = Path(__file__).parents[1]
#: What is said about a field and is none of its bounds.
SAID = ("title", "description", "examples")
#: What JSON's schema leaves out: a key of pydantic's own schema, its value, and a word for it.
CHECKS = (("allow_inf_nan", False, "finite"), ("strict", True, "strict"))


def fields() -> Iterator[str]:
    """A line for each field of each model of the product's own, in order."""
    for path in sources(ROOT):
        if "BaseModel" in (text := path.read_text(encoding="utf-8")) or "Field(" in text:
            name = dotted(ROOT, path)
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
    by_alias = {field.alias or name: name for name, field in model.model_fields.items()}
    checks = _checks_of(model)
    for name, bounds in sorted(own.get("properties", {}).items()):
        required = " required" if name in own.get("required", ()) else ""
        more = "".join(f" {check}" for check in checks.get(by_alias.get(name, name), ()))
        line = f"{model.__module__}.{model.__name__}.{name}{required} {json.dumps(_bounds(bounds), sort_keys=True)}"
        yield f"{line}{more}"


def _checks_of(model: type[BaseModel]) -> dict[str, list[str]]:
    """For each field what JSON's schema does not say: whether numbers must be finite, and of the type itself."""
    part: Any = model.__pydantic_core_schema__
    while part["type"] != "model-fields":
        part = part["schema"]
    return {name: sorted(set(_checks(field["schema"]))) for name, field in part["fields"].items()}


def _checks(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if part.get("type") in ("model", "definition-ref"):  # which has lines of its own
            return
        yield from (word for key, value, word in CHECKS if part.get(key) is value)
        for each in part.values():
            yield from _checks(each)
    elif isinstance(part, list | tuple):
        for each in part:
            yield from _checks(each)


def _bounds(part: Any) -> Any:
    """A part of a JSON schema without what is only said."""
    if isinstance(part, dict):
        return {key: _bounds(value) for key, value in part.items() if key not in SAID}
    return [_bounds(each) for each in part] if isinstance(part, list) else part


def defaults() -> Iterator[str]:
    """A line for each argument that may be left out of a public function or class, and for each bounded option."""
    for path in (each for each in sources(ROOT) if each.stem != "__main__"):
        name = dotted(ROOT, path)
        for word, each in vars(importlib.import_module(name)).items():
            if not word.startswith("_") and getattr(each, "__module__", None) == name:
                for called, function in _called(word, each):
                    yield from (f"{name}.{called} {key}={value}" for key, value in _left_out(function))
                    if name.startswith("metasched.cli."):
                        yield from (f"{name}.{called} {option}" for option in _bounded(function))


def _called(word: str, each: Any) -> Iterator[tuple[str, Any]]:
    """What a name of a module can be called as: a function, or a class and its methods."""
    if isinstance(each, FunctionType):
        yield word, each
    elif isinstance(each, type) and not issubclass(each, BaseModel | Enum):
        if getattr(each.__init__, "__module__", each.__module__).partition(".")[0] in PRODUCT:
            yield word, each
        methods = ((key, getattr(value, "__func__", value)) for key, value in vars(each).items() if key[0] != "_")
        yield from ((f"{word}.{key}", value) for key, value in methods if isinstance(value, FunctionType))


def _left_out(function: Any) -> Iterator[tuple[str, str]]:
    """Parameters with plain values that they have where nothing is said."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # A class that is made by another one says nothing of its parameters.
        return
    for each in parameters:
        if each.name[0] != "_" and (each.default is None or isinstance(each.default, bool | int | float | str | tuple)):
            yield each.name, repr(each.default)


def _bounded(function: Any) -> Iterator[str]:
    """The names and bounds of a verb's options that have some."""
    try:
        hints = get_type_hints(function, include_extras=True) if isinstance(function, FunctionType) else {}
    except NameError:  # Not a verb: what a verb's options are must be known when it runs.
        return
    for name, hint in hints.items():
        for option in getattr(hint, "__metadata__", ()):
            found = {key: value for key in ("min", "max") if (value := getattr(option, key, None)) is not None}
            if found:
                yield f"{name} {json.dumps(found)}"


if __name__ == "__main__":
    print(*fields(), *defaults(), sep="\n")
