"""The journey of an administrator on a real Slurm: each step checks what it claims."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system import journey, real_slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]


@pytest.mark.skipif(bool(real_slurm.why_not()), reason=real_slurm.why_not())
def test_a_site_is_set_up_advised_and_left_as_it_was(tmp_path: Path) -> None:
    with journey.begun(tmp_path) as begun:
        found = [step() for _, step in begun.steps()]
    assert all(found)
    assert len(found) == 9
