"""How one site is asked: with its token, by its certificate, and within its deadline; and all within theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from metasched.records import InputError
from metasched.sites import site_client
from metasched.sites.settings import SiteTable
from metasched.sites.site_client import SiteClient, ask_site


@pytest.mark.parametrize(
    ("fields", "timeout", "expected"),
    [
        ({}, None, {"token": None, "verify": True, "timeout": 4.0}),
        ({}, 1.5, {"token": None, "verify": True, "timeout": 1.5}),
        ({"token_file": "token", "ca_file": "ca.pem"}, 9.0, {"token": "secret", "verify": "ca.pem", "timeout": 4.0}),
    ],
)
def test_a_site_is_asked_as_its_settings_say(
    fields: dict[str, str], timeout: float | None, expected: dict[str, Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    asked: list[Any] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(site_client, "ask", lambda *words, **more: asked.append((words, more)))
    (tmp_path / "token").write_text("secret\n")
    ask_site(SiteTable(name="east", url="https://east", deadline=4.0, **fields), "POST", "/v1/x", {"a": 1}, timeout)
    assert asked == [(("https://east", "POST", "/v1/x", {"a": 1}), expected | {"most": 4_194_304})]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (InputError("https://east: n is 0\nof cg"), "it refuses the question: n is 0 of cg"),
        (RuntimeError("no\nroute"), "no route"),
        (KeyError(), "KeyError"),
        ({"placements": []}, ""),
    ],
)
def test_why_a_site_gives_no_answer_is_one_line(answer: Any, why: str) -> None:
    def ask(*_: Any, timeout: float) -> Any:
        assert timeout == 7.0
        if isinstance(answer, Exception):
            raise answer
        return answer

    client, table = SiteClient(ask), SiteTable(name="east", url="https://east", deadline=4.0)
    for _ in range(17):  # no thread stays behind
        found = client.ask_all([table], {"east": ("GET", "/v1/x", None)}, within=7.0)["east"]
    assert (found.why, found.answer) == (why, None if why else answer)
