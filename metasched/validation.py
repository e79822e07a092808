"""Turns the errors of a document into one line: the path to the field, its value, what was expected."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from metasched.records import InputError

Document = TypeVar("Document", bound=BaseModel)


class Located:
    """Says where: an InputError leaves the block with the place put before its line.

    >>> with Located("runs.csv, row 2"):
    ...     raise InputError("processors is 0, expected a whole number of at least 1")
    Traceback (most recent call last):
    metasched.records.errors.InputError: runs.csv, row 2: processors is 0, expected a whole number of at least 1
    """

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InputError):
            raise InputError(str(error), where=self._where) from None


def validated(kind: type[Document], document: Any, *, where: str, folder: Path | None) -> Document:
    """A document as a model of pydantic; InputError for the first thing wrong with it.

    Parameters
    ----------
    kind : the model.
    document : of names, numbers, lists and tables.
    where : put in front of the message.
    folder : where relative paths start, those of the working directory where it is None.
    """
    try:
        return kind.model_validate(document, context=folder)
    except ValidationError as error:
        raise InputError(first_error(error, kind=kind), where=where) from None


def parse_toml(text: str, *, where: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises
    ------
    InputError : when it is no TOML, is nested too deeply, or holds a whole number of too many digits or a null
        character, which no path and no name can have.

    Examples
    --------
    >>> parse_toml("a = ", where="x.toml")
    Traceback (most recent call last):
    metasched.records.errors.InputError: x.toml: is not valid TOML: Invalid value (at end of document)
    """
    if null := re.search(r"\\(u0000|U00000000|x00)", text):
        line = text.count("\n", 0, null.start()) + 1
        raise InputError(f"holds a null character, {null[0]}, expected none", where=f"{where}, row {line}")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is not valid TOML: {error}", where=where) from None
    except RecursionError:
        raise InputError("is not valid TOML: it is nested too deeply", where=where) from None
    except ValueError:
        most = sys.get_int_max_str_digits()
        raise InputError(f"is not valid TOML: it holds a number of more than {most} digits", where=where) from None


def toml_as(kind: type[Document], text: str, *, where: str, folder: Path | None = None) -> Document:
    """A TOML text as a model of pydantic; see :func:`validated`."""
    return validated(kind, parse_toml(text, where=where), where=where, folder=folder)


def first_error(error: ValidationError, whole: str = "the document", kind: type[BaseModel] | None = None) -> str:
    """One line about the first thing wrong.

    Parameters
    ----------
    error : of pydantic.
    whole : what was validated, by name.
    kind : the model, whose keys are named where one is not known.
    """
    errors = error.errors(include_url=False)
    # A field that may be one value or a list has one error for each: the deeper error is about what was written.
    field = [step for step in errors[0]["loc"] if not _is_branch(step)]
    chosen = max(
        (other for other in errors if [step for step in other["loc"] if not _is_branch(step)][: len(field)] == field),
        key=lambda other: len(other["loc"]),
    )
    path = ""
    for step in chosen["loc"]:
        if not _is_branch(step):
            path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    if chosen["type"] == "extra_forbidden":
        *table, key = chosen["loc"]
        return f"{path} is not a known key{_in_place_of(str(key), _keys(kind, table) if kind else [])}"
    if chosen["type"] == "missing":
        return f"{path} is missing"
    if chosen["type"] == "too_short":
        return f"{path} is empty, expected at least one{' character' * isinstance(chosen['input'], str)}"
    if chosen["type"] == "value_error":
        return chosen["msg"].removeprefix("Value error, ")
    return f"{path or whole} is {_short(chosen['input'])}, expected {_expected(chosen['msg'])}"


def _keys(kind: type[BaseModel], path: Sequence[int | str]) -> list[str]:
    """The keys of the table at a path of a document."""
    kinds = [kind]
    for step in path:
        fields = [field for each in kinds for name, field in each.model_fields.items() if (field.alias or name) == step]
        kinds = [inner for field in fields for inner in _models(field.annotation)] or kinds
    return list(dict.fromkeys(field.alias or name for each in kinds for name, field in each.model_fields.items()))


def _models(kind: Any) -> list[type[BaseModel]]:
    """The models that a type is made of, such as that of ``list[Model] | None``."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    return [model for part in get_args(kind) for model in _models(part)]


def _in_place_of(key: str, known: Sequence[str]) -> str:
    """The known key that is most like an unknown one, or all of them where none is."""
    if near := get_close_matches(key, known, 1):
        return f", did you mean {near[0]}?"
    return f", expected one of {', '.join(known)}" if known else ""


def _expected(message: str) -> str:
    """What was expected, from pydantic's sentence about it, such as "String should match pattern '...'"."""
    expected = re.sub(r"^\w+ should (be |have |match )?", "", message)
    expected = re.sub(r"^a valid dictionary.*", "keys with values", expected)
    expected = re.sub(r", unable to parse string as an? \w+$", "", expected)
    return re.sub(r"^pattern ", "text that matches ", expected)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_branch(step: int | str) -> bool:
    """Whether a step of an error's path names a branch of a union rather than a key or a place in a list."""
    return isinstance(step, str) and ("[" in step or step in ("float", "int", "constrained-float", "constrained-int"))
