"""Turns what pydantic finds wrong into one line: the path to the field, what stands there, what was expected."""

from __future__ import annotations

from pydantic import ValidationError


def first_complaint(error: ValidationError) -> str:
    """One line about the first thing wrong."""
    complaints = error.errors(include_url=False)
    # A field that may be one value or a list complains once for each: the deeper complaint is about what was written.
    field = [step for step in complaints[0]["loc"] if not _is_branch(step)]
    complaint = max(
        (
            other
            for other in complaints
            if [step for step in other["loc"] if not _is_branch(step)][: len(field)] == field
        ),
        key=lambda other: len(other["loc"]),
    )
    path = ""
    for step in complaint["loc"]:
        if not _is_branch(step):
            path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    if complaint["type"] == "extra_forbidden":
        return f"{path} is not a key known here"
    if complaint["type"] == "missing":
        return f"{path} is missing"
    if complaint["type"] == "too_short":
        return f"{path} is empty, expected at least one"
    if complaint["type"] == "value_error":
        return complaint["msg"].removeprefix("Value error, ")
    return f"{path or 'the document'} is {_short(complaint['input'])}, expected {_expected(complaint['msg'])}"


def _expected(message: str) -> str:
    return message.removeprefix("Input should be ")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_branch(step: int | str) -> bool:
    """Whether a step of a complaint's path names a branch of a union rather than a key or a place in a list."""
    return isinstance(step, str) and ("[" in step or step in ("float", "int", "constrained-float", "constrained-int"))
