"""When a fault that comes again is logged: by a clock whose moments are given."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from monitors import recurring_faults
from monitors.recurring_faults import RecurringFaults


@pytest.mark.parametrize(
    ("seen", "logged"),
    [
        ([(0.0, "full")], [1]),
        # A minute after the last line, not after the last fault.
        ([(0.0, "full"), (59.9, "full"), (60.0, "full"), (119.9, "full"), (120.5, "full")], [1, 0, 2, 0, 2]),
        ([(0.0, "full"), (60.5, "full")], [1, 1]),
        # Another one is logged at once, and then the first again.
        ([(0.0, "full"), (1.0, "full"), (2.0, "locked"), (3.0, "full"), (4.0, "full")], [1, 0, 2, 1, 0]),
        # One without a message is logged too, and once a minute.
        ([(0.0, ""), (1.0, ""), (61.0, "")], [1, 0, 2]),
    ],
)
def test_a_fault_that_stays_is_logged_once_a_minute_with_the_number_of_all_since(
    seen: list[tuple[float, str]], logged: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter([moment for moment, _ in seen])
    monkeypatch.setattr(recurring_faults, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    faults = RecurringFaults()
    assert [faults.to_log(fault) for _, fault in seen] == logged
