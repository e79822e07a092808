"""The order in which tests run, so that none can depend on another: ``--order reversed`` or ``--order SEED``."""

from __future__ import annotations

import random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order", help="Run the tests in the order reversed, or shuffled by a seed (a whole number).")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    order = config.getoption("--order")
    if order == "reversed":
        items.reverse()
    elif order is not None:
        random.Random(int(order)).shuffle(items)
