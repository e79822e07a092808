"""``metasched setup oar`` adds a rule to those that the site has, renews its own, and undoes itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import status_of

from metasched.service.configuration import read_configuration
from tests.installation.oar_rules import installed


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return installed(tmp_path / "bin")


def setup(rules: Path, *more: str) -> int:
    site = rules.parent.parent
    words = ["setup", "oar", "--folder", f"{site}/hooks", "--config", f"{site}/metasched.toml"]
    return status_of(*words, "--socket", f"{site}/m.sock", *more)


def texts(rules: Path) -> dict[str, str]:
    return {each.name: each.read_text() for each in rules.iterdir()}


def test_a_server_is_set_up_once_and_undone(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site, before = rules.parent.parent, texts(rules)
    assert setup(rules, "--plan", "--property", "cluster") == 0
    assert texts(rules) == before
    assert "add the admission rule" in capsys.readouterr().out
    assert setup(rules, "--yes", "--property", "cluster") == 0
    hooks = site / "hooks"
    assert texts(rules) == before | {"2": (hooks / "admission_rule.pl").read_text()}
    assert f"require '{hooks}/metasched_oar.pl'" in texts(rules)["2"]
    conf = (hooks / "hooks.conf").read_text()
    assert f"\nsocket = {site}/m.sock\n" in conf
    assert "\nproperty = cluster\n" in conf
    assert [(each.name, each.property) for each in read_configuration(site / "metasched.toml").oar] == [
        ("oar", "cluster")
    ]
    capsys.readouterr()
    assert setup(rules, "--yes", "--property", "cluster") == 0
    assert capsys.readouterr().out == "there is nothing to do\n"
    assert setup(rules, "--undo", "--yes") == 0
    assert texts(rules) == before
    assert sorted(each.name for each in site.iterdir()) == ["bin"]


def test_the_rule_of_an_earlier_version_is_renewed_and_one_that_was_changed_stays(
    rules: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = rules.parent.parent / "hooks"
    assert setup(rules, "--yes", "--property", "cluster") == 0
    ours = texts(rules)["2"]
    earlier = ours.replace("# metasched", "# an earlier metasched")
    journal = (hooks / "installed.json").read_text()
    from metasched.installation.steps import digest

    for path in (hooks / "admission_rule.pl", rules / "2"):
        path.write_text(earlier)
    (hooks / "installed.json").write_text(journal.replace(digest(ours), digest(earlier)))
    assert setup(rules, "--yes", "--property", "cluster") == 0
    assert (texts(rules)["2"], (hooks / "admission_rule.pl").read_text()) == (ours, ours)
    (rules / "2").write_text(f"# by hand\n{ours}")
    capsys.readouterr()
    assert setup(rules, "--yes", "--property", "cluster") == 0
    assert "OAR already has a rule of metasched, 2" in " ".join(capsys.readouterr().out.split())
    assert setup(rules, "--undo", "--yes") == 0
    assert texts(rules)["2"] == f"# by hand\n{ours}"


def test_nothing_is_installed_where_oar_does_not_answer(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (rules.parent / "oaradmissionrules").write_text("#!/bin/sh\necho no database >&2\nexit 1\n")
    assert setup(rules, "--yes") == 2
    assert "no database" in capsys.readouterr().err
    assert not (rules.parent.parent / "hooks").exists()


def test_names_that_cannot_stand_in_perl_or_sql_are_refused(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert setup(rules, "--yes", "--property", "a' OR 'a'='a") == 2
    assert setup(rules, "--yes", "--folder", f"{rules.parent.parent}/it's") == 2
    assert "expected letters, digits" in capsys.readouterr().err
    assert [*texts(rules)] == ["1"]


def test_without_a_property_it_says_what_is_left(rules: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert setup(rules, "--yes") == 0
    assert "name the property that makes partitions" in " ".join(capsys.readouterr().out.split())
    shutil.rmtree(rules.parent.parent / "hooks")
