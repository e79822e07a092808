"""The order in which tests run, so that none can depend on another: ``--order reversed`` or ``--order SEED``.

A shell starts what runs in its background with SIGINT ignored, and so would be every job that a test starts there:
tests begin with the handler that a program has in the foreground.
"""

from __future__ import annotations

import random
import signal

import pytest

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order", help="Run the tests in the order reversed, or shuffled by a seed (a whole number).")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    order = config.getoption("--order")
    if order == "reversed":
        items.reverse()
    elif order is not None:
        random.Random(int(order)).shuffle(items)
