"""The command line, called in this process."""

from __future__ import annotations

import pytest

from metasched.cli.app import main


def status_of(*words: object) -> int:
    """The exit status of ``metasched`` with some words."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def call(captured: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """The exit status of ``metasched`` with some words, and what it prints to stdout and stderr."""
    status = status_of(*words)
    out, err = captured.readouterr()
    return status, out, err


def refusal(answer: tuple[int, str, str]) -> str:
    """The one line by which a verb refuses its input with exit status 2, and prints nothing else."""
    status, out, err = answer
    assert (status, out, err.count("\n")) == (2, "", 1), answer
    return err
