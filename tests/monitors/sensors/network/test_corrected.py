"""Counters corrected by probes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from monitors.sensors.network.corrected import LOOPBACK, CorrectedLink, outward_interface


def test_a_probe_scales_what_the_counters_say() -> None:
    link = CorrectedLink(LOOPBACK, speed=1e6)
    time.sleep(0.02)
    link.learn(5e5)
    time.sleep(0.02)
    assert link.read() == pytest.approx(5e5, rel=0.05)  # next to nothing passes: the counters leave all of the speed


def test_the_outward_interface_is_that_of_the_nearest_default_route(tmp_path: Path) -> None:
    routes = tmp_path / "route"
    head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
    far = "wlan0 00000000 010200C0 0003 0 0 600 00000000 0 0 0\n"
    near = "eth7 00000000 010200C0 0003 0 0 100 00000000 0 0 0\n"
    inner = "eth1 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"
    routes.write_text(head + inner + far + near)
    assert outward_interface(routes) == "eth7"
    routes.write_text(head + inner)
    assert outward_interface(routes) == outward_interface(tmp_path / "missing") == LOOPBACK


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_bandwidth_that_cannot_be_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        CorrectedLink(LOOPBACK).learn(bad)


def test_an_interface_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="nosuch0"):
        CorrectedLink("nosuch0")
