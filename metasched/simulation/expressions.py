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
    "int": lambda x: x.astype(np.int64) if isinstance(x, np.ndarray) else int(x),
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

    def both(scope: Scope) -> Value:
        found: Value = True
        for part in parts:
            several = isinstance(found, np.ndarray)
            found = settled(np.logical_and(found, part(scope))) if several else found and part(scope)
            if found is False:
                return False
        return found

    return both


def disjunction(parts: list[Expression]) -> Expression:
    """Whether any part is true; those after one that is true for every rank are not evaluated."""

    def either(scope: Scope) -> Value:
        found: Value = False
        for part in parts:
            now = part(scope)
            several = isinstance(found, np.ndarray) or isinstance(now, np.ndarray)
            found = settled(np.logical_or(found, now)) if several else now
            if found is True:
                return True
        return found

    return either


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
