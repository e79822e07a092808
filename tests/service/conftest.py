"""What all tests of the service need."""

from __future__ import annotations

import math

import pytest

from metasched.service.state import models


@pytest.fixture(autouse=True)
def all_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever waits is learned before an end, however slow the machine is."""
    monkeypatch.setattr(models, "ENDING", math.inf)
