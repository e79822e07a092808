"""``metasched agent`` on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import status_of

#: What the agent may load beside the standard library: what its installation needs.
CLOSURE = {"psutil", "pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection",
           "monitors"}  # fmt: skip


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


@pytest.mark.parametrize("more", [(), ("--once",)])
def test_an_interface_that_is_not_there_is_status_2_and_one_line(
    more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METASCHED_AGENT_INTERFACE", "nope")
    answer = agent(*more)
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert "there is no network interface nope" in answer.stderr


def test_the_verb_becomes_the_agent_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command line is replaced by an interpreter that runs the agent and nothing else."""
    settings = tmp_path / "agent.toml"
    settings.write_text('node = "n0"\n')
    became: list[object] = []
    monkeypatch.setattr(os, "execv", lambda path, words: became.append((path, words)))
    status_of("agent", "--verbose", str(settings))
    words = [sys.executable, "-m", "monitors.agent", str(settings), "--verbose"]
    assert became[0] == (sys.executable, words)


def test_the_agent_loads_nothing_heavy() -> None:
    """Not numpy, scipy, scikit-learn or matplotlib: it stays small on every node, and needs few packages there."""
    script = "import {}, sys; print('\\n'.join({{name.partition('.')[0] for name in sys.modules}}))"
    bare, loaded = (
        subprocess.run([sys.executable, "-c", script.format(name)], capture_output=True, text=True, check=True)
        for name in ("sys", "monitors.agent.__main__")
    )
    new = set(loaded.stdout.split()) - set(bare.stdout.split())  # Debian's interpreter starts with modules of its own
    foreign = {name for name in new if name not in sys.stdlib_module_names and not name.startswith("_")}
    assert {"psutil", "pydantic", "monitors"} <= foreign
    assert foreign - CLOSURE - {"cython_runtime"} == set()
