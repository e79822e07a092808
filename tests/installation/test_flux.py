"""``metasched setup flux`` adds a file to Flux's configuration, or says what to add; no instance was ever run."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from command_line import status_of

from metasched.service.configuration import read_configuration


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    folder = tmp_path / "conf.d"
    folder.mkdir()
    (folder / "system.toml").write_text('[queues.new]\nrequires = ["new"]\n')
    return folder


def setup(conf: Path, *more: str) -> int:
    site = conf.parent
    words = ["setup", "flux", "--folder", f"{site}/hooks", "--flux-conf", f"{conf}", "--config", f"{site}/daemon.toml"]
    return status_of(*words, "--socket", f"{site}/m.sock", *more)


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_an_instance_is_set_up_once_and_undone(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site, before = conf.parent, files(conf.parent)
    assert setup(conf, "--plan") == 0
    assert files(site) == before
    assert setup(conf, "--yes", "--name", "head") == 0
    plugins = tomllib.loads((conf / "metasched.toml").read_text())["ingest"]["frobnicator"]["plugins"]
    assert plugins == [f"{site}/hooks/metasched_flux.py", "defaults", "constraints"]
    assert "cluster = head\n" in (site / "hooks" / "hooks.conf").read_text()
    assert [each.name for each in read_configuration(site / "daemon.toml").flux] == ["head"]
    capsys.readouterr()
    assert setup(conf, "--yes", "--name", "head") == 0
    assert capsys.readouterr().out == "there is nothing to do\n"
    assert setup(conf, "--undo", "--yes") == 0
    assert files(site) == before
    assert not (site / "hooks").exists()


@pytest.mark.parametrize("table", ['frobnicator.plugins = ["own.py"]', "frobnicator.disable = true", "batch-count = 3"])
def test_what_the_site_says_of_taking_jobs_in_is_left_to_it(
    table: str, conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (conf / "ingest.toml").write_text(f"[ingest]\n{table}\n")
    assert setup(conf, "--yes") == 0
    assert not (conf / "metasched.toml").exists()
    said = " ".join(capsys.readouterr().out.split())
    assert f'in {conf}/ingest.toml, [ingest.frobnicator], let plugins begin with "{conf.parent}/hooks' in said
    (conf / "ingest.toml").write_text(f'[ingest.frobnicator]\nplugins = ["{conf.parent}/hooks/metasched_flux.py"]\n')
    assert setup(conf, "--yes") == 0
    assert capsys.readouterr().out == "there is nothing to do\n"


def test_a_configuration_that_cannot_be_read_is_one_clear_error(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (conf / "ingest.toml").write_text("[ingest\n")
    assert setup(conf, "--yes") == 2
    assert f"{conf}/ingest.toml" in "".join(capsys.readouterr().err.split())
    assert setup(conf, "--flux-conf", f"{conf}/nowhere", "--yes") == 2
    assert not (conf.parent / "hooks").exists()
