"""One contract: SPMD, cloud and tournament models are fitted, judged, asked, ranked by and explained like any other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from command_line import call, refusal

from metasched.store.files.runs import write_runs
from tests.predictors.made import runs

Answer = tuple[int, str, str]

PROFILES = """processes,sends,message_size,waiting_time,execution_time
2,100,8000,0.02,8.1
4,100,8000,0.03,4.1
8,100,8000,0.04,2.1
"""
SERVERS = 'word_time = 8e-9\n[[server]]\nname = "s"\ncores = 8\ncount = 4\n'
CLUSTERS = """
[[cluster]]
name = "c8"
nodes = [{names = "n[1-8]", processors = 2, available_bandwidth = 90.0}]
running = [
  {nodes = "n[1-2]", processors = 2, application = "made", problem_size = 3000.0, running_for = 5.0},
  {nodes = "n3", application = "lu", problem_size = 3000.0},
]
"""
PROFILED = ("--profile", "profiles.csv", "--hardware", "servers.toml", "--profiled-size", 1000)


@pytest.fixture
def metasched(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    monkeypatch.chdir(tmp_path)
    Path("profiles.csv").write_text(PROFILES)
    Path("servers.toml").write_text(SERVERS)
    Path("clusters.toml").write_text(CLUSTERS)
    write_runs("runs.csv", runs(30))

    return partial(call, capsys)


@pytest.mark.parametrize("method", ["spmd", "cloud", "tournament"])
def test_any_method_is_fitted_to_runs_whose_settings_vary(metasched: Callable[..., Answer], method: str) -> None:
    varied = [
        replace(run, extra={"parameter:solver": "cg" if number % 2 else "jacobi", "threads": str(1 + number % 3)})
        for number, run in enumerate(runs(30))
    ]
    write_runs("runs.csv", varied)
    options = PROFILED if method != "spmd" else ()
    assert metasched("fit", "runs.csv", "-o", "m.json", "--method", method, *options, "--json")[0] == 0
    request = "--problem-size", 1000, "--processors", 4, "--cpu", 0.9, "--bandwidth", 80
    setting = ("--parameter", "solver=cg") if method != "tournament" else ()
    status, out, _ = metasched("predict", "m.json", *request, *setting, "--json")
    assert status == 0
    assert json.loads(out)["execution_time"] > 0


def test_profiles_may_tell_the_grid_of_processes(metasched: Callable[..., Answer]) -> None:
    header, *rows = PROFILES.splitlines()
    grid = [f"{header},mean_distance,exchanges,dimensions", *(f"{row},1,50,1" for row in rows)]
    Path("profiles.csv").write_text("\n".join(grid))
    status, out, _ = metasched("fit", "runs.csv", "-o", "m.json", "--method", "cloud", *PROFILED, "--json")
    assert status == 0
    assert json.loads(out)["fitted"]["cpu_constant"] > 0


@pytest.mark.parametrize("method", ["spmd", "cloud", "tournament"])
def test_any_method_is_fitted_asked_and_ranked_by(metasched: Callable[..., Answer], method: str) -> None:
    options = PROFILED if method != "spmd" else ()
    status, out, _ = metasched("fit", "runs.csv", "-o", "m.json", "--method", method, *options, "--json")
    assert status == 0
    fitted = json.loads(out)
    assert (fitted["application"], fitted["cluster"]) == ("made", "c8")
    known = {"spmd": "parallel_computation", "cloud": "cpu_constant", "tournament": "reason"}[method]
    assert known in fitted["fitted"]

    request = "--problem-size", 1000, "--processors", 4, "--cpu", 0.9, "--bandwidth", 80, "--json"
    status, out, _ = metasched("predict", "m.json", *request)
    assert status == 0
    assert json.loads(out)["execution_time"] > 0

    where = "--clusters", "clusters.toml", "--model", "m.json"
    asked = "--application", "made", "--problem-size", 3000, *where
    status, out, err = metasched("rank", *asked, "--json")
    assert status == 0
    assert "1 job on c8 is assumed to share nothing, since it has no model: lu" in err
    Path("answer.json").write_text(out)
    status, out, _ = metasched("explain", "answer.json", *where, "--json")
    assert status == 0
    explained = json.loads(out)
    best = json.loads(Path("answer.json").read_text())["placements"][0]
    total = best["queue_wait"] + best["slowdown"] * best["execution_time"]
    assert sum(part["seconds"] for part in explained["parts"]) == pytest.approx(total)
    if method == "tournament":
        (chosen,) = (part for part in explained["parts"] if part["name"] == "tournament")
        assert "predicts, mean error over the last" in chosen["how"]
        assert all(name in chosen["how"] for name in ("robust", "published", "spmd", "cloud"))
    status, out, _ = metasched("whatif", *asked, "--drain", "n8", "--json")
    assert status == 0
    assert json.loads(out)["before"]["slowdown"] == best["slowdown"]


def test_cloud_is_judged_like_any_other(metasched: Callable[..., Answer]) -> None:
    Path("campaign").mkdir()
    made = runs(30)
    write_runs("campaign/runs.csv", [replace(run, phase="train" if run in made[:20] else "predict") for run in made])
    for method in ("cloud", "tournament"):
        status, out, _ = metasched("evaluate", "campaign", "--method", method, *PROFILED, "--json")
        assert status == 0
        assert json.loads(out)["predictions"] == 10


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--method", "cloud"), "--method cloud needs --profile, --hardware and --profiled-size"),
        (("--method", "cloud", *PROFILED[:4]), "--profile, --hardware and --profiled-size go together"),
        (("--method", "cloud", *PROFILED[:-1], 0), "problem size profiled is 0"),
        (("--method", "tournament", "--hardware", "servers.toml"), "go together"),
    ],
)
def test_what_was_profiled_must_be_told_in_full(
    metasched: Callable[..., Answer], options: tuple[object, ...], line: str
) -> None:
    assert line in refusal(metasched("fit", "runs.csv", "-o", "m.json", *options))
    assert not Path("m.json").exists()
