"""The pages of the schedulers state the numbers by which these are asked; a change of one changes the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from stated import page, word

from metasched.cli.placements import submit
from metasched.client import submission
from metasched.schedulers.slurm import source
from metasched.service.configuration import Periods
from metasched.service.learning import accounting

DEPLOYED = Path(__file__).parents[2] / "deploy"


def hooks_deadlines() -> tuple[float, float]:
    """The deadline of hooks where none is set, and the longest that is taken (s)."""
    text = (DEPLOYED / "hooks" / "metasched_hooks.py").read_text(encoding="utf-8")
    [(usual, longest)] = re.findall(r"^DEADLINE, LONGEST = ([\d.]+), ([\d.]+)$", text, re.MULTILINE)
    return float(usual), float(longest)


def longest_comment() -> int:
    text = (DEPLOYED / "slurm" / "job_submit.lua").read_text(encoding="utf-8")
    return int(re.findall(r"^local MOST_COMMENT, MOST_MARK = (\d+)", text, re.MULTILINE)[0])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("schedulers", "`deadline` is at most {1:g} s; what is no number above 0 stands for {0:g} s"),
        ("schedulers", f"The choice takes at most {submission.DEADLINE:g} s"),
        ("slurm", f"A cluster that does not answer within {submit.TIMEOUT:g} s is skipped"),
        ("slurm", f"The limits are read once {'a minute' if source.LIMITS_FOR == 60 else source.LIMITS_FOR} if"),
        ("slurm", f"within `periods.release` ({Periods().release:g} s)"),
        ("slurm", f"Jobs of the last {word(accounting.REACH / 86_400)} days that ended without an epilog"),
        ("slurm", f"longer than the {longest_comment():,} bytes that Slurm takes"),
    ],
)
def test_the_pages_of_the_schedulers_state_it(name: str, said: str) -> None:
    assert said.format(*hooks_deadlines()) in page(name)


def test_the_page_of_slurm_states_the_deadline_of_its_hook() -> None:
    assert f"shares one deadline ({1000 * hooks_deadlines()[0]:.0f} ms by default)" in page("slurm")
