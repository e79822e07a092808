"""``metasched sites status`` shows what each link is known by, whatever version the daemon has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import call, refusal, status_of

from metasched.cli import main
from metasched.cli.placements import sites as sites_verbs
from metasched.client import connection
from metasched.client.connection import DaemonError
from metasched.records import InputError
from metasched.schedulers.portable import portable
from metasched.sites import resendable_jobs, resending
from metasched.sites.resending import Resendable, UnclearError
from metasched.sites.settings import SiteTable
from metasched.sites.ssh_operations import SshOperations

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
    status, out, _ = call(capsys, "sites", "status")
    assert not status
    assert shown <= set(out.split())


def test_why_a_site_does_not_answer_is_one_line_below_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = "the certificate of https://old.example:8765 is not accepted: certificate has expired, " + "and more " * 9
    sites = [SITE, SITE | {"site": "old", "fault": fault}]
    monkeypatch.setattr(sites_verbs, "ask_daemon", lambda *_: {"sites": sites, "jobs": []})
    out = call(capsys, "sites", "status")[1]
    lines = out.splitlines()
    assert [line for line in lines if "certificate" in line] == [f"old: {fault.strip()}"]


def test_nothing_is_told_of_a_site_that_never_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trust = {"multiplier": 1.0, "low": 1.0, "high": 1.0, "outcomes": 0}
    silent = SITE | {"seconds": 0.0, "fault": "no answer", "bandwidth": None, "trust": trust}
    monkeypatch.setattr(sites_verbs, "ask_daemon", lambda *_: {"sites": [silent], "jobs": []})
    out = call(capsys, "sites", "status")[1]
    row = next(line for line in out.splitlines() if line.split()[:1] == ["east"])
    assert row.split() == ["east", "5.0", "s", "ago", "–", "–", "–", "–", "0", "0"]


@pytest.mark.parametrize(("clock", "shown"), [(7200.0, "2.0 h ahead of"), (-90.0, "90.0 s behind")])
def test_a_clock_that_is_off_is_said(
    clock: float, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sites_verbs, "ask_daemon", lambda *_: {"sites": [SITE | {"clock": clock}], "jobs": []})
    out = call(capsys, "sites", "status")[1]
    assert f"east: its clock is {shown} this one; nothing depends on it" in out


def test_what_the_jobs_of_a_site_say_against_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    doubted = SITE | {"site": "west", "warnings": ["2 jobs take longer than it said", "one\x1b[2J"]}
    monkeypatch.setattr(sites_verbs, "ask_daemon", lambda *_: {"sites": [SITE, doubted], "jobs": []})
    status, out, _ = call(capsys, "sites", "status")
    assert not status
    assert "west: 2 jobs take longer than it said\n" in out
    assert "east: " not in out
    assert "\x1b[2J" not in out


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
    status, out, _ = call(capsys, "sites", "status")
    assert not status
    assert "\x1b[2J" not in out
    assert {"900", "yes", "10", "together", "no"} <= set(out.split())
    text = " ".join(out.split())
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


def ranked(refused: Exception | None, asked: list[tuple[str, str]]) -> Any:
    """A daemon that ranks one site and takes no report, where it is told to refuse one."""

    def ask(config: object, url: object, method: str, path: str, document: object = None) -> Any:
        asked.append((method, path))
        if method == "PUT" and refused is not None:
            raise refused
        place = PLACE | {"partition": "fast"}
        return {"sites": [place if method == "POST" else SITE], "left_out": [], "warnings": [], "why": "", "id": "0f"}

    return ask


@pytest.mark.parametrize("refused", [None, DaemonError("the daemon is away"), InputError("it knows no job 0f")])
def test_a_job_that_was_submitted_is_reported_and_kept_whatever_the_daemon_says_afterwards(
    refused: Exception | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("METASCHED_CONFIG", str(tmp_path / "metasched.toml"))
    (tmp_path / "metasched.toml").write_text("")
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(sites_verbs, "ask_daemon", ranked(refused, asked))
    monkeypatch.setattr(SshOperations, "submit", lambda *_: ("17", 0.0, 0.0))
    (tmp_path / "job.sh").write_text("#!/bin/sh\n")
    (tmp_path / "job.sh").chmod(0o755)
    words = ["--comment=metasched:app=cg,n=1400", "-n", "2", str(tmp_path / "job.sh")]
    status, out, err = call(capsys, "sites", "submit", "--resend", "--", *words)
    assert not status
    assert out.endswith("submitted to east as job 17\n")
    assert (str(refused) in err) is (refused is not None)
    assert asked[-1] == ("PUT", "/v1/sites/jobs/0f")
    (kept,) = map(resendable_jobs.kept_job, resendable_jobs.kept_files())
    assert (kept.state, kept.daemon) == (Resendable("0f", site="east", job="17"), "http://127.0.0.1:8765")


@pytest.mark.parametrize(
    ("fault", "tried", "status", "said"),
    [
        (RuntimeError("no route to host"), ["east", "west"], 0, "east is skipped: no route to host"),
        (UnclearError("the line broke"), ["east"], 1, "east may have accepted the job, look there before you submit"),
        (
            KeyboardInterrupt(),
            ["east"],
            1,
            "east may have accepted the job, look there before you submit it again: int",
        ),
    ],
)
def test_a_job_goes_to_the_next_site_only_where_the_first_cannot_have_accepted_it(
    fault: BaseException,
    tried: list[str],
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[str] = []
    reports: list[Any] = []

    def ask(config: object, url: object, method: str, path: str, document: Any = None) -> Any:
        if method == "PUT":
            reports.append(document)
        places = [PLACE | {"site": site, "partition": "fast"} for site in ("east", "west")]
        return {"sites": places if method == "POST" else [], "left_out": [], "warnings": [], "why": "", "id": "0f"}

    def submit(operations: SshOperations, site: str, partition: str) -> tuple[str, float, float]:
        asked.append(site)
        if site == "east":
            raise fault
        return "17", 0.0, 0.0

    monkeypatch.setattr(sites_verbs, "ask_daemon", ask)
    monkeypatch.setattr(SshOperations, "submit", submit)
    (tmp_path / "job.sh").write_text("#!/bin/sh\n")
    (tmp_path / "job.sh").chmod(0o755)
    code, _, err = call(
        capsys, "sites", "submit", "--", "--comment=metasched:app=cg,n=1400", "-n", "2", str(tmp_path / "job.sh")
    )
    assert (asked, code) == (tried, status)
    assert said in err
    # Of a job that may or may not be there nothing is reported.
    assert [report["site"] for report in reports] == tried[1:]


def test_what_would_be_overwritten_at_the_site_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "input").touch()
    brought = [word for folder in ("a", "b") for word in ("--bring", str(tmp_path / folder / "input"))]
    assert "--bring names input twice" in refusal(
        call(capsys, "sites", "submit", *brought, "--", "--comment=metasched:app=cg,n=1400", "/bin/true")
    )


@pytest.mark.parametrize("folder", ["~other/data", "-x", "a b", "~", "a;b"])
def test_a_folder_that_is_not_plain_is_refused(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"--folder is {folder!r}" in refusal(
        call(capsys, "sites", "submit", f"--folder={folder}", "--", "--comment=metasched:app=cg,n=1400", "/bin/true")
    )


def test_an_array_is_not_sent_elsewhere_since_its_tasks_start_one_by_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/sh\n#SBATCH --array=1-9\n")
    (tmp_path / "job.sh").chmod(0o755)
    assert "its script asks for an array" in refusal(
        call(capsys, "sites", "submit", "--resend", "--", "--comment=metasched:app=cg,n=1400", str(tmp_path / "job.sh"))
    )


def test_a_job_that_a_daemon_which_is_away_keeps_from_being_sent_elsewhere_is_told_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("METASCHED_CONFIG", str(tmp_path / "metasched.toml"))
    (tmp_path / "metasched.toml").write_text(f'[listen]\nsocket = "{tmp_path}/none.sock"\n')
    (tmp_path / "job.sh").write_text("#!/bin/sh\n")
    (tmp_path / "job.sh").chmod(0o755)
    job = portable(["--comment=metasched:app=cg,n=1400", "-n", "2", str(tmp_path / "job.sh")])
    resendable_jobs.keep(Resendable("0f"), job, [], "", [], "")
    monkeypatch.setattr(sites_verbs, "_reached", lambda *_: {})
    status, out, _ = call(capsys, "sites", "resend")
    assert status == 1
    assert "tried again the next time: the daemon at " in out


@pytest.mark.parametrize("blocked", ["0f.json", "0f.script"])
def test_a_job_that_cannot_be_stored_is_reported_all_the_same(
    blocked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (resendable_jobs.folder() / blocked).mkdir(parents=True)
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(sites_verbs, "ask_daemon", ranked(None, asked))
    monkeypatch.setattr(SshOperations, "submit", lambda *_: ("17", 0.0, 0.0))
    status, out, err = call(
        capsys, "sites", "submit", "--resend", "--", "--comment=metasched:app=cg,n=1400", "/bin/true"
    )
    assert (status, out.splitlines()[-1]) == (0, "submitted to east as job 17")
    assert "the job cannot be sent elsewhere later, since it was not stored: " in err
    assert asked[-1] == ("PUT", "/v1/sites/jobs/0f")


def test_a_job_is_reported_though_nobody_reads_where_it_went(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(sites_verbs, "ask_daemon", ranked(None, asked))
    monkeypatch.setattr(SshOperations, "submit", lambda *_: ("17", 0.0, 0.0))

    def closed(text: str) -> None:
        if text.startswith("submitted"):
            raise BrokenPipeError

    monkeypatch.setattr(sites_verbs.output, "say", closed)
    status_of("sites", "submit", "--", "--comment=metasched:app=cg,n=1400", "/bin/true")
    assert asked[-1] == ("PUT", "/v1/sites/jobs/0f")


def kept(*uids: str, daemon: str = "") -> None:
    job = portable(["--comment=metasched:app=cg,n=1400", "-n", "2", "/bin/true"])
    for uid in uids:
        resendable_jobs.keep(Resendable(uid), job, [], "", [], daemon)


def test_a_job_that_cannot_be_sent_on_does_not_hold_up_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    kept("0a", "0b", "0c", "0d")
    (resendable_jobs.folder() / "0a.json").write_text("")
    faults = {"0b": FileNotFoundError(2, "No such file", "data"), "0c": RuntimeError("east is away")}

    def resend(job: Resendable, *_: object) -> str:
        if job.uid in faults:
            raise faults[job.uid]
        return "it stays at east"

    monkeypatch.setattr(resending, "resend", resend)
    monkeypatch.setattr(sites_verbs, "_reached", lambda *_: {})
    status, out, _ = call(capsys, "sites", "resend")
    lines = out.splitlines()
    assert status == 1
    assert [line.split("): ")[1].split(": ")[0] for line in lines[:3]] == 3 * ["tried again the next time"]
    assert lines[3] == "true (0d): it stays at east"


def test_a_job_of_another_daemon_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    kept("0a", daemon="https://east.example:8765")
    kept("0b", daemon="https://west.example:8765")
    monkeypatch.setattr(sites_verbs, "_reached", lambda *_: {})
    monkeypatch.setattr(resending, "resend", lambda *_: "it stays")
    status, out, _ = call(capsys, "sites", "resend", "--url", "https://west.example:8765")
    assert not status
    assert out.splitlines() == [
        "true (0a): it was submitted by the daemon at https://east.example:8765, which --url names",
        "true (0b): it stays",
    ]


def test_who_sends_jobs_elsewhere_at_the_same_time_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with resendable_jobs.alone(), pytest.raises(SystemExit) as left:
        main(["sites", "resend"])
    assert (left.value.code, capsys.readouterr().err.count("another metasched sites resend is running\n")) == (1, 1)


def test_a_daemon_that_waits_for_its_slowest_site_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: dict[str, float] = {}

    def ask(address: str, method: str, path: str, document: object, *, timeout: float, **_: object) -> Any:
        waited[path] = timeout
        return {"sites": [], "left_out": [], "warnings": [], "why": "", "jobs": []}

    monkeypatch.setattr(connection, "ask", ask)
    status_of("sites", "rank", "--application", "cg", "--problem-size", "9", "--url", "/grid.sock")
    status_of("sites", "status", "--url", "/grid.sock")
    slowest = SiteTable(name="east", url="https://east", deadline=60.0).deadline
    assert waited["/v1/sites/rankings"] > 2 * slowest > waited["/v1/sites"]


def test_a_verb_whose_daemon_is_away_says_so_and_leaves_with_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = call(capsys, "sites", "status", "--url", "http://127.0.0.1:1")
    assert status == 1
    assert (err.count("\n"), "the daemon at http://127.0.0.1:1 does not answer" in err) == (1, True)


def test_a_script_with_arguments_is_refused_with_the_first_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.sh").write_text("#!/bin/sh\n")
    (tmp_path / "job.sh").chmod(0o755)
    words = ["--comment=metasched:app=cg,n=1400", "-n", "2", str(tmp_path / "job.sh"), "--mesh", "fine"]
    assert "the script has the argument --mesh, expected it to be written into the script" in refusal(
        call(capsys, "sites", "submit", "--", *words)
    )
