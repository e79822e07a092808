"""Numbers in files of the kernel."""

from __future__ import annotations

import pytest

from monitors.sensors.kernel_files import number_in


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7.0), (" 7.5 kB", 7.5), ("-1", -1.0), ("1e3", 1000.0), ("7kB", 0.0), ("x 7", 0.0), ("", 0.0), (None, 0.0)],
)
def test_the_number_that_a_text_begins_with(text: str | None, number: float) -> None:
    assert number_in(text) == number
