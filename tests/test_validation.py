"""TOML as users and attackers write it ends in one line."""

from __future__ import annotations

import pytest

from metasched.records import InputError
from metasched.validation import parse_toml


@pytest.mark.parametrize("null", ["\\u0000", "\\U00000000"])
def test_a_null_character_is_refused_by_its_row(null: str) -> None:
    text = f'database = "a"\n[listen]\nsocket = "a{null}b"\n'
    with pytest.raises(InputError, match=r"m\.toml, row 3: holds a null character"):
        parse_toml(text, where="m.toml")
    assert parse_toml('socket = "a\\u0041b"', where="m.toml") == {"socket": "aAb"}
