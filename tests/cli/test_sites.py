"""``metasched sites status`` shows what each link is known by, whatever version the daemon has."""

from __future__ import annotations

from typing import Any

import pytest

from metasched.cli import consulting, main

SITE: dict[str, Any] = {
    "site": "east", "asked": 5.0, "seconds": 0.1, "fault": "", "bandwidth": 940.0, "open": 0,
    "trust": {"multiplier": 1.0, "low": 0.5, "high": 2.0, "outcomes": 3},
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({}, {"940", "–"}),
        ({"bandwidth_source": "transfers"}, {"940", "transfers"}),
        (
            {"bandwidth_source": "probes", "bandwidth_age": 90.0, "round_trip": 0.0125},
            {"940", "probes", "90.0", "trip", "12.5"},
        ),
    ],
)
def test_what_the_bandwidth_is_known_by_is_shown(
    more: dict[str, Any], shown: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(consulting, "consult", lambda *_: {"sites": [SITE | more], "jobs": []})
    with pytest.raises(SystemExit) as left:
        main(["sites", "status"])
    assert not left.value.code
    assert shown <= set(capsys.readouterr().out.split())


def test_why_a_site_does_not_answer_is_one_line_below_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = "the certificate of https://old.example:8765 is not accepted: certificate has expired, " + "and more " * 9
    sites = [SITE, SITE | {"site": "old", "fault": fault}]
    monkeypatch.setattr(consulting, "consult", lambda *_: {"sites": sites, "jobs": []})
    with pytest.raises(SystemExit):
        main(["sites", "status"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "certificate" in line] == [f"old: {fault.strip()}"]
