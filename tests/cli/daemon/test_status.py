"""The verbs status and mode beside a daemon that answers on a port."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import call, refusal
from waiting import until

from metasched.advised_placements import AdvisedPlacement, Ask
from metasched.cli import output
from metasched.service.app import make_app
from metasched.service.daemon import Daemon
from metasched.service.quality.advice_quality import Settled
from tests.service.daemons import listening, running


@contextmanager
def served(folder: Path, mode: str = "shadow", *, learned: bool = False) -> Iterator[tuple[Daemon, str]]:
    """A daemon and its address."""
    with running(folder, learned=learned, mode=mode) as daemon, listening(make_app(daemon)) as url:
        yield daemon, url


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    capsys.readouterr()
    return call(capsys, *argv)


def as_(daemon: Daemon, role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METASCHED_TOKEN", daemon.store.tokens.add(f"{role} {time.monotonic()}", role))  # type: ignore[arg-type]
    daemon.access.refresh()


def test_an_admin_switches_the_running_daemon_and_a_restart_keeps_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path) as (daemon, url):
        as_(daemon, "admin", monkeypatch)
        answer = run(capsys, "mode", "--url", url)[1]
        assert answer == "shadow: advice is recorded, users see none of it, no job is changed; as configured\n"
        status, out, _ = run(capsys, "mode", "act", "--url", url)
        assert (status, "act: jobs are placed; set by admin" in out) == (0, True)
        assert daemon.mode.mode == "act"
        as_(daemon, "reader", monkeypatch)
        assert "expected a token of the role admin" in refusal(run(capsys, "mode", "shadow", "--url", url))
        assert daemon.mode.mode == "act"
    with served(tmp_path) as (daemon, url):
        as_(daemon, "reader", monkeypatch)
        answer = json.loads(run(capsys, "mode", "--url", url, "--json")[1])
        assert (answer["mode"], answer["configured"], answer["set_by"][:5]) == ("act", "shadow", "admin")
    # Whoever changes the configuration afterwards has the last word.
    with served(tmp_path, mode="advise") as (daemon, _):
        assert daemon.mode.mode == "advise"


def test_a_mode_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "expected one of shadow, advise, act" in refusal(run(capsys, "mode", "dare"))


def test_the_status_tells_how_good_the_advice_is_and_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path) as (daemon, url):
        as_(daemon, "reader", monkeypatch)
        assert "too early to tell: stay in shadow mode" in run(capsys, "status", "--url", url)[1]
        for number in range(40):
            for application, gain in (("cg", 0.6), ("lu", 1.0)):
                daemon.jobs.ledger.add(
                    Settled(False, actual=10.0 + number % 4, advised=11.0 * gain, there=11.0, held=number > 1,
                            application=application, platform="east")
                )  # fmt: skip
        monkeypatch.setattr(output.out, "width", 200)
        monkeypatch.setattr(type(daemon), "faults", lambda _: {"clock": "the clock went back by 3600 s"})
        status, out, _ = run(capsys, "status", "--url", url)
        text = " ".join(out.split())
        assert status == 0
        for answer in (
            "clock the clock went back by 3600 s",
            "80 ran elsewhere, 40 of them slower than predicted where advised",
            "following the advice would have saved 20 % of the time",
            "ready for act mode: jobs are placed",
            "metasched mode act",
            'mode = "act" in /etc/metasched/metasched.toml',
            "cg east 40 8.4 % 95% 0 of 40 40% (40% to 40%) act",
            "lu east 40 8.4 % 95% 0 of 40 0% (0% to 0%) advise",
        ):
            assert answer in text, (answer, text)
        document = json.loads(run(capsys, "status", "--url", url, "--json")[1])
        assert document["verdict"]["mode"] == "act"
        assert document["next_step"]["command"] == "metasched mode act"
        assert "application platform judged" in text
        named = [(each["application"], each["platform"], each["cluster"]) for each in document["by_application"]]
        assert named == [("cg", "east", "east"), ("lu", "east", "east")]


def test_a_placement_has_one_upper_end_whoever_tells_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path, learned=True) as (daemon, url):
        own = tmp_path / "own.toml"
        own.write_text(f'database = "nowhere/m.db"\n[listen]\nport = {url.rpartition(":")[2]}\n')
        until(lambda: len(daemon.models.all()) >= 2)
        ask = Ask(application="cg", problem_size=900, processors=[2])
        answer = daemon.placer.answer(ask, time.time())
        daemon.store.placements.add([AdvisedPlacement(time.time(), ask, answer)])
        as_(daemon, "admin", monkeypatch)
        explained = json.loads(run(capsys, "explain", answer.id, "--json", "--config", str(own))[1])
        words = ("walltime", "--placement", answer.id, "--chance", "0.05", "--json")
        status, out, _ = run(capsys, *words, "--config", str(own))
        document = json.loads(out)
        assert (status, document["application"], document["processors"]) == (0, "cg", 2)
        assert document["clusters"][0]["limits"][0]["seconds"] == pytest.approx(explained["interval"]["high"])
        assert json.loads(run(capsys, *words, "--db", str(tmp_path / "metasched.db"))[1]) == document
        for wrong in (("--placement", "0a"), ("--placement", answer.id, "--cpu", "0.5"), ()):
            assert "expected" in refusal(run(capsys, "walltime", *wrong, "--config", str(own)))


def test_a_user_who_may_not_read_the_database_is_told_time_limits_by_the_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("walltime", "--application", "cg", "--problem-size", "1000", "--processors", "2", "--json")
    with served(tmp_path, learned=True) as (daemon, url):
        own = tmp_path / "own.toml"
        own.write_text(f'database = "nowhere/m.db"\n[listen]\nport = {url.rpartition(":")[2]}\n')
        until(lambda: len(daemon.models.all()) >= 2)
        as_(daemon, "reader", monkeypatch)
        for more in ((), ("--cluster", "west", "--limit", "50"), ("--cpu", "0.5", "--bandwidth", "100")):
            status, out, _ = run(capsys, *asked, *more, "--config", str(own))
            said = json.loads(run(capsys, *asked, *more, "--db", str(tmp_path / "metasched.db"))[1])
            assert (status, json.loads(out)) == (0, said)
        assert [len(each["limits"]) for each in said["clusters"]] == [4, 4]
        assert "no model of none" in refusal(run(capsys, *asked[:2], "none", *asked[3:], "--config", str(own)))
        monkeypatch.delenv("METASCHED_TOKEN")
        assert "a token is required" in refusal(run(capsys, *asked, "--config", str(own)))
