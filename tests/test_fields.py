"""What requests, configurations, files, verbs and functions may leave out stays as it is: older ones go on working."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_every_field_option_and_argument_keeps_its_bounds_and_its_default() -> None:
    """One that is new, or is meant to change, is written down by ``make answers``."""
    known = (Path(__file__).parent / "fields.txt").read_text(encoding="utf-8").splitlines()
    assert len(known) > 1500
    # In a process of its own, whose models are those of the modules as they are now.
    found = subprocess.run([sys.executable, "-m", "tests.fields"], capture_output=True, text=True, check=True)
    assert sorted(set(known) - set(found.stdout.splitlines())) == []
