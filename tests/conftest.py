"""The order in which tests run, so that none can depend on another: ``--order reversed`` or ``--order SEED``.

A shell starts what runs in its background with SIGINT ignored, and so would be every job that a test starts there:
tests begin with the handler that a program has in the foreground.
"""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

# What helpers assert says both sides, as what tests assert does.
pytest.register_assert_rewrite("whole_documents")

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order", help="Run the tests in the order reversed, or shuffled by a seed (a whole number).")


def shuffled(items: list[pytest.Item], seed: int) -> list[pytest.Item]:
    """The files in any order, and the tests of each file in any order: what a file prepares is prepared once."""
    chance, files = random.Random(seed), dict[Path, list[pytest.Item]]()
    for item in items:
        files.setdefault(item.path, []).append(item)
    return [
        item
        for file in chance.sample(sorted(files), len(files))
        for item in chance.sample(files[file], len(files[file]))
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    order = config.getoption("--order")
    if order == "reversed":
        items.reverse()
    elif order is not None:
        items[:] = shuffled(items, int(order))
