"""Grid Engine's load sensor: reports when it is asked what the agent measured, or nothing, and ends when told to."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sampled_agent import sampled_agent

from tests.system.bad_daemons import FAULTS, Bad

DEPLOYED = Path(__file__).resolve().parents[2] / "deploy"
HOST = socket.gethostname().split(".")[0]
EMPTY = ["begin", "end"]


def reports(folder: Path, conf: str | None, said: str = "\n\nquit\n\n") -> list[str]:
    """What the sensor prints when sge_execd says this."""
    shutil.copy(DEPLOYED / "gridengine" / "metasched-load-sensor", folder)
    shutil.copy(DEPLOYED / "hooks" / "metasched_hooks.py", folder)
    if conf is not None:
        (folder / "load-sensor.conf").write_text(conf)
    words = [sys.executable, "-IS", str(folder / "metasched-load-sensor")]
    done = subprocess.run(words, input=said, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("age", "expected"),
    [(5.0, ["begin", f"{HOST}:metasched_cpu:0.750000", f"{HOST}:metasched_bw:940.500000", "end"]), (900.0, EMPTY)],
)
def test_the_agents_last_sample_is_reported_unless_it_is_old(age: float, expected: list[str], tmp_path: Path) -> None:
    with sampled_agent(tmp_path, age) as conf:
        assert reports(tmp_path, conf) == 2 * expected
        (tmp_path / "token").write_text("another")
        assert reports(tmp_path, conf) == 2 * EMPTY


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_agent_leaves_the_report_empty(fault: str, tmp_path: Path) -> None:
    with closing(Bad(FAULTS[fault])) as agent:
        assert reports(tmp_path, f"address = {agent.address}\ndeadline = 0.2\n", "\n") == EMPTY


def test_without_an_agent_settings_or_the_shared_file_reports_are_empty(tmp_path: Path) -> None:
    assert reports(tmp_path, "address = 127.0.0.1:1\n") == 2 * EMPTY
    assert reports(tmp_path, "address = nowhere\noldest = soon\n", "\n") == EMPTY
    (tmp_path / "metasched_hooks.py").unlink()
    words = [sys.executable, "-IS", str(tmp_path / "metasched-load-sensor")]
    done = subprocess.run(words, input="\n", capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == EMPTY
    assert done.stderr.count("\n") == 1


def test_a_report_is_written_in_one_piece_also_where_python_does_not_buffer(tmp_path: Path) -> None:
    shutil.copy(DEPLOYED / "gridengine" / "metasched-load-sensor", tmp_path)
    reading, writing = os.pipe2(os.O_DIRECT)  # each read returns what one write wrote
    try:
        words = [sys.executable, "-IS", "-u", str(tmp_path / "metasched-load-sensor")]
        subprocess.run(words, input=b"\n", stdout=writing, timeout=60, check=True)
        assert os.read(reading, 4096) == b"begin\nend\n"
    finally:
        os.close(reading)
        os.close(writing)
