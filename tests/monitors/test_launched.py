"""Launchers end their processes whatever ends the call that has launched them."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from monitors import launched as module
from monitors.launched import launched

#: Starts a process as MPI's launchers do, says so, and ends with it where it is asked to end.
LAUNCHER = "sleep 3600 & echo $! > process.part; mv process.part process; trap 'kill $!; exit' TERM; : > ready; wait"
#: One that does not listen.
DEAF = "trap '' TERM; echo $$ > process.part; mv process.part process; : > ready; while :; do sleep 0.1; done"


class GivenUpError(Exception):
    """What a signal makes of the call."""


@pytest.fixture(autouse=True)
def raising(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Raise in the call as soon as the launcher is ready."""
    waits, given_up, communicate = threading.Event(), threading.Event(), subprocess.Popen.communicate

    def raised(*_: object) -> None:
        if not given_up.is_set():
            given_up.set()
            raise GivenUpError

    def waiting(*given: Any, **named: Any) -> Any:
        waits.set()
        return communicate(*given, **named)

    def ask() -> None:
        waits.wait()  # the launcher may be ready before the call that starts it has returned
        until((tmp_path / "ready").exists)
        # One that comes just before the call reads does not end the reading, so it may take another.
        while not given_up.wait(0.05):
            os.kill(os.getpid(), signal.SIGUSR1)

    monkeypatch.setattr(subprocess.Popen, "communicate", waiting)
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGUSR1, raised)
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    yield
    waits.set()
    given_up.set()
    thread.join()
    signal.signal(signal.SIGUSR1, before)


def runs(process: int) -> bool:
    """Whether a process is there, and not only its exit status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("launcher", [LAUNCHER, DEAF])
def test_a_launcher_whose_call_is_given_up_ends_with_its_processes(
    launcher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENDING", 0.2 if launcher == DEAF else 60.0)
    with pytest.raises(GivenUpError):
        launched(["sh", "-c", launcher], stdout=subprocess.PIPE)
    process = int((tmp_path / "process").read_text())
    until(lambda: not runs(process))
