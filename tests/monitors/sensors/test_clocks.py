"""Clocks at which processors can be held, read from made trees of the kernel's files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.sensors.clocks import STEPS, Clocks, read_clocks
from monitors.sensors.hardware import detect

ACPI = {
    "scaling_driver": "acpi-cpufreq", "scaling_available_governors": "conservative ondemand userspace performance ",
    "scaling_available_frequencies": "2401000 2400000 1800000 1200000 ",
    "scaling_min_freq": "1200000", "scaling_max_freq": "2401000",
}  # fmt: skip
PSTATE = {
    "scaling_driver": "intel_pstate", "scaling_available_governors": "performance powersave",
    "scaling_min_freq": "800000", "scaling_max_freq": "3700000", "base_frequency": "2100000",
}  # fmt: skip


def tree(root: Path, files: dict[str, str]) -> Path:
    folder = root / "sys/devices/system/cpu/cpu0/cpufreq"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text + "\n")
    return root


def test_the_listed_clocks_hold_but_the_one_that_means_turbo(tmp_path: Path) -> None:
    clocks = read_clocks(tree(tmp_path, ACPI))
    assert clocks is not None
    assert (clocks.driver, clocks.governors) == (
        "acpi-cpufreq",
        ("conservative", "ondemand", "userspace", "performance"),
    )
    assert clocks.holding == (1200.0, 1800.0, 2400.0)
    assert [clocks.held(each) for each in (100.0, 1800.0, 1801.0, 2400.0, 2401.0, 9e9)] == [
        1200.0, 1800.0, 2400.0, 2400.0, None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("listed", "highest"),
    [
        ("2401000 2400000 1200000", 2400.0),
        ("2400500 2400000 1200000", 2400.5),
        ("2500000 2400000 1200000", 2500.0),
        ("2400000", 2400.0),
        ("1201000 1200000", 1200.0),
    ],
)
def test_a_clock_one_megahertz_above_the_next_means_turbo(listed: str, highest: float, tmp_path: Path) -> None:
    clocks = read_clocks(tree(tmp_path, ACPI | {"scaling_available_frequencies": listed}))
    assert clocks is not None
    assert clocks.holding[-1] == highest


def test_without_a_list_slurm_makes_one_of_which_those_up_to_the_base_clock_hold(tmp_path: Path) -> None:
    clocks = read_clocks(tree(tmp_path, PSTATE))
    assert clocks is not None
    assert (clocks.driver, len(clocks.settable), clocks.settable[0], clocks.settable[-1]) == (
        "intel_pstate", STEPS, 800.0, 3700.0,
    )  # fmt: skip
    assert clocks.holding[0] == 800.0
    assert 2050.0 < clocks.holding[-1] <= 2100.0
    assert clocks.held(3000.0) is None


def test_the_clocks_that_slurm_makes_are_in_equal_steps_of_whole_kilohertz_and_end_at_the_limit(tmp_path: Path) -> None:
    """Slurm's own way: 63 steps of (3,700,000 - 800,000) / 63 kHz without the rest, and the limit itself."""
    clocks = read_clocks(tree(tmp_path, PSTATE))
    assert clocks is not None
    assert clocks.settable == (*((800_000 + 46_031 * place) / 1000 for place in range(63)), 3700.0)
    assert clocks.base == 2100.0
    # Limits that are the same leave one clock.
    clocks = read_clocks(tree(tmp_path, PSTATE | {"scaling_max_freq": "800000"}))
    assert clocks is not None
    assert (clocks.settable, clocks.holding) == ((800.0,), (800.0,))


def test_without_a_base_clock_all_hold_and_without_a_clock_none(tmp_path: Path) -> None:
    clocks = read_clocks(tree(tmp_path, {name: text for name, text in PSTATE.items() if name != "base_frequency"}))
    assert clocks is not None
    assert (clocks.base, clocks.holding[-1]) == (None, 3700.0)
    assert Clocks("", (), (), None).held(1000.0) is None
    listed = ACPI | {"scaling_available_frequencies": "x 1200000 -1 1800000", "base_frequency": "1500000"}
    clocks = read_clocks(tree(tmp_path, listed))
    assert clocks is not None
    assert (clocks.settable, clocks.base, clocks.holding) == ((1200.0, 1800.0), 1500.0, (1200.0,))


@pytest.mark.parametrize(
    "change",
    [
        {"scaling_min_freq": "many"}, {"scaling_max_freq": ""}, {"scaling_min_freq": "9999999"},
        {"scaling_max_freq": "-1"}, {"scaling_max_freq": "١٠"},
    ],
)  # fmt: skip
def test_files_that_make_no_sense_are_no_clocks(tmp_path: Path, change: dict[str, str]) -> None:
    assert read_clocks(tree(tmp_path, PSTATE | change)) is None
    assert read_clocks(tmp_path / "nowhere") is None


@given(st.sets(st.integers(100, 6000), min_size=1), st.floats(1.0, 10_000.0), st.none() | st.integers(100, 6000))
def test_what_is_held_is_settable_and_no_less_than_asked_unless_nothing_is_faster(
    settable: set[int], asked: float, base: int | None
) -> None:
    clocks = Clocks("", (), tuple(float(each) for each in sorted(settable)), base)
    found = clocks.held(asked)
    next_above = min((each for each in settable if each >= asked), default=max(settable))
    assert found == (next_above if base is None or next_above <= base else None)


def test_an_entry_of_a_host_says_which_clocks_hold(tmp_path: Path) -> None:
    values = {each.name: each.value for each in detect(tree(tmp_path, ACPI))[1]}
    assert (values["clock_held_min"], values["clock_held_max"]) == (1200.0, 2400.0)
    assert not {"clock_held_min", "clock_held_max"} & {each.name for each in detect(tmp_path / "nowhere")[1]}
