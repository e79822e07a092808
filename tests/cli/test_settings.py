"""Layouts and parameters by name from files and options to predictions, and the lines that refuse what cannot be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from command_line import call, refusal

from metasched.store.files.runs import write_runs
from tests.predictors.laid_out import laid_out, true_time, without_settings

Answer = tuple[int, str, str]
PREDICT = ("predict", "m.json", "--problem-size", 700, "--processors", 8, "--cpu", 0.9, "--bandwidth", 90)
CLUSTERS = """
[[cluster]]
name = "c8"
nodes = [{names = "n[1-8]", processors = 2, available_bandwidth = 90.0}]
"""


@pytest.fixture
def metasched(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    monkeypatch.chdir(tmp_path)
    write_runs("runs.csv", laid_out(40))

    return partial(call, capsys)


def test_a_prediction_minds_layout_and_parameters(metasched: Callable[..., Answer]) -> None:
    assert metasched("fit", "runs.csv", "-o", "m.json")[0] == 0
    asked = ("--processes-per-node", 4, "--threads", 2, "--parameter", "steps=300", "--parameter", "solver=cg")
    status, out, err = metasched(*PREDICT, *asked, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["execution_time"] == pytest.approx(true_time(700, 8, 4, 300.0, "cg", 2), rel=0.15)
    assert "k^" in json.loads(out)["model"]
    status, out, err = metasched(*PREDICT)
    assert status == 0
    assert "steps is not given, the usual value is assumed" in err


def test_threads_that_all_runs_had_are_those_of_a_run_that_states_none(metasched: Callable[..., Answer]) -> None:
    threaded = {"processes_per_node": "2", "threads": "2"}
    write_runs("runs.csv", [replace(run, extra=threaded) for run in laid_out(20, layouts=False, parameters=False)])
    metasched("fit", "runs.csv", "-o", "m.json")
    unstated, stated, one = (metasched(*PREDICT, *more, "--json") for more in ((), ("--threads", 2), ("--threads", 1)))
    assert unstated == stated
    assert "threads 1 was never learned (it was always 2)" in one[1]
    plan = ("plan", "m.json", "--budget", 1000, "--json")
    assert metasched(*plan) == metasched(*plan, "--threads", 2)
    limits = ("walltime", "--model", "m.json", "--problem-size", 700, "--processors", 8, "--json")
    unstated, stated, one = (metasched(*limits, *more) for more in ((), ("--threads", 2), ("--threads", 1)))
    assert unstated == stated != one
    assert {each[0] for each in (stated, one)} == {0}


def test_a_ranking_minds_parameters(metasched: Callable[..., Answer]) -> None:
    Path("clusters.toml").write_text(CLUSTERS)
    metasched("fit", "runs.csv", "-o", "m.json")
    asked = ("rank", "--application", "cg", "--problem-size", 700, "--clusters", "clusters.toml", "--model", "m.json")
    times = []
    for steps in (30, 300):
        status, out, _ = metasched(*asked, "--parameter", f"steps={steps}", "--json")
        assert status == 0
        times.append(json.loads(out)["placements"][0]["execution_time"])
    assert times[1] > 5 * times[0]


def test_time_limits_mind_layout_and_parameters(metasched: Callable[..., Answer]) -> None:
    metasched("fit", "runs.csv", "-o", "m.json")
    asked = ("walltime", "--model", "m.json", "--problem-size", 700, "--processors", 8, "--cpu", 0.9, "--bandwidth", 90)
    settings = ("--processes-per-node", 4, "--threads", 2, "--parameter", "steps=300", "--parameter", "solver=cg")
    status, out, err = metasched(*asked, *settings, "--json")
    assert (status, err) == (0, "")
    assert json.loads(out)["clusters"][0]["median"] == pytest.approx(true_time(700, 8, 4, 300.0, "cg", 2), rel=0.15)
    for stated in (("--threads", 2), ("--threads", 1)):
        assert "--placement already gives" in refusal(metasched("walltime", "--placement", "0" * 32, *stated))


def test_a_picture_minds_layout_and_parameters(metasched: Callable[..., Answer]) -> None:
    metasched("fit", "runs.csv", "-o", "m.json")
    asked = ("plot", "scaling", "m.json", "-o", "p.png", "--problem-size", 700)
    assert metasched(*asked, "--processes-per-node", 4, "--parameter", "steps=300")[0] == 0
    status, _, err = metasched(*asked, "--parameter", "step=3")
    assert (status, err) == (2, "metasched: parameter 'step' is unknown, expected one of solver, steps\n")


@pytest.mark.parametrize("layout", [(), ("--processes-per-node", 2), ("--threads", 2)], ids=str)
def test_an_explanation_is_of_the_layout_and_the_parameters_that_were_ranked(
    metasched: Callable[..., Answer], layout: tuple[object, ...]
) -> None:
    Path("clusters.toml").write_text(CLUSTERS)
    metasched("fit", "runs.csv", "-o", "m.json")
    files = ("--clusters", "clusters.toml", "--model", "m.json")
    asked = ("rank", "--application", "cg", "--problem-size", 700, *files, "--parameter", "steps=300", *layout)
    Path("answer.json").write_text(metasched(*asked, "--json")[1])
    ranked = json.loads(Path("answer.json").read_text())["placements"]
    told = [
        json.loads(metasched("explain", "answer.json", *files, "--number", placed["rank"], "--json")[1])["parts"]
        for placed in ranked
    ]
    assert [sum(part["seconds"] for part in parts) for parts in told] == pytest.approx(
        [placed["completion"] for placed in ranked]
    )
    assert "model then" not in [part["name"] for parts in told for part in parts]


def test_a_campaign_of_layouts_is_evaluated_beside_peers_that_know_them(metasched: Callable[..., Answer]) -> None:
    status, out, _ = metasched("evaluate", "runs.csv", "--training", 25, "--no-learning", "--peers", "--json")
    found = json.loads(out)
    assert status == 0
    assert found["ppe_mean"] < min(found["peers"][name]["ppe_mean"] for name in ("power_law", "amdahl", "ridge"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--parameter", "step=3"), "parameter 'step' is unknown, expected one of solver, steps"),
        (("--parameter", "steps=many"), "parameter steps is 'many', expected a number"),
        (("--parameter", "steps"), "--parameter is steps, expected NAME=VALUE, such as steps=100"),
        (("--parameter", "steps=1", "--parameter", "steps=2"), "--parameter steps is given twice"),
        (("--parameter", "steps=nan"), "steps is nan, expected a finite number or a word"),
        (("--processes-per-node", 9), "processes_per_node is 9, expected at most the number of processors, 8"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    metasched: Callable[..., Answer], options: tuple[object, ...], message: str
) -> None:
    metasched("fit", "runs.csv", "-o", "m.json")
    assert message in refusal(metasched(*PREDICT, *options))


def test_a_method_that_tells_no_settings_apart_says_so(metasched: Callable[..., Answer]) -> None:
    write_runs("plain.csv", without_settings(laid_out(40)))
    metasched("fit", "plain.csv", "-o", "m.json", "--method", "published")
    assert "solver amg is given, but published models do not depend on it" in refusal(
        metasched(*PREDICT, "--parameter", "solver=amg")
    )


def test_a_plan_names_runs_and_what_they_do_to_intervals(metasched: Callable[..., Answer]) -> None:
    metasched("fit", "runs.csv", "-o", "m.json")
    asked = ("plan", "m.json", "--problem-size", 3000, "--processors", "16,64", "--parameter", "steps=100")
    status, out, _ = metasched(*asked, "--budget", 2000, "--json")
    found = json.loads(out)
    assert status == 0
    assert sum(run["execution_time"] for run in found["runs"]) == pytest.approx(found["seconds"])
    assert 0 < found["seconds"] <= 2000
    assert [(one["processors"], one["width_then"] < one["width_now"]) for one in found["asked"]] == [
        (16, True),
        (64, True),
    ]
    status, out, _ = metasched(*asked, "--budget", 2000)
    assert (status, "interval" in out) == (0, True)


def test_a_plan_is_for_the_largest_learned_problem_by_default(metasched: Callable[..., Answer]) -> None:
    metasched("fit", "runs.csv", "-o", "m.json")
    status, out, _ = metasched("plan", "m.json", "--budget", 2000, "--json")
    asked, learned = json.loads(out)["asked"], laid_out(40)
    assert status == 0
    assert {one["problem_size"] for one in asked} == {max(run.problem_size for run in learned)}
    assert [one["processors"] for one in asked] == sorted({run.processors for run in learned})


@pytest.mark.parametrize("size", [16384, 1021, 48011])
def test_a_plan_runs_sizes_that_are_asked_for_as_they_are(metasched: Callable[..., Answer], size: int) -> None:
    write_runs("runs.csv", [replace(run, problem_size=1021.0, extra={}) for run in laid_out(6)])
    metasched("fit", "runs.csv", "-o", "m.json")
    status, out, _ = metasched("plan", "m.json", "--problem-size", size, "--budget", 1e6, "--json")
    sizes = {run["problem_size"] for run in json.loads(out)["runs"]}
    assert status == 0
    assert size in sizes
    assert all(each in (size, 1021.0) or each == float(f"{each:.3g}") for each in sizes)
    assert not sizes & {16400.0, 1020.0, 48000.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--budget", 0, "--processors", 8), "--budget is 0, expected a number of seconds above 0"),
        (("--budget", 9, "--processors", ""), "--processors is '', expected numbers of processors such as 1,2,4-8"),
    ],
)
def test_a_plan_without_time_or_place_is_refused(
    metasched: Callable[..., Answer], options: tuple[object, ...], message: str
) -> None:
    metasched("fit", "runs.csv", "-o", "m.json")
    assert message in refusal(metasched("plan", "m.json", "--problem-size", 3000, *options))


@pytest.mark.parametrize("value", ["", ",", " "])
@pytest.mark.parametrize(
    ("verb", "option"),
    [("rank", "--processors"), ("rank", "--frequencies"), ("whatif", "--processors"), ("sites rank", "--processors")],
)
def test_an_option_whose_list_is_empty_is_not_taken_for_one_that_is_missing(
    verb: str, option: str, value: str, metasched: Callable[..., Answer]
) -> None:
    Path("clusters.toml").write_text(CLUSTERS)
    metasched("fit", "runs.csv", "-o", "m.json")
    given = () if verb == "sites rank" else ("--clusters", "clusters.toml", "--model", "m.json")
    assert f"{option} is " in refusal(
        metasched(*verb.split(), "--application", "cg", "--problem-size", 700, *given, option, value)
    )


@pytest.mark.parametrize(
    "asked",
    [
        ("--processors", ""),
        ("--runs-on", ","),
        ("--runs-on", ""),
        ("--problem-size", "inf"),
        ("--problem-size", "nan"),
        ("--problem-size", -4),
    ],
)
def test_a_plan_names_the_option_that_is_wrong(asked: tuple[object, ...], metasched: Callable[..., Answer]) -> None:
    metasched("fit", "runs.csv", "-o", "m.json")
    assert f"{asked[0]} is " in refusal(metasched("plan", "m.json", "--budget", 50, *asked))


@pytest.mark.parametrize("asked", [("--problem-size", "inf"), ("--bandwidth", "inf"), ("--cpu", 2), ("--cpu", "nan")])
def test_a_picture_of_scaling_names_the_option_that_is_wrong(
    asked: tuple[object, ...], metasched: Callable[..., Answer]
) -> None:
    metasched("fit", "runs.csv", "-o", "m.json")
    others = () if "--problem-size" in asked else ("--problem-size", 700)
    status, out, err = metasched("plot", "scaling", "m.json", "-o", "s.png", *others, *asked)
    assert (status, out, err.startswith(f"metasched: {asked[0]} is "), err.count("\n")) == (2, "", True, 1)
