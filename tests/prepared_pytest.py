"""A pytest that has imported what tests depend on, and forks for each run, so that few tests take little time.

:class:`PreparedPytest` starts this file as a program in the tree whose tests it runs. It reads one JSON object a line,
the tests and the seconds that they may take, and answers each with one: the outcome and the test that failed. Nothing
of the tree is imported before the fork: each run sees its modules as they are then.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

#: What takes longest to import; a package that is not installed is passed over.
PREPARED = (
    "schemathesis", "hypothesis.strategies", "xdist.plugin", "numpy.testing", "scipy.stats", "scipy.optimize",
    "scipy.sparse.linalg", "scipy.special", "pandas", "sklearn.ensemble", "sklearn.gaussian_process",
    "matplotlib.figure", "fastapi.testclient", "uvicorn", "httpx", "pydantic", "sqlalchemy.orm", "alembic.command",
    "rich.table", "networkx",
)  # fmt: skip


class PreparedPytest:
    """Runs tests of a tree one after the other until one fails, each time in a new process.

    Parameters
    ----------
    tree
        Where tests are named from.
    environment
        That of the tests.
    """

    def __init__(self, tree: Path, environment: Mapping[str, str]) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-P", __file__], cwd=tree, env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def __enter__(self) -> PreparedPytest:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()

    def run(self, tests: Sequence[str], limit: float) -> tuple[str, str]:
        """Run tests for at most ``limit`` seconds.

        Returns
        -------
        ``survived`` where all pass, ``killed`` where one fails, or ``timeout``; and the test that failed, or the file
        that could not be imported.
        """
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps({"tests": list(tests), "limit": limit}), file=self._server.stdin, flush=True)
        outcome, failed = json.loads(self._server.stdout.readline())
        return str(outcome), str(failed)


class _First:
    """A plugin of pytest that keeps what failed first."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


def _serve() -> None:
    for name in PREPARED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(_forked(asked["tests"], asked["limit"])), flush=True)


def _forked(tests: Sequence[str], limit: float) -> tuple[str, str]:
    """Run tests in a process and session of their own; nothing that they started outlives them."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(reading)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        status, first = int(pytest.ExitCode.INTERNAL_ERROR), _First()
        try:
            arguments = ["-q", "-x", "--tb=no", "-p", "no:cacheprovider", *tests]
            status = int(pytest.main(arguments, plugins=[first]))
        finally:
            passed = status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
            os.write(writing, json.dumps(["survived" if passed else "killed", first.failed]).encode())
            os._exit(status)
    os.close(writing)
    with selectors.DefaultSelector() as ready:
        ready.register(reading, selectors.EVENT_READ)
        said = os.read(reading, 65536) if ready.select(limit) else b'["timeout", ""]'
    os.close(reading)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    # A process that a test killed says nothing.
    outcome, failed = json.loads(said or b'["killed", ""]')
    return outcome, failed


if __name__ == "__main__":
    _serve()
