"""``metasched setup htcondor`` adds one file to HTCondor's settings, and undoes itself; no pool was ever run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_line import status_of

from metasched.service.configuration import read_configuration


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    folder = tmp_path / "config.d"
    folder.mkdir()
    (folder / "00-site").write_text("JOB_TRANSFORM_NAMES = SiteOwn\n")
    return folder


def setup(conf: Path, *more: str) -> int:
    site = conf.parent
    words = ["--folder", f"{site}/hooks", "--condor-conf", f"{conf}", "--config", f"{site}/daemon.toml"]
    return status_of("setup", "htcondor", *words, *more)


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_host_is_set_up_once_and_undone(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site, before = conf.parent, files(conf.parent)
    assert setup(conf, "--plan") == 0
    assert files(site) == before
    assert setup(conf, "--yes") == 0
    settings = (conf / "metasched.conf").read_text()
    assert f"STARTD_CRON_METASCHED_EXECUTABLE = {site}/hooks/metasched_loads.py\n" in settings
    assert os.access(site / "hooks" / "metasched_loads.py", os.X_OK)
    assert [each.name for each in read_configuration(site / "daemon.toml").htcondor] == ["condor"]
    capsys.readouterr()
    assert setup(conf, "--yes") == 0
    assert capsys.readouterr().out.startswith("there is nothing to do\n")
    assert setup(conf, "--undo", "--yes") == 0
    assert files(site) == before
    assert not (site / "hooks").exists()


def test_a_host_without_the_daemon_gets_no_configuration_of_it(conf: Path) -> None:
    assert setup(conf, "--yes", "--no-daemon") == 0
    assert not (conf.parent / "daemon.toml").exists()


def test_a_later_file_that_drops_what_is_added_is_named(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (conf / "zz-site").write_text("job_transform_names = Other\nSTARTD_CRON_JOBLIST = $(STARTD_CRON_JOBLIST) GPUS\n")
    assert setup(conf, "--yes") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"in {conf}/zz-site, let JOB_TRANSFORM_NAMES begin with $(JOB_TRANSFORM_NAMES)" in said
    assert "let STARTD_CRON_JOBLIST" not in said
    assert "00-site, let" not in said


def test_a_file_that_was_changed_by_hand_stays(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert setup(conf, "--yes") == 0
    changed = (conf / "metasched.conf").read_text() + 'MetaschedPartition = "fast"\n'
    (conf / "metasched.conf").write_text(changed)
    capsys.readouterr()
    assert setup(conf, "--yes") == 0
    assert "was changed by hand and is left as it is" in " ".join(capsys.readouterr().out.split())
    assert setup(conf, "--undo", "--yes") == 0
    assert (conf / "metasched.conf").read_text() == changed


def test_a_host_without_htcondor_is_one_clear_error(conf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert setup(conf, "--condor-conf", f"{conf}/nowhere", "--yes") == 2
    assert "expected that of HTCondor's settings" in " ".join(capsys.readouterr().err.split())
    assert not (conf.parent / "hooks").exists()
