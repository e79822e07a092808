"""``metasched agent`` on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def agent(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "metasched", "agent", *words], capture_output=True, text=True)


def test_once_prints_one_sample_as_one_document() -> None:
    answer = agent("--once", "--json")
    assert answer.returncode == 0, answer.stderr
    sample = json.loads(answer.stdout)
    assert set(sample) == {"time", "node", "available_cpu", "available_bandwidth"}
    assert 0 < sample["available_cpu"] <= 1


def test_wrong_settings_are_status_2_and_one_line(tmp_path: Path) -> None:
    settings = tmp_path / "agent.toml"
    settings.write_text("intervall = 5\n")
    for answer in (agent(str(settings)), agent("--once", str(settings))):
        assert answer.returncode == 2
        assert answer.stderr.count("\n") == 1
        assert "intervall" in answer.stderr
