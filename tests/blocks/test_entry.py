"""Entries of hardware: values that no hardware has are refused, whatever their unit."""

from __future__ import annotations

import pytest

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.records import InputError


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [("D_tu", 1e-300, "B"), ("bandwidth", 1e308, "Gbit/s"), ("latency", 5e-324, "ns"), ("T_p2p", -1e308, "s")],
)
def test_what_overflows_or_vanishes_is_refused(name: str, value: float, unit: str) -> None:
    with pytest.raises(InputError, match=f"values.{name} is .*, which no hardware has"):
        Entry("x", Kind.cluster, "", {name: Quantity(value, unit, "made up")})


def test_nothing_may_be_0_where_that_has_a_meaning() -> None:
    assert Entry("x", Kind.link, "", {"latency": Quantity(0.0, "ns", "made up")}).get("latency") == 0.0
