"""MUNGE credentials that ``unmunge`` decodes; the one here is a script, the real one is asked by the system tests."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from metasched.service import munge_credentials
from metasched.service.configuration import Munge
from metasched.service.munge_credentials import MungeCredentials

REQUEST = "GET /v1/runs"


@pytest.fixture
def unmunge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the command prints, whatever the credential."""
    printed = tmp_path / "printed"
    (tmp_path / "unmunge").write_text(f"#!/bin/sh\ncat > /dev/null\ncat {printed}\n")
    (tmp_path / "unmunge").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    printed.write_text(decoded())
    return printed


def decoded(age: float = 0.0, status: int = 0, request: str = REQUEST, uid: str = "1000") -> str:
    return f"STATUS: {status}\nENCODE_TIME: {int(time.time() - age)}\nUID: {uid}\n\nmetasched {request}"


def users(*credentials: str) -> list[int | None]:
    """Whom one daemon takes each of some credentials to be of, one after the other."""

    async def each() -> list[int | None]:
        known = MungeCredentials(Munge())
        return [await known.user(credential, REQUEST, "host") for credential in credentials]

    return asyncio.run(each())


def test_a_credential_counts_once(unmunge: Path) -> None:
    assert users("one", "one", "other", "one") == [1000, None, 1000, None]


@pytest.mark.parametrize(
    "text",
    [
        decoded(age=3600.0),
        decoded(age=-3600.0),
        decoded(status=17),
        decoded(request="GET /v1/status"),
        decoded(uid="root"),
        "no metadata",
        "",
    ],
    ids=["old", "of the future", "not valid", "another request's", "without a number", "text", "empty"],
)
def test_what_is_no_credential_for_this_request_is_nobodys(text: str, unmunge: Path) -> None:
    unmunge.write_text(text)
    assert users("one") == [None]


def test_one_host_that_sends_many_leaves_room_for_others(unmunge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(munge_credentials, "MOST_WAITING", 8)
    monkeypatch.setattr(munge_credentials, "MOST_OF_HOST", 2)

    async def asked() -> list[int | None]:
        known = MungeCredentials(Munge())
        many = [known.user(f"{number}", REQUEST, "one") for number in range(20)]
        return await asyncio.gather(*many, known.user("own", REQUEST, "other"))

    found = asyncio.run(asked())
    assert (found.count(1000), found[-1]) == (3, 1000)


def test_no_more_are_accepted_than_are_remembered(unmunge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(munge_credentials, "MOST_REMEMBERED", 2)
    assert users("one", "two", "three") == [1000, 1000, None]
    assert users("x" * (munge_credentials.MOST + 1)) == [None]


def test_without_the_command_nobody_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert users("one") == [None]
