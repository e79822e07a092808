"""Units of the hardware database, and the factor of each to the internal unit."""

from __future__ import annotations

from metasched.records import InputError

#: Unit: what it measures, spelled as the unit used inside, and its size in that unit.
UNITS = {
    "s": ("s", 1.0),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "ns": ("s", 1e-9),
    "s/B": ("s/B", 1.0),
    "us/B": ("s/B", 1e-6),
    "ns/B": ("s/B", 1e-9),
    "B": ("B", 1.0),
    "KiB": ("B", 2.0**10),
    "MiB": ("B", 2.0**20),
    "GiB": ("B", 2.0**30),
    "GB": ("B", 1e9),
    "TB": ("B", 1e12),
    "B/s": ("B/s", 1.0),
    "MB/s": ("B/s", 1e6),
    "GB/s": ("B/s", 1e9),
    "Mbit/s": ("B/s", 1e6 / 8),
    "Gbit/s": ("B/s", 1e9 / 8),
    "W": ("W", 1.0),
    "kW": ("W", 1e3),
    "Hz": ("Hz", 1.0),
    "MHz": ("Hz", 1e6),
    "GHz": ("Hz", 1e9),
    "flop/s": ("flop/s", 1.0),
    "Gflop/s": ("flop/s", 1e9),
    "Tflop/s": ("flop/s", 1e12),
    "flop/B": ("flop/B", 1.0),
    "1/s": ("1/s", 1.0),
    "1/h": ("1/s", 1 / 3600),
    "1": ("1", 1.0),
}


def converted(value: float, unit: str, measure: str) -> float:
    """Convert a value to the internal unit.

    Parameters
    ----------
    value, unit : as written.
    measure : the unit used inside that the value must come to, such as ``"s"``.

    Raises
    ------
    InputError : when there is no such unit, or it measures something else.

    Examples
    --------
    >>> converted(3.7, "us", "s"), converted(40, "Gbit/s", "B/s")
    (3.7e-06, 5000000000.0)
    """
    if unit not in UNITS:
        raise InputError(f"unit is {unit!r}, expected one of {', '.join(UNITS)}")
    found, size = UNITS[unit]
    if found != measure:
        raise InputError(f"unit is {unit}, expected {' or '.join(u for u, (of, _) in UNITS.items() if of == measure)}")
    # 3.7 us is the double nearest to 3.7e-06, not 3.7 times the double nearest to 1e-06.
    return value / (1 / size) if size < 1 else value * size
