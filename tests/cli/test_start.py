"""What the command line loads before it can answer: no verb waits for the libraries of another."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

#: Takes long to load, and is needed to compute, to draw or to serve; not to ask the daemon.
HEAVY = ("scipy.special", "scipy.stats", "scipy.optimize", "scipy.linalg", "sklearn", "matplotlib", "networkx",
         "fastapi", "uvicorn", "sqlalchemy", "alembic", "pandas")  # fmt: skip
LOADED = """
import sys
from metasched.cli import main
try:
    main(sys.argv[2:])
except SystemExit as left:
    print(int(left.code or 0), *sorted(set(sys.argv[1].split(",")) & set(sys.modules)), file=sys.stderr)
"""


def loaded(*argv: str) -> list[str]:
    """The exit status, and the heavy modules that were loaded."""
    words = [sys.executable, "-c", LOADED, ",".join(HEAVY), *argv]
    return subprocess.run(words, capture_output=True, text=True, check=True).stderr.splitlines()[-1].split()


def test_a_daemon_has_what_models_need_before_the_first_question_comes() -> None:
    program = "import sys, metasched.service.daemon; print(*(name for name in sys.argv[1:] if name in sys.modules))"
    needed = ("scipy.linalg", "scipy.optimize", "scipy.special")
    words = [sys.executable, "-c", program, *needed, "scipy.stats"]  # what nobody needs takes 20 MB
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert tuple(done.stdout.split()) == needed


@pytest.mark.parametrize(
    "argv",
    [
        ("status",),
        ("mode",),
        ("rank", "--application", "cg", "--problem-size", "5"),
        ("explain", "0" * 32),
        ("walltime", "--placement", "0" * 32),
    ],
    ids=lambda argv: argv[0],
)
def test_what_asks_the_daemon_loads_nothing_that_computes(argv: tuple[str, ...], tmp_path: object) -> None:
    configuration = f"{tmp_path}/metasched.toml"
    with open(configuration, "w") as file:
        file.write('[listen]\nsocket = "nobody.sock"\n')
    status, *found = loaded(*argv, "--config", configuration)
    assert (status, set(found) & set(HEAVY)) == ("1", set())


def test_what_runs_a_job_loads_only_what_measures_and_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METASCHED_DB", str(tmp_path / "metasched.db"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    status, *found = loaded("run", "--application", "cg", "--problem-size", "5", "--processors", "1", "--", "true")
    assert (status, set(found)) == ("0", {"sqlalchemy", "alembic"})


def test_an_interrupt_after_the_answer_ends_the_program_without_a_word() -> None:
    program = (
        "import atexit, os, signal; atexit.register(os.kill, os.getpid(), signal.SIGINT); "
        "from metasched.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", program, "--version"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("metasched ")
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
