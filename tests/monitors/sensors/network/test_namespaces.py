"""Probes over a link of known rate; needs root, ip and tc."""

from __future__ import annotations

import os
import shutil
import subprocess

import numpy as np
import pytest

from benchmarks.sensors_network import PAYLOAD, judge

able = os.geteuid() == 0 and shutil.which("ip") and shutil.which("tc")


@pytest.mark.system
@pytest.mark.skipif(not able, reason="needs root, ip and tc")
def test_a_link_of_fifty_megabits_is_found_within_a_tenth() -> None:
    try:
        rows = judge(50.0)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no rate-limited namespaces here: {error}")
    assert np.median(rows[:, 0]) == pytest.approx(50.0 * PAYLOAD, rel=0.1)
