"""Tokens for the agents of many nodes: a file for each, and nothing lost when it is repeated or interrupted."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from command_line import call

from metasched.installation.enrolment import enrol
from metasched.records import InputError
from metasched.store.database.store import Store
from metasched.store.database.tokens import Tokens, digest


def test_many_agents_are_enrolled_by_one_command_and_again_without_a_change(tmp_path, capsys) -> None:
    command = (
        "token",
        "enrol",
        "n[1-1000]",
        "--folder",
        tmp_path / "tokens",
        "--database",
        tmp_path / "m.db",
        "--json",
    )
    status, out, _ = call(capsys, *command)
    assert (status, len(json.loads(out)["enrolled"])) == (0, 1000)
    files = {path.name: path.read_text().strip() for path in (tmp_path / "tokens").iterdir()}
    with Store.open(tmp_path / "m.db") as store:
        stored = {(each.name, each.role, each.node, each.digest) for each in store.tokens.all()}
    assert stored == {(f"n{k}", "agent", f"n{k}", digest(files[f"n{k}.token"])) for k in range(1, 1001)}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "tokens").iterdir()} == {0o600}
    assert stat.S_IMODE((tmp_path / "tokens").stat().st_mode) == 0o700
    status, out, _ = call(capsys, *command)
    assert (status, json.loads(out)["enrolled"], len(json.loads(out)["kept"])) == (0, [], 1000)
    assert {path.name: path.read_text().strip() for path in (tmp_path / "tokens").iterdir()} == files


def test_a_token_without_its_file_is_kept_until_it_is_renewed(tmp_path: Path) -> None:
    with Store.open(tmp_path / "m.db") as store:
        old = store.tokens.add("n1", "agent", node="n1")
        assert enrol(store.tokens, ["n1", "n2"], tmp_path).without_file == ("n1",)
        assert digest(old) in {each.digest for each in store.tokens.all()}
        assert enrol(store.tokens, ["n1", "n2"], tmp_path, renew=True).enrolled == ("n1",)
        stored = {each.name: each.digest for each in store.tokens.all()}
    assert stored == {node: digest((tmp_path / f"{node}.token").read_text().strip()) for node in ("n1", "n2")}


def test_an_interrupted_enrolment_goes_on_with_the_files_it_wrote(tmp_path: Path, monkeypatch) -> None:
    def killed(self: Tokens, secrets_of: object) -> None:
        raise KeyboardInterrupt

    with Store.open(tmp_path / "m.db") as store:
        with monkeypatch.context() as patched:
            patched.setattr(Tokens, "enrol", killed)
            with pytest.raises(KeyboardInterrupt):
                enrol(store.tokens, ["n1"], tmp_path)
        written = (tmp_path / "n1.token").read_text()
        assert store.tokens.all() == ()
        enrol(store.tokens, ["n1"], tmp_path)
        assert [each.digest for each in store.tokens.all()] == [digest(written.strip())]
    assert (tmp_path / "n1.token").read_text() == written


def test_what_is_somebody_elses_is_not_touched(tmp_path: Path) -> None:
    with Store.open(tmp_path / "m.db") as store:
        store.tokens.add("n2", "reader")
        with pytest.raises(InputError, match="token n2 does not belong to the agent of node n2"):
            enrol(store.tokens, ["n1", "n2"], tmp_path / "tokens")
        (tmp_path / "n1.token").write_text("a shopping list")
        with pytest.raises(InputError, match="does not contain a token"):
            enrol(store.tokens, ["n1"], tmp_path)
        for node in ("../n1", "a/b", ".n1"):
            with pytest.raises(InputError, match=f"node '{node}' cannot name a file"):
                enrol(store.tokens, [node], tmp_path)
        assert [each.name for each in store.tokens.all()] == ["n2"]
    assert not (tmp_path / "tokens").exists()
