"""What tests of several sensors need."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture
def one_processor() -> Iterator[None]:
    """This process, and those that it starts, may use a single processor."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)
