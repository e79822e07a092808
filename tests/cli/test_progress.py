"""Long work shows its progress on a terminal's stderr; a pipe gets none, and the answer is the same JSON document."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.replay.made_log import as_csv, made_log

CAMPAIGN = Path(__file__).parents[2] / "benchmarks" / "testbed" / "campaigns" / "cg-intel-random"
TURN = ["compute 1e9", "isend {} 0 800 1", "recv {} 0 800 1", "waitall 1", "barrier"]
TRACE = "".join(
    f"{rank} {action.format(1 - rank)}\n" for rank in (0, 1) for action in ["init", *(5 * TURN), "finalize"]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "log.csv").write_text(as_csv(made_log(300, seed=1)))
    (folder / "runs.csv").write_text("".join((CAMPAIGN / "runs.csv").read_text().splitlines(keepends=True)[:40]))
    (folder / "trace.ti").write_text(TRACE)
    return folder


def by_pipe(words: list[str], folder: Path) -> tuple[dict[str, Any], str]:
    """The answer and stderr, both read by a program."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=True)
    return json.loads(done.stdout), done.stderr


def on_terminal(words: list[str], folder: Path) -> tuple[dict[str, Any], str]:
    """The answer, read by a program, and what is seen of stderr on a terminal."""
    terminal, end = pty.openpty()
    seen = bytearray()

    def look() -> None:
        try:
            while piece := os.read(terminal, 65536):
                seen.extend(piece)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=look)
    reader.start()
    environment = dict(os.environ, TERM="xterm", COLUMNS="100")
    done = subprocess.run(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=end, timeout=300, check=True, env=environment
    )
    os.close(end)
    reader.join(10.0)
    os.close(terminal)
    return json.loads(done.stdout), seen.decode(errors="replace")


@pytest.mark.parametrize("how", [by_pipe, on_terminal])
@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["history", "evaluate", "log.csv", "--processors", "64", "--predictor", "requests"], "replaying"),
        (["history", "import", "log.csv", "--database", "{database}"], "storing"),
        (["history", "report", "log.csv", "--processors", "64", "--replayed", "100"], "replaying"),
        (["fit", "runs.csv", "-o", "model.json"], "searching with 39 runs"),
        (["evaluate", str(CAMPAIGN), "--no-learning"], "evaluating"),
        (["signature", "extract", "trace.ti", "-o", "signature.json"], "reading"),
    ],
    ids=lambda each: each[0] + "-" + each[1] if isinstance(each, list) else None,
)
def test_progress_is_shown_on_a_terminal_only(
    arguments: list[str], what: str, how: Callable[[list[str], Path], tuple[dict[str, Any], str]], folder: Path
) -> None:
    words = [each.format(database=f"{how.__name__}.db") for each in arguments]
    answer, seen = how([sys.executable, "-m", "metasched", *words, "--json"], folder)
    assert answer
    assert (what in seen) == (how is on_terminal)
    assert ("\x1b" in seen) == (how is on_terminal)
