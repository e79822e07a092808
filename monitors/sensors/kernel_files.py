"""Reads what the kernel says of this host in small files below /sys and /proc."""

from __future__ import annotations

from pathlib import Path


def text_of(path: Path) -> str:
    """The text of a file of the kernel; empty where it cannot be read."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def number_in(text: str | None) -> float:
    """The number that a text begins with, 0 where it begins with none.

    >>> number_in("3 MiB"), number_in(None)
    (3.0, 0.0)
    """
    try:
        return float((text or "").split()[0])
    except (ValueError, IndexError):
        return 0.0


def number_of(path: Path) -> float:
    """The number that a file of the kernel begins with, 0 where it begins with none."""
    return number_in(text_of(path))
