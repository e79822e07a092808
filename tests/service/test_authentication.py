"""What the daemon remembers of clients and browsers, and for how long: never more than it may."""

from __future__ import annotations

import pytest

from metasched.service import authentication
from metasched.service.authentication import SESSION, Buckets, Sessions


def test_the_session_that_began_first_is_forgotten_for_one_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "MOST_SESSIONS", 2)
    sessions = Sessions()
    words = [sessions.begin(token, now=0.0) for token in ("one", "two", "three")]
    assert [sessions.token(word, now=1.0) for word in words] == [None, "two", "three"]
    assert [sessions.token(words[2], now=at) for at in (SESSION - 0.1, SESSION)] == ["three", None]


def test_a_token_with_too_many_sessions_ends_its_own_first_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "MOST_SESSIONS", 6)
    monkeypatch.setattr(authentication, "MOST_OF_TOKEN", 3)
    sessions = Sessions()
    words = [sessions.begin(token, now=0.0) for token in ("one", *["two"] * 3, "three", "two", "two")]
    left = ["one", None, None, "two", "three", "two", "two"]
    assert [sessions.token(word, now=1.0) for word in words] == left


def test_the_client_that_asked_longest_ago_is_forgotten_for_one_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authentication, "MOST_CLIENTS", 2)
    buckets = Buckets(rate=1e-9, burst=1)
    assert [buckets.wait(name, now=0.0) for name in ("ann", "bob")] == [0.0, 0.0]
    assert buckets.wait("ann", now=0.0) > 0.0
    assert buckets.wait("carl", now=0.0) == 0.0
    # Bob, who asked least lately, begins anew.
    assert [buckets.wait(name, now=0.0) > 0.0 for name in ("ann", "carl", "bob")] == [True, True, False]


def test_a_bucket_fills_at_its_rate_and_never_above_its_size() -> None:
    buckets = Buckets(rate=2.0, burst=4)
    assert buckets.wait("ann", now=0.0, count=4) == 0.0
    assert buckets.wait("ann", now=0.5, count=3) == pytest.approx(1.0)
    assert buckets.wait("ann", now=1.5, count=3) == 0.0
    assert buckets.wait("ann", now=1000.0, count=4) == 0.0
    assert buckets.wait("ann", now=1000.0, count=1) == pytest.approx(0.5)
