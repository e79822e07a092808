"""TOML as users and attackers write it ends in one line."""

from __future__ import annotations

import pytest

from metasched.records import InputError
from metasched.service.configuration import Configuration
from metasched.validation import parse_toml, toml_as


@pytest.mark.parametrize("null", ["\\u0000", "\\U00000000"])
def test_a_null_character_is_refused_by_its_row(null: str) -> None:
    text = f'database = "a"\n[listen]\nsocket = "a{null}b"\n'
    with pytest.raises(InputError, match=r"m\.toml, row 3: holds a null character"):
        parse_toml(text, where="m.toml")
    assert parse_toml('socket = "a\\u0041b"', where="m.toml") == {"socket": "aAb"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[[slurm]]\nname = ""', "slurm[0].name is '', expected at least 1 character"),
        ('database = ""', "database is empty, expected at least one character"),
        ('[[site]]\nname = "a b"\nurl = "s"', "site[0].name is 'a b', expected text that matches '^"),
        (
            '[[problem_size]]\nname = "#"\nnumber = 0\napplication = "a"',
            "number is 0, expected greater than or equal to 1",
        ),
        ("listen = 3", "listen is 3, expected keys with values"),
        ("level = [1]", "level is [1], expected a valid number"),
        ("[listen]\nqqq = 1", "listen.qqq is not a known key, expected one of host, port, socket, certificate, key"),
        (f"[energy]\nfrequencies = {[100] * 101}", "..., expected at most 100 items"),
    ],
)
def test_what_was_expected_is_one_clause(text: str, line: str) -> None:
    with pytest.raises(InputError) as refused:
        toml_as(Configuration, text, where="m.toml")
    assert line in str(refused.value)
