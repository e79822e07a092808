"""What ``metasched simulate`` shows of outcomes, and how it reads sweeps, by itself."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import call

from metasched.cli.simulations import simulate as verb
from metasched.records import InputError
from metasched.simulation.outcome import LabelOutcome, Outcome

NOTHING = np.zeros(0)
WHOLE = Outcome(12.5, 7200.0, 576.0, 600.0, 0.75, 15.0, {"w": LabelOutcome(3, 12.5, 3600.0)}, (), NOTHING, NOTHING, ())
SYSTEM, APPLICATION = (
    str(Path(__file__).resolve().parents[3] / "examples" / "simulation" / name)
    for name in ("stencil.toml", "stencil.app")
)


def shown(capsys: pytest.CaptureFixture[str], outcome: Outcome) -> list[str]:
    capsys.readouterr()
    verb._show(outcome)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines() if line.strip(" ─")]


def test_an_outcome_is_shown_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, WHOLE) == [
        "label processes finished at s energy",
        "w 3 12.500000 1.000 Wh",
        "execution time 12.500000 s",
        "energy 2.000 Wh, power 576 W on average, 600 W at most",
        "probability that no node fails during the run 0.75, expected completion with restarts 15 s",
    ]


def test_what_is_not_known_is_left_out_and_what_never_ends_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    unknown = replace(WHOLE, energy=math.nan, success=math.nan, labels={"w": LabelOutcome(3, 12.5, math.nan)})
    assert shown(capsys, unknown)[1:] == ["w 3 12.500000 -", "execution time 12.500000 s"]
    empty = replace(WHOLE, execution_time=0.0, energy=0.0, mean_power=math.nan)
    assert shown(capsys, empty)[3] == "energy 0.000 Wh, power 600 W at most"
    endless = replace(WHOLE, execution_time=1e9, success=0.0, expected_completion=math.inf)
    assert shown(capsys, endless)[2::2] == [
        "execution time 1e+09 s",
        "probability that no node fails during the run 0, expected completion with restarts never",
    ]
    assert shown(capsys, replace(WHOLE, execution_time=999_999_999.0))[2] == "execution time 999999999.000000 s"


def test_a_sweep_is_a_row_for_each_run(capsys: pytest.CaptureFixture[str]) -> None:
    runs: list[tuple[dict[str, float], dict[str, float]]] = [({"w": 3}, {"n": 1.5}), ({"w": 4}, {"n": 1.5})]
    warned = replace(WHOLE, energy=math.nan, success=math.nan, warnings=("nothing is known",))
    verb._show_sweep(runs, [WHOLE, warned], [1])
    captured = capsys.readouterr()
    lines = [" ".join(line.split()) for line in captured.out.splitlines() if line.strip(" ─")]
    assert lines == ["w n time s energy chance", "3 1.5 12.5 2.000 Wh 0.75", "4 1.5 12.5 - - front"]
    assert captured.err.count("nothing is known") == 1


def test_the_front_holds_what_no_other_run_beats_in_both() -> None:
    outcomes = [
        replace(WHOLE, execution_time=time, energy=energy)
        for time, energy in itertools.product((1.0, 2.0, 3.0), (1.0, 2.0, 3.0))
        if time + energy >= 4
    ] * 2
    expected = [
        place
        for place, one in enumerate(outcomes)
        if not any(
            (other.execution_time < one.execution_time and other.energy <= one.energy)
            or (other.execution_time <= one.execution_time and other.energy < one.energy)
            for other in outcomes
        )
    ]
    assert verb._front(outcomes) == expected
    assert len(expected) == 6


@pytest.mark.parametrize(
    ("texts", "whole", "found"),
    [
        (None, True, {}),
        ([], True, {}),
        (["w=3", "v=1", "w=4"], True, {"w": [3, 4], "v": [1]}),
        (["n=1.5", "n=2.0", " m =-1e3"], False, {"n": [1.5, 2], "m": [-1000]}),
    ],
)
def test_values_of_a_sweep_stay_in_order_and_whole_ones_are_whole(
    texts: list[str] | None, whole: bool, found: dict[str, list[float]]
) -> None:
    swept = verb._swept("--set", texts, whole)
    assert swept == found
    assert [type(value) for values in swept.values() for value in values] == [
        type(value) for values in found.values() for value in values
    ]


@pytest.mark.parametrize("text", ["w", "w=", "=3", "2w=3", "w=nan", "w=inf", "w=much"])
@pytest.mark.parametrize(
    ("whole", "expected"), [(True, "LABEL=N with a whole number N"), (False, "NAME=V with a number V")]
)
def test_what_is_no_value_of_a_sweep_is_refused(text: str, whole: bool, expected: str) -> None:
    with pytest.raises(InputError) as refused:
        verb._swept("--set", [text], whole)
    assert str(refused.value) == f"--set is {text!r}, expected {expected}"


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--set", "points=1e6", "--set", "points=2e6", "--model", "m.json", "--size", "points"],
         "--model takes one run, not the 2 of a sweep"),
        (["--model", "m.json"], "--model needs --size, the variable that is the problem size N"),
        ([word for at in range(verb.MOST_RUNS + 1) for word in ("--set", f"points={at + 1}")],
         f"the sweep has {verb.MOST_RUNS + 1} runs, expected at most {verb.MOST_RUNS}"),
    ],
)  # fmt: skip
def test_more_than_one_run_makes_no_model_and_a_sweep_has_an_end(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("simulate", SYSTEM, APPLICATION, "--set", "iterations=1", "--processes", "cell=2", *more)
    status, out, err = call(capsys, *words)
    assert (status, out, err.rstrip("\n").removeprefix("metasched: ")) == (2, "", line)
    assert list(tmp_path.iterdir()) == []
