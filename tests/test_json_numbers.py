"""Numbers that JSON cannot hold: left out where documents are written, refused where they are read."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from metasched.json_numbers import finite, read_finite


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (math.nan, None), (math.inf, None), (-math.inf, None), (0.0, 0.0), (7, 7), (True, True), ("nan", "nan"),
        (None, None), ((1.0, math.nan), [1.0, None]), ([[math.inf], []], [[None], []]),
        ({"a": {"b": (math.nan,)}}, {"a": {"b": [None]}}), ({7: 1.0, None: 2.0}, {"7": 1.0, "None": 2.0}),
        (np.array([[1.0, np.nan]]), [[1.0, None]]), (np.float64("inf"), None), (np.int64(7), 7), (np.bool_(True), True),
    ],
)  # fmt: skip
def test_what_is_written_holds_no_number_that_is_none(value: object, written: object) -> None:
    found = finite(value)
    assert found == written
    assert type(found) is type(written)
    assert json.loads(json.dumps(found, allow_nan=False)) == written


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "-1e400"])
def test_what_is_read_holds_none_either(word: str) -> None:
    with pytest.raises(ValueError, match=rf"^{word} is not a finite number$"):
        read_finite(f'{{"a": [1, {word}]}}')


def test_what_is_read_is_as_it_is() -> None:
    assert read_finite('{"a": [1, 1.5, 1e308, -0.0, "NaN", null, true]}') == {
        "a": [1, 1.5, 1e308, 0.0, "NaN", None, True],
    }  # fmt: skip
    with pytest.raises(ValueError):
        read_finite("{")
