"""What ``metasched simulate`` prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import call, refusal

from metasched.cli.app import main
from metasched.records import Run
from metasched.store.files.runs import write_runs

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "simulation"
FIGURE_2 = (str(EXAMPLES / "figure2.toml"), str(EXAMPLES / "figure2.app"))
STENCIL = (str(EXAMPLES / "stencil.toml"), str(EXAMPLES / "stencil.app"))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return call(capsys, "simulate", *arguments)


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    status, out, err = run(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_the_papers_second_figure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    answer = answered(capsys, *FIGURE_2, "-o", str(tmp_path / "figure.png"))
    slaves, master = answer["labels"]["slave1"], answer["labels"]["master"]
    assert (slaves["processes"], master["processes"]) == (12_800, 1)
    assert slaves["finished"] == pytest.approx(13.208545, abs=1e-9)
    assert slaves["energy"] / 3600 == pytest.approx(892.311, abs=5e-4)
    assert answer["execution_time"] == master["finished"] == pytest.approx(26.144715, abs=1e-9)
    assert master["energy"] == pytest.approx(679.766, abs=0.01)
    assert answer["energy"] / 3600 == pytest.approx(892.4995, abs=1e-4)
    assert answer["power"]["peak"] == pytest.approx(2560 * 95 + 26)
    assert answer["power"]["mean"] == pytest.approx(answer["energy"] / answer["execution_time"])
    assert (answer["success"], answer["expected_completion"]) == (None, None)
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_long_times_are_printed_in_few_digits(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, *FIGURE_2, "--set", "operations=1e300")
    assert (status, max(map(len, out.splitlines())) < 100) == (0, True)
    assert "e+" in next(line for line in out.splitlines() if line.startswith("execution time "))


def test_a_hundred_thousand_processes(capsys: pytest.CaptureFixture[str]) -> None:
    answer = answered(capsys, *STENCIL, "--processes", "cell=100000", "--set", "iterations=10")
    few = answered(capsys, *STENCIL, "--processes", "cell=24", "--set", "iterations=10", "--set", "points=2.4e7")
    assert answer["execution_time"] == pytest.approx(few["execution_time"], rel=1e-6)
    assert 0 < answer["success"] < few["success"] < 1
    assert answer["expected_completion"] > answer["execution_time"]


def test_several_values_make_a_sweep_with_its_front(capsys: pytest.CaptureFixture[str]) -> None:
    sweep = [
        *STENCIL,
        "--processes",
        "cell=12",
        "--processes",
        "cell=24",
        "--set",
        "iterations=5",
        "--set",
        "points=1e6",
    ]
    answer = answered(capsys, *sweep, "--set", "points=2e6")
    assert [(run["processes"], run["variables"]) for run in answer["runs"]] == [
        ({"cell": cells}, {"iterations": 5, "points": points}) for cells in (12, 24) for points in (1e6, 2e6)
    ]
    assert answer["pareto"] == [0, 2]  # 12 cells take fewer joules, 24 less time


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--processes", "slave1"], "--processes is 'slave1', expected LABEL=N"),
        (["--processes", "slave1=1.5"], "expected LABEL=N with a whole number N"),
        (["--processes", "slave1=1_0"], "expected LABEL=N with a whole number N"),
        (["--processes", "slave1=0"], "0 processes of slave1 are asked for, expected from 1 to its 12800 slots"),
        (["--processes", "slave1=12801"], "expected from 1 to its 12800 slots"),
        (["--processes", "helper=3"], "label helper has no code, expected one of master, slave1"),
        (["--set", "rounds=3"], "has no variable rounds"),
        (["--set", "operations=-1"], "line 12: the data size is -1"),
        (
            ["--set", "operations=1e12", "--set", "operations=2e12", "-o", "p.png"],
            "-o draws one run, not the 2 of a sweep",
        ),
    ],
)
def test_wrong_options_end_in_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str) -> None:
    assert expected in refusal(run(capsys, *FIGURE_2, *arguments))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('entry = "ethernet-1g"', 'entry = "string"'), "there is no hardware 'string'"),
        (('device = "i7-2600k"', 'device = "ethernet-1g"'), "ethernet-1g has no T_min, speed or peak_double"),
        (("slots = { slave1 = 5 }", "slots = { slave2 = 5 }"), "label slave1 has no slots"),
        (("count = 2560", "count = -1"), "count is -1"),
        (('network = "lan"', 'network = "wan"'), "is on network wan, which does not exist"),
        (('entry = "ethernet-1g"', 'entry = "ethernet-1g"\nwithin = "lan"'), "network lan is within itself"),
        (("[[network]]", "[[networks]]"), "network"),
    ],
)
def test_a_system_that_is_wrong_ends_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, change: tuple[str, str], expected: str
) -> None:
    (tmp_path / "system.toml").write_text(Path(FIGURE_2[0]).read_text().replace(*change))
    assert expected in refusal(run(capsys, str(tmp_path / "system.toml"), FIGURE_2[1]))


def metasched(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    status, out, err = call(capsys, *map(str, arguments), "--json")
    assert not status, err
    return json.loads(out)


def test_a_simulated_application_is_placed_before_its_first_run_and_learns_from_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    model, learned, runs = tmp_path / "m.json", tmp_path / "learned.json", tmp_path / "runs.csv"
    options = ("--set", "iterations=10", "--processes", "cell=8", "--model", str(model), "--size", "points")
    simulated = answered(capsys, *STENCIL, *options)["execution_time"]
    asked = ("--problem-size", 1e11, "--processors", 8, "--cpu", 1, "--bandwidth", 100_000)
    answer = metasched(capsys, "predict", model, *asked)
    assert answer["execution_time"] == pytest.approx(simulated, rel=1e-9)
    assert "no run has been learned yet" in answer["warnings"][0]

    clusters = tmp_path / "clusters.toml"
    nodes = '[{ names = "n[0-7]", available_cpu = 1.0, available_bandwidth = 800.0 }]'
    clusters.write_text(f'[[cluster]]\nname = "galera"\nnodes = {nodes}\n')
    where = ("--application", "stencil", "--problem-size", 1e11, "--clusters", clusters, "--model", model)
    best = metasched(capsys, "rank", *where)["placements"][0]
    assert len(best["nodes"]) == 8
    assert metasched(capsys, "whatif", *where, "--drain", "n7")["after"]["execution_time"] > best["execution_time"]

    twice = [
        (n, p, 2 * metasched(capsys, "predict", model, "--problem-size", n, "--processors", p)["execution_time"])
        for n in (1e10, 3e10)
        for p in (1, 2, 4)
    ]
    write_runs(runs, [Run("stencil", "galera", n, p, 1.0, 1000.0, time) for n, p, time in twice])
    fit = ("fit", runs, "-o", learned, "--simulated", model)
    assert "simulated predicts" in metasched(capsys, *fit, "--method", "tournament")["fitted"]["reason"]
    metasched(capsys, *fit, "--method", "simulated")
    with pytest.raises(SystemExit, match="2"):
        main([str(each) for each in fit])
    line = "metasched: --simulated is given with --method robust, expected --method simulated or tournament"
    assert capsys.readouterr().err.strip() == line
    assert metasched(capsys, "predict", learned, *asked)["execution_time"] == pytest.approx(2 * simulated, rel=0.02)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((*STENCIL, "--size", "points"), "--size and --label are of --model"),
        ((*STENCIL, "--model", "m.json"), "--model needs --size"),
        ((*STENCIL, "--model", "m.json", "--size", "cells"), "cells is not a variable of the application"),
        ((*FIGURE_2, "--model", "m.json", "--size", "operations"), "--model needs --label"),
        ((*FIGURE_2, "--model", "m.json", "--size", "operations", "--label", "x"), "label x has no code"),
        ((*STENCIL, "--model", "m.json", "--size", "points", "--set", "edge=1", "--set", "edge=2"), "2 of a sweep"),
    ],
)
def test_a_model_that_cannot_be_made_is_not_written(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert expected in refusal(run(capsys, *arguments))
    assert not Path("m.json").exists()
