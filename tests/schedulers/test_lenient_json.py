"""Invalid JSON of schedulers is read; valid JSON stays what it is."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from metasched.schedulers.lenient_json import DEEPEST, read, repaired


def test_values_are_read_down_to_a_depth() -> None:
    for depth in range(12, 20):
        found = json.loads(repaired("[" * depth + "007" + "]" * depth))
        for _ in range(min(depth, DEEPEST)):
            (found,) = found
        assert found == ("007" if depth <= DEEPEST else None)


@pytest.mark.parametrize("text", ["", "{", "no jobs", '{"a":}', '{"a":"b}', "[1,2", '{"a":1}}'])
def test_what_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="line 1 column"):
        read(text)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20))
def test_what_is_json_is_not_changed(document: object) -> None:
    text = json.dumps(document, ensure_ascii=False)
    assume(max(itertools.accumulate({"[": 1, "{": 1, "]": -1, "}": -1}.get(c, 0) for c in text), default=0) <= DEEPEST)
    assert repaired(text) == text


@given(st.lists(st.sampled_from(["\ud83d", "\ude00", "\ud800", "\udcff", "\\", "ud8", '"', "é", "😀"])).map("".join))
def test_every_text_that_is_read_can_be_stored_and_all_its_characters_stay(text: str) -> None:
    # Python joins the two halves of a character only where it reads JSON.
    expected = "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in json.loads(json.dumps(text)))
    assert read(json.dumps([text])) == [expected]
    expected.encode()
