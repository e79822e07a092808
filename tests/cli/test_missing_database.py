"""What only reads a database makes none where it is missing, and says so in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import call, refusal

from metasched.store.database.store import Store

RANK = ("rank", "--application", "cg", "--problem-size", "100", "--clusters", "clusters.toml")
PREDICT = ("history", "predict", "--user", "ann", "--requested", "60", "--processors", "4")
ID = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    "words",
    [
        (*RANK, "--db"),
        (*RANK, "--loads", "store", "--db"),
        ("walltime", "--application", "cg", "--problem-size", "100", "--processors", "4", "--db"),
        ("walltime", "--placement", ID, "--db"),
        ("runs", "--db"),
        ("runs", "forget", "--id", ID, "--db"),
        (*PREDICT, "--database"),
        ("history", "report", "--from-store", "--database"),
        ("history", "forget", "--user", "ann", "--database"),
        ("db", "check", "--database"),
        ("db", "backup", "b.db", "--database"),
        ("db", "downgrade", "b.db", "--database"),
        ("db", "prune", "--database"),
        ("token", "list", "--database"),
        ("token", "revoke", "ann", "--database"),
    ],
    ids=" ".join,
)
def test_what_reads_a_database_makes_none(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clusters.toml").write_text('[[cluster]]\nname = "c"\nnodes = [{ names = "n[1-2]" }]\n')
    assert "none.db: no such database" in refusal(call(capsys, *words, "none.db"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clusters.toml"]


@pytest.mark.parametrize("words", [("db", "check"), ("db", "backup", "b.db"), ("runs",)], ids=" ".join)
def test_an_emptied_database_is_not_taken_for_a_sound_one_without_rows(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lost.db").touch()
    status, out, err = call(capsys, *words, "--database", "lost.db")
    assert (status, out, err) == (
        2, "", "metasched: lost.db: the file is empty, expected a database\n"
    )  # fmt: skip
    assert [(path.name, path.stat().st_size) for path in tmp_path.iterdir()] == [("lost.db", 0)]


@pytest.mark.parametrize("option", ["--database", "--url"])
@pytest.mark.parametrize("value", ["", " "])
def test_an_option_that_names_nothing_is_not_taken_for_one_that_is_missing(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"{option} is empty, expected" in refusal(call(capsys, "runs", option, value))


@pytest.mark.parametrize(
    "words",
    [
        ("db", "restore", "clusters.toml", "--database"),
        ("token", "enrol", "n1", "--folder", "clusters.toml", "--database"),
        ("token", "enrol", "n1", "--folder", "clusters.toml/secrets", "--database"),
    ],
    ids=" ".join,
)
def test_what_fails_leaves_no_database_that_it_made(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clusters.toml").write_text("a = 1\n")
    Store.open("there.db").close()
    before = sorted(path.name for path in tmp_path.iterdir())
    for database in ("none.db", "there.db"):
        refusal(call(capsys, *words, database))
        assert sorted(path.name for path in tmp_path.iterdir()) == before
