"""The verbs rank, explain and whatif ask the real daemon, by its socket and by URL."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import call, refusal

from metasched.store.database.store import Store
from tests.free_ports import free_port
from tests.service.daemons import CLUSTERS, learned_database
from tests.system.real_daemon import Daemon

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]
CG = ("--application", "cg", "--problem-size", "1400")


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("daemon")
    (folder / "metasched.db").write_bytes(learned_database())
    (folder / "clusters.toml").write_text(CLUSTERS)
    daemon = Daemon(folder, f'clusters = "{folder / "clusters.toml"}"', port=port)
    daemon.start()
    yield daemon
    daemon.stop()


@pytest.fixture(autouse=True)
def configured(daemon: Daemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("METASCHED_CONFIG", str(daemon.folder / "metasched.toml"))
    monkeypatch.chdir(tmp_path)


def test_rank_shows_the_daemons_table(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "rank", *CG, "--top", "3", "--exclude", "e[1-2]", "--processors", "2-4")
    assert status == 0
    assert "best; the next is" in out
    assert "e3" in out


def test_rank_and_explain_agree(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, _ = call(capsys, "rank", *CG, "--json")
    assert status == 0
    (tmp_path / "answer.json").write_text(out)
    second = json.loads(out)["placements"][1]
    status, out, _ = call(capsys, "explain", "answer.json", "--number", "2", "--json")
    assert status == 0
    assert sum(part["seconds"] for part in json.loads(out)["parts"]) == pytest.approx(second["completion"])


def test_the_store_says_the_same_as_the_daemon(capsys: pytest.CaptureFixture[str], daemon: Daemon) -> None:
    _, asked, _ = call(capsys, "rank", *CG, "--json")
    files = ("--clusters", str(daemon.folder / "clusters.toml"), "--db", daemon.database)
    _, read, _ = call(capsys, "rank", *CG, "--json", *files)
    assert [each["completion"] for each in json.loads(asked)["placements"]] == pytest.approx(
        [each["completion"] for each in json.loads(read)["placements"]]
    )


def test_a_placement_is_explained_by_its_id(capsys: pytest.CaptureFixture[str], daemon: Daemon) -> None:
    placed = daemon.ask("POST", "/v1/placements", {"application": "cg", "problem_size": 1400})
    status, out, err = call(capsys, "explain", placed["id"])
    assert (status, err) == (0, "")
    assert "completion" in out
    assert placed["placement"]["reason"] in out
    assert f"no placement {'0' * 32}" in refusal(call(capsys, "explain", "0" * 32))


def test_whatif_drains_the_daemons_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, "whatif", *CG, "--drain", "e[1-4]", "--times", "2", "--json")
    assert (status, err) == (0, "")
    document = json.loads(out)
    assert (document["before"]["cluster"], document["after"]["cluster"]) == ("east", "west")
    assert document["change"] > 1.0
    assert call(capsys, "whatif", *CG, "--drain", "n1")[0] == 2


def test_by_url_a_token_is_needed(
    capsys: pytest.CaptureFixture[str], daemon: Daemon, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = ("--url", f"http://127.0.0.1:{port}")
    assert "a token is required" in refusal(call(capsys, "rank", *CG, *url))
    with Store.open(daemon.database) as store:
        monkeypatch.setenv("METASCHED_TOKEN", store.tokens.add("me", "reader"))
    for _ in range(100):
        status, out, _ = call(capsys, "rank", *CG, *url)
        if status == 0:
            break
    assert "best; the next is" in out


@pytest.mark.parametrize(
    ("words", "status", "line"),
    [
        (("rank", *CG, "--url", "http://127.0.0.1:1"), 1, "does not answer"),
        (("rank", *CG, "--url", "nowhere.sock"), 1, "does not answer"),
        (("rank", *CG, "--memory", "100"), 2, "4 ruled out (memory of 100 MB)"),
        (("rank", "--application", "ep", "--problem-size", "9"), 2, "no model of ep yet, only of: cg"),
        (("rank", *CG, "--cluster", "north"), 2, "no cluster north, expected one of east, west"),
        (("rank", *CG, "--model", "cg.json"), 2, "--model is given without --clusters"),
        (("rank", *CG, "--loads", "store"), 2, "--loads is given without --clusters"),
        (("rank", *CG, "--url", "d.sock", "--clusters", "c.toml"), 2, "--url and --clusters are both given"),
        (("explain", "no.json"), 2, "no.json"),
        (("whatif", *CG, "--processors", "99"), 2, "no feasible resource set for 99 processors"),
    ],
)
def test_what_cannot_be_is_one_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], status: int, line: str
) -> None:
    left, out, err = call(capsys, *words)
    assert (left, out, err.count("\n")) == (status, "", 1)
    assert line in err
