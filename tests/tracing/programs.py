"""Stand-ins for compilers and launchers: shell scripts, which need no MPI."""

from __future__ import annotations

from pathlib import Path


def script(path: Path, *lines: str) -> str:
    """Write a shell script that can be run, and return its path."""
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def compiler(folder: Path, name: str = "stand-in-cc") -> str:
    """A compiler that writes its words, a line each, where ``-o`` says, and counts its calls in ``calls``."""
    lines = ('printf \'%s\\n\' "$@" >"$LAST"', f'echo >>"{folder}/calls"')
    return script(folder / name, 'for LAST in "$@"; do :; done', *lines)


def calls(folder: Path) -> int:
    """How often the compiler was called."""
    path = folder / "calls"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0
