"""A plugin of pytest that records which test executes which line of the product; :mod:`tests.executed_lines` starts it.

Coverage.py traces the lines. It is started with the interpreter, in pytest and in the processes that tests start, by
``COVERAGE_PROCESS_START``. Here each line is attributed to the test that executes it. What a fixture of a module or of
a folder executes belongs to every test in it, and is attributed to that module or folder. Results that the product
keeps (``functools.cache``) are dropped before each test, so that every test executes all that it depends on.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

PRODUCT = ("candidate_functions", "metasched", "monitors")
#: The environment variable that names the file for the tests that passed, each with the seconds that it took.
TIMES = "METASCHED_RECORDED_TIMES"

_seconds: dict[str, float] = {}
_failed: set[str] = set()
_running: list[str] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    for kept in _caches():
        kept.cache_clear()
    with _attributed_to(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    if fixturedef.scope == "function":
        return (yield)
    with _attributed_to(fixturedef.baseid or "tests"):
        return (yield)


@contextlib.contextmanager
def _attributed_to(context: str) -> Iterator[None]:
    """Attribute the lines executed meanwhile to a test, a module or a folder."""
    tracer = coverage.Coverage.current()
    if tracer is None:
        raise pytest.UsageError("coverage.py does not trace; record by python -m tests.mutation")
    _running.append(context)
    tracer.switch_context(context)
    try:
        yield
    finally:
        _running.pop()
        tracer.switch_context(_running[-1] if _running else "")


def _caches() -> Iterator[Any]:
    """The functions and methods of the product that keep their results."""
    kind = type(functools.cache(len))
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in PRODUCT and module is not None:
            for value in list(vars(module).values()):
                if isinstance(value, type) and value.__module__ == name:
                    yield from (each for each in vars(value).values() if isinstance(each, kind))
                elif isinstance(value, kind):
                    yield value


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration
    if not report.passed:
        _failed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    tracer = coverage.Coverage.current()
    if tracer is not None:  # A worker of xdist ends without telling coverage.py.
        tracer.stop()
        tracer.save()
    if not hasattr(session.config, "workerinput"):
        passed = {test: spent for test, spent in _seconds.items() if test not in _failed}
        Path(os.environ[TIMES]).write_text(json.dumps(passed), encoding="utf-8")
