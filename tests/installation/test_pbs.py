"""``metasched setup pbs`` writes the files of the hook, shows what qmgr is to do, and undoes itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import status_of

from metasched.service.configuration import read_configuration


def setup(folder: Path, *words: str) -> None:
    where = ["--folder", str(folder / "pbs"), "--config", str(folder / "daemon.toml"), "--state", str(folder / "state")]
    assert status_of("setup", "pbs", *where, *words) == 0


def test_the_files_are_written_and_taken_out_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setup(tmp_path, "--plan")
    assert not (tmp_path / "pbs").exists()
    setup(tmp_path, "--yes", "--name", "head")
    said = capsys.readouterr().out
    assert "create hook metasched event='queuejob,jobobit'" in said
    assert f'FOLDER = "{tmp_path}/pbs"' in (tmp_path / "pbs" / "metasched_pbs.py").read_text()
    assert "cluster = head\n" in (tmp_path / "pbs" / "hooks.conf").read_text()
    assert [each.name for each in read_configuration(tmp_path / "daemon.toml").pbs] == ["head"]
    setup(tmp_path, "--yes", "--undo")
    assert not (tmp_path / "pbs" / "metasched_pbs.py").exists()
