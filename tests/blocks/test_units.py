"""Every unit of the hardware database beside what it is in the units used inside."""

from __future__ import annotations

import pytest

from metasched.blocks.units import UNITS, converted
from metasched.records import InputError

MEANT = {
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "s/B": 1.0, "us/B": 1e-6, "ns/B": 1e-9,
    "B": 1.0, "KiB": 1024.0, "MiB": 1_048_576.0, "GiB": 1_073_741_824.0, "GB": 1e9, "TB": 1e12,
    "B/s": 1.0, "MB/s": 1e6, "GB/s": 1e9, "Mbit/s": 125_000.0, "Gbit/s": 125_000_000.0,
    "W": 1.0, "kW": 1000.0, "Hz": 1.0, "MHz": 1e6, "GHz": 1e9, "flop/s": 1.0, "Gflop/s": 1e9, "Tflop/s": 1e12,
    "flop/B": 1.0, "1/s": 1.0, "1/h": 1 / 3600, "1": 1.0,
}  # fmt: skip


def test_every_unit_is_as_large_as_its_name_says() -> None:
    assert {unit: converted(3.7, unit, UNITS[unit][0]) for unit in UNITS} == {
        unit: pytest.approx(3.7 * size, rel=1e-15) for unit, size in MEANT.items()
    }
    assert converted(3.7, "us", "s") == 3.7e-06
    assert converted(3.7, "GB", "B") == 3.7e9


def test_a_unit_of_something_else_is_refused_with_those_that_fit() -> None:
    with pytest.raises(InputError, match=r"unit is W, expected s or ms or us or ns$"):
        converted(1.0, "W", "s")
    with pytest.raises(InputError, match=r"unit is 'parsec', expected one of s, ms, us"):
        converted(1.0, "parsec", "s")
