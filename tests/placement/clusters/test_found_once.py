"""What is found of a long tuple is found once, for each tuple as the object that it is."""

from __future__ import annotations

import pytest

from metasched.placement.clusters import found_once as room
from metasched.placement.clusters.found_once import found_once


def test_a_tuple_is_looked_at_once_and_an_equal_one_again() -> None:
    asked: list[tuple[str, ...]] = []
    first = found_once(lambda names: asked.append(names) or {name: place for place, name in enumerate(names)})
    names = tuple(f"n{number}" for number in range(20))
    equal = tuple(f"n{number}" for number in range(20))
    for each in (names, equal, names, equal):
        assert first(each)["n7"] == 7
    assert len(asked) == 2
    assert asked[0] is names
    assert asked[1] is equal


def test_what_was_asked_for_longest_ago_is_forgotten_beyond_so_many_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MOST_ENTRIES", 10)
    asked: list[str] = []
    found = found_once(lambda names: asked.append(names[0]) or names[0])
    tuples = {name: (name,) * 4 for name in "abc"}
    for name in "ababaca":  # with c there are twelve, and b was asked for longest ago
        assert found(tuples[name]) == name
    assert asked == ["a", "b", "c"]
    assert found(tuples["b"]) == "b"
    assert asked == ["a", "b", "c", "b"]
    long = ("long",) * 50  # one alone is remembered however long it is
    assert [found(long), found(long)] == ["long", "long"]
    assert asked[4:] == ["long"]
