"""Numbers that JSON cannot hold."""

from __future__ import annotations

import json
import math
from typing import Any, overload


@overload
def finite(value: dict[str, Any]) -> dict[str, Any]: ...
@overload
def finite(value: Any) -> Any: ...
def finite(value: Any) -> Any:
    """The same document with null for every number that is not finite, and lists for tuples and arrays.

    >>> finite({"high": math.inf, "low": (1.0, math.nan)})
    {'high': None, 'low': [1.0, None]}
    """
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if hasattr(value, "tolist"):
        return finite(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_finite(text: str) -> Any:
    """The document that a text holds; ValueError where it is no JSON or holds a number that is not finite.

    >>> read_finite('{"high": 1e999}')
    Traceback (most recent call last):
    ValueError: 1e999 is not a finite number
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(f"{word} is not a finite number")
    return number
