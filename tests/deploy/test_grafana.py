"""The dashboard for Grafana is the one that its program makes by Grafana's own library."""

from __future__ import annotations

import subprocess
import sys

from deployed_files import DEPLOYED


def test_the_dashboard_is_the_one_that_its_program_makes() -> None:
    folder = DEPLOYED / "grafana"
    made = subprocess.run([sys.executable, folder / "dashboard.py"], capture_output=True, text=True, check=True)
    assert made.stdout == (folder / "metasched.json").read_text()
