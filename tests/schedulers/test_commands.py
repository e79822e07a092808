"""What is wrong with a command of a scheduler is one line that names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from metasched.schedulers.commands import Commands
from metasched.schedulers.slurm.commands import SlurmCommands
from monitors import bounded_commands

Script = Callable[[str], str]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Make the command ``sacct`` of a body."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def made(body: str) -> str:
        (tmp_path / "sacct").write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "sacct").chmod(0o755)
        return "sacct"

    return made


def test_what_is_no_json_is_named_with_the_command_and_nothing_may_stand_for_nothing(script: Script) -> None:
    name = script("echo '{'")
    with pytest.raises(RuntimeError, match=r"^sacct -J does not print JSON: "):
        Commands({}, 30.0).json(name, "-J")
    script("true")
    assert Commands({}, 30.0, nothing={}).json(name) == {}
    with pytest.raises(RuntimeError, match=r"^sacct does not print JSON: "):
        Commands({}, 30.0).json(name)


def test_more_than_a_listing_can_have_is_not_read(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_commands, "MOST_OUTPUT", 1000)
    name = script("head -c 1000 /dev/zero")
    assert len(Commands({}, 30.0).run(name)) == 1000
    script("head -c 1000000 /dev/zero")
    with pytest.raises(RuntimeError, match=r"^sacct prints more than 1,000 bytes$"):
        Commands({}, 30.0).run(name)


@pytest.mark.parametrize(
    "body", ["echo 7", 'for each; do case $each in --delimiter=*) echo "7${each#*=}";; esac; done']
)
def test_rows_have_all_their_columns(script: Script, body: str) -> None:
    with pytest.raises(RuntimeError, match=r"^sacct does not print 2 columns a row$"):
        SlurmCommands({}, 30.0).table(["JobID", "State"], script(body))
