"""Fields of settings, requests and files: true and false are no numbers, though Python counts with them."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, get_args

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

#: Finite numbers above 0, and of at least 0.
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

_WITH_PARTS = (dict, list, tuple)
_DEEPEST = 10


class _Truth:
    """Stands for a truth value where a number is expected; pydantic takes it for nothing else."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"{self._value}"


class ValidatedFields(BaseModel):
    """A model of pydantic that takes no truth value for a number: not alone, in a list, nor in a table.

    >>> from pydantic import ValidationError
    >>> class Listen(ValidatedFields):
    ...     port: int
    >>> try:
    ...     Listen(port=True)
    ... except ValidationError as error:
    ...     print(error.errors()[0]["msg"])
    Input should be a valid integer
    """

    @model_validator(mode="before")
    @classmethod
    def _truth_is_no_number(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        alone, numbers = _number_fields(cls)
        marked = {
            name: _marked(value)
            for name, value in fields.items()
            if name in (alone if isinstance(value, bool) else numbers) and _holds_truth(value)
        }
        return fields | marked if marked else fields


class StrictFields(ValidatedFields):
    """One that stays as it was read, and refuses keys that it does not know: they are misspelled."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class LenientFields(ValidatedFields):
    """One that stays as it was read, and passes over keys that it does not know: programs of others wrote them."""

    model_config = ConfigDict(extra="ignore", frozen=True)


@cache
def _number_fields(model: type[BaseModel]) -> tuple[frozenset[str], frozenset[str]]:
    """The names, in documents, of fields that may be a number, and of those without fields of their own."""
    alone, numbers = set(), set()
    for name, field in model.model_fields.items():
        kinds = set(_kinds(field.annotation))
        if kinds & {int, float} and not kinds & {bool, Any}:
            alias = field.validation_alias
            names = {name, *(map(str, alias.choices) if isinstance(alias, AliasChoices) else [f"{alias}"])}
            alone |= names
            numbers |= set() if any(issubclass(kind, BaseModel) for kind in kinds) else names
    return frozenset(alone), frozenset(numbers)


def _kinds(annotation: Any) -> list[type]:
    """The types that an annotation consists of, and those of its literals."""
    parts = get_args(annotation)
    if parts:
        return [kind for part in parts for kind in _kinds(part)]
    return [annotation if isinstance(annotation, type) else type(annotation)]


def _holds_truth(value: Any) -> bool:
    """Whether it is a truth value, or lists and tables, however deeply nested, hold one."""
    level = [value]
    while level:
        kinds = set(map(type, level))
        if bool in kinds:
            return True
        if not any(issubclass(kind, _WITH_PARTS) for kind in kinds):
            return False
        parted = (part for part in level if isinstance(part, _WITH_PARTS))
        level = [each for part in parted for each in (part.values() if isinstance(part, dict) else part)]
    return False


def _marked(value: Any, depth: int = 0) -> Any:
    """The same with a mark in place of each truth value; below fields of numbers nothing is nested deeply."""
    if isinstance(value, bool) or depth == _DEEPEST:
        return _Truth(value)
    if isinstance(value, dict):
        return {name: _marked(each, depth + 1) for name, each in value.items()}
    return [_marked(each, depth + 1) for each in value] if isinstance(value, (list, tuple)) else value
