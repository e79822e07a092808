"""The command line, called in this process."""

from __future__ import annotations

import pytest

from metasched.cli.app import main


def call(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """The exit status of ``metasched`` with some words, and what it prints to stdout and stderr."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(left.value.code or 0), out, err
