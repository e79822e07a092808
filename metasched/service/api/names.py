"""Removes the names of users from models, for clients that may not see them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

#: Keys of a model's document that hold names of users.
NAMED = ("users", "doubted")


def without_names(document: Any, known: Collection[str]) -> Any:
    """A model's document with numbers instead of names of users, except known ones; it predicts the same.

    >>> without_names({"model": {"users": ["bob", "alice", "", "bob"], "doubted": ["bob"]}}, {"alice"})
    {'model': {'users': ['user 1', 'alice', '', 'user 1'], 'doubted': ['user 1']}}
    """
    called: dict[str, str] = {"": ""} | {name: name for name in known}

    def plain(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: renamed(value) if key in NAMED else plain(value) for key, value in part.items()}
        return [plain(each) for each in part] if isinstance(part, list) else part

    def renamed(names: Any) -> Any:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return plain(names)
        return [called.setdefault(name, f"user {len(called) - len(known)}") for name in names]

    return plain(document)
