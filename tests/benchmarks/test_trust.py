"""Detectors of drift beside each other: all know the same earlier errors, and are asked about the same later ones."""

from __future__ import annotations

from benchmarks.trust import first_alarms
from metasched.predictors.robust.drift import Surprise


def surprises(begin: int, errors: list[float]) -> list[Surprise]:
    return [Surprise(begin + k, f"user{k % 2}", error, 0.1) for k, error in enumerate(errors)]


def test_every_detector_has_seen_what_was_known_before() -> None:
    seen: list[float] = []

    def window(value: float) -> bool:
        seen.append(value)
        return len(seen) >= 30 and value > 2.0

    known, later = surprises(0, [0.05, -0.05] * 12), surprises(24, [0.02] * 6 + [0.3] * 6)
    assert first_alarms({"window": window, "never": lambda _: False}, known, later) == {
        "metasched": 8,
        "window": 6,
        "never": None,
    }
    assert seen == [one.spreads for one in [*known, *later]]
    assert first_alarms({}, known, later[:6]) == {"metasched": None}
