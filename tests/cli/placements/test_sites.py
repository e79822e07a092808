"""``metasched sites status`` shows what each link is known by, whatever version the daemon has."""

from __future__ import annotations

from typing import Any

import pytest

from metasched.cli import main
from metasched.cli.placements import sites as sites_verbs

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
    monkeypatch.setattr(sites_verbs, "ask_daemon", lambda *_: {"sites": [SITE | more], "jobs": []})
    with pytest.raises(SystemExit) as left:
        main(["sites", "status"])
    assert not left.value.code
    assert shown <= set(capsys.readouterr().out.split())


def test_why_a_site_does_not_answer_is_one_line_below_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = "the certificate of https://old.example:8765 is not accepted: certificate has expired, " + "and more " * 9
    sites = [SITE, SITE | {"site": "old", "fault": fault}]
    monkeypatch.setattr(sites_verbs, "ask_daemon", lambda *_: {"sites": sites, "jobs": []})
    with pytest.raises(SystemExit):
        main(["sites", "status"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "certificate" in line] == [f"old: {fault.strip()}"]


def test_nothing_is_told_of_a_site_that_never_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trust = {"multiplier": 1.0, "low": 1.0, "high": 1.0, "outcomes": 0}
    silent = SITE | {"seconds": 0.0, "fault": "no answer", "bandwidth": None, "trust": trust}
    monkeypatch.setattr(sites_verbs, "ask_daemon", lambda *_: {"sites": [silent], "jobs": []})
    with pytest.raises(SystemExit):
        main(["sites", "status"])
    row = next(line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["east"])
    assert row.split() == ["east", "5.0", "s", "ago", "–", "–", "–", "–", "0", "0"]


@pytest.mark.parametrize(("clock", "shown"), [(7200.0, "2.0 h ahead of"), (-90.0, "90.0 s behind")])
def test_a_clock_that_is_off_is_said(
    clock: float, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sites_verbs, "ask_daemon", lambda *_: {"sites": [SITE | {"clock": clock}], "jobs": []})
    with pytest.raises(SystemExit):
        main(["sites", "status"])
    assert f"east: its clock is {shown} this one; nothing depends on it" in capsys.readouterr().out


def test_what_the_jobs_of_a_site_say_against_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    doubted = SITE | {"site": "west", "warnings": ["2 jobs take longer than it said", "one\x1b[2J"]}
    monkeypatch.setattr(sites_verbs, "ask_daemon", lambda *_: {"sites": [SITE, doubted], "jobs": []})
    with pytest.raises(SystemExit) as left:
        main(["sites", "status"])
    shown = capsys.readouterr().out
    assert not left.value.code
    assert "west: 2 jobs take longer than it said\n" in shown
    assert "east: " not in shown
    assert "\x1b[2J" not in shown


def test_links_between_sites_are_shown_with_what_is_known_of_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    links = [
        {"links": ["a"], "bandwidth": 900.0, "round_trip": 0.01, "identifiable": True, "paths": 3},
        {"links": ["b", "c\x1b[2J"], "bandwidth": None, "round_trip": 0.0, "identifiable": True, "paths": 1},
        {"links": ["d"], "bandwidth": 50.0, "round_trip": 0.002, "identifiable": False, "paths": 2},
    ]
    found = {"links": links, "uncrossed": ["e"], "residual": {"bandwidth": 0.3, "round_trip": 0.02}, "explained": False}
    monkeypatch.setattr(sites_verbs, "ask_daemon", lambda *_: {"sites": [SITE], "links": found, "jobs": []})
    with pytest.raises(SystemExit) as left:
        main(["sites", "status"])
    shown = capsys.readouterr().out
    assert not left.value.code
    assert "\x1b[2J" not in shown
    assert {"900", "yes", "10", "together", "no"} <= set(shown.split())
    text = " ".join(shown.split())
    assert "bandwidths to within 30.0%, round trips to within 2.0%, too badly to be used for other paths" in text
    assert "no measured path crosses e" in text


PLACE = {
    "rank": 1, "site": "east", "completion": 400.0, "interval": {"low": 300.0, "high": 7200.0}, "wait": 60.0,
    "pending": 30.0, "transfer": 10.0, "execution_time": 300.0, "reason": "the earliest", "warnings": ["an old load"],
}  # fmt: skip


@pytest.mark.parametrize("table", [True, False])
@pytest.mark.parametrize("places", [[PLACE], []])
def test_a_ranking_of_sites_is_a_table_and_what_is_wrong_stands_beside_it(
    table: bool, places: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    left_out = [{"site": "west", "why": "it does not answer"}]
    sites_verbs.show({"sites": places, "left_out": left_out, "warnings": ["a doubt"]}, table=table)
    out, err = capsys.readouterr()
    assert "west is left out: it does not answer" in err
    assert "a doubt" in err
    assert ("east: an old load" in err) is bool(places)
    if table and places:
        row = next(line for line in out.splitlines() if line.split()[:2] == ["1", "east"])
        assert " ".join(row.split()) == "1 east 400 s 300 s to 2.0 h 90.0 s 10.0 s 300 s"
        assert out.rstrip().endswith("east: the earliest")
    else:
        assert out == ""
