"""Expressions of an application: what each computes for the ranks of a group of processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from metasched.simulation.values import BINARY, NUMBERS, Value, binary, each, settled

#: Functions of one number, or of an array with one for each rank.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "abs": abs,
    "int": lambda x: np.trunc(x) if isinstance(x, np.ndarray) else int(x),
    "ceil": lambda x: np.ceil(x) if isinstance(x, np.ndarray) else math.ceil(x),
    "floor": lambda x: np.floor(x) if isinstance(x, np.ndarray) else math.floor(x),
    "sqrt": lambda x: np.sqrt(x) if isinstance(x, np.ndarray) else math.sqrt(x),
    "log2": lambda x: np.log2(x) if isinstance(x, np.ndarray) else math.log2(x),
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The environment of an expression: variables, ranks, and the number of processes of each label."""

    names: Mapping[str, Value]
    ranks: range
    counts: Mapping[str, int]


Expression = Callable[[Scope], Value]


def constant(value: Value) -> Expression:
    """An expression with this value in every scope."""
    return lambda scope: value


def of_two(kind: str, one: Expression, other: Expression) -> Expression:
    """The result of an operation of :data:`~metasched.simulation.values.BINARY` on two operands."""
    apply, plain = BINARY[kind], kind != "Pow"

    def both(scope: Scope) -> Value:
        left, right = one(scope), other(scope)
        if plain and type(left) in NUMBERS and type(right) in NUMBERS:
            return settled(apply(left, right))
        return binary(kind, left, right, scope.ranks)

    return both


def truth(inner: Expression) -> Expression:
    """Whether an expression differs from 0."""
    return of_two("NotEq", inner, constant(0))


def conjunction(parts: list[Expression]) -> Expression:
    """Whether all parts are true; those after one that is false for every rank are not evaluated."""
    return _joined(parts, np.logical_and, False)


def disjunction(parts: list[Expression]) -> Expression:
    """Whether any part is true; those after one that is true for every rank are not evaluated."""
    return _joined(parts, np.logical_or, True)


def _joined(parts: list[Expression], join: Callable[[Value, Value], Value], decided: bool) -> Expression:
    """Truths joined until they are decided for every rank."""

    def result(scope: Scope) -> Value:
        found = parts[0](scope)
        for part in parts[1:]:
            if found is decided:
                break
            now = part(scope)
            found = settled(join(found, now)) if isinstance(found, np.ndarray) else now
        return found

    return result


def applied(name: str, inner: Expression) -> Expression:
    """The result of one of :data:`FUNCTIONS`."""
    function = FUNCTIONS[name]

    def result(scope: Scope) -> Value:
        with np.errstate(all="ignore"):
            try:
                return settled(function(each(inner(scope), scope.ranks)))
            except (ValueError, OverflowError):
                raise ArithmeticError(f"{name} is not defined there") from None

    return result
