"""True and false are no numbers, wherever a number is expected."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, Field, ValidationError

from monitors.validated_fields import ValidatedFields
from tests.executed_lines import sources

ROOT = Path(__file__).parents[2]


class Step(ValidatedFields):
    at: float
    last: bool = False


class Fields(ValidatedFields):
    whole: int = 1
    real: Annotated[float, Field(ge=0)] = 0.0
    some: list[float] = []
    named: dict[str, float | str] = {}
    pairs: list[tuple[float, float]] = []
    version: Literal[1] = 1
    steps: float | list[Step] = 0.0
    other: Annotated[int | None, Field(validation_alias=AliasChoices("another", "other"))] = None
    truth: bool = False
    text: str = ""
    anything: Any = None


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize(
    ("name", "around"),
    [
        ("whole", lambda truth: truth),
        ("real", lambda truth: truth),
        ("some", lambda truth: [1.0, truth]),
        ("named", lambda truth: {"a": 1.0, "b": truth}),
        ("pairs", lambda truth: [(1.0, 2.0), [3.0, truth]]),
        ("version", lambda truth: truth),
        ("steps", lambda truth: truth),
        ("steps", lambda truth: [{"at": truth}]),
        ("another", lambda truth: truth),
        ("text", lambda truth: truth),
    ],
)
def test_a_truth_value_is_no_number(name: str, around: Any, truth: bool) -> None:
    with pytest.raises(ValidationError) as wrong:
        Fields.model_validate({name: around(truth)})
    assert {error["loc"][0] for error in wrong.value.errors()} == {name}


def test_truth_values_are_taken_where_they_are_expected() -> None:
    given = {"truth": True, "anything": [True], "steps": [{"at": 2, "last": True}], "named": {"a": 1, "b": "true"}}
    assert Fields.model_validate(given).model_dump(exclude_unset=True) == given


def test_deep_nesting_is_refused_in_an_orderly_way() -> None:
    deep: Any = True
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValidationError):
        Fields.model_validate({"some": deep})


def test_every_model_of_settings_requests_and_files_refuses_them() -> None:
    found = []
    for path in sources(ROOT):
        if "BaseModel)" in path.read_text(encoding="utf-8"):
            module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            own = (
                each for _, each in inspect.getmembers(module, inspect.isclass) if each.__module__ == module.__name__
            )
            found += [each for each in own if issubclass(each, BaseModel)]
    assert len(found) > 30
    assert [each for each in found if not issubclass(each, ValidatedFields)] == []
