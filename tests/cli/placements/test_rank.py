"""The rank verb from files to exit status: real models, real descriptions."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import call, refusal
from odd_servers import prometheus, serving

from metasched.cli import output
from metasched.cli.placements import given, rankings
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Load, Run
from metasched.service.schemas import RankIn
from metasched.store.database.store import Store
from metasched.store.documents import dump
from metasched.store.files.models import write_model

CLUSTERS = """
[[cluster]]
name = "east"
queue_wait = 5
nodes = [{names = "e[1-4]", processors = 2, available_cpu = [1.0, 0.9, 0.5, 0.4], memory = 4000}]

[[cluster]]
name = "west"
nodes = [{names = "w[1-4]", available_bandwidth = 100}]

[[application]]
name = "cg"
max_processors = 6
"""


@pytest.fixture(scope="module")
def model() -> PublishedPredictor:
    random = np.random.default_rng(3)
    return PublishedPredictor("cg", "east").fit(
        Run("cg", "east", n, p, cpu, bw, 1e-4 * n**2 / (cpu * p) + (p > 1) * 0.2 * n * np.log2(p) / bw)
        for n in range(500, 3000, 250)
        for p in (1, 2, 4, 8)
        for cpu, bw in [(random.uniform(0.4, 1), random.uniform(100, 900))]
    )


@pytest.fixture
def files(tmp_path, model, monkeypatch):
    (tmp_path / "clusters.toml").write_text(CLUSTERS)
    write_model(tmp_path / "cg.json", model)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("METASCHED_DB", str(tmp_path / "store.db"))
    Store.open(tmp_path / "made.db").close()
    return tmp_path


def run(capsys, *options: str) -> tuple[int, str, str]:
    return call(capsys, "rank", "--problem-size", "2000", "--clusters", "clusters.toml", *options)


def ranked(capsys, *options: str) -> dict:
    status, out, err = run(capsys, "--application", "cg", "--json", *options)
    assert status == 0, err
    return json.loads(out)


def test_one_resource_set_is_not_said_to_be_several(files, capsys) -> None:
    _, out, _ = run(capsys, "--application", "cg", "--model", "cg.json", "--processors", "1", "--cluster", "east")
    assert "1 resource set compared" in out


def test_json_has_placements_in_order_with_intervals_minima_and_reasons(files, capsys) -> None:
    answer = ranked(capsys, "--model", "cg.json", "--top", "3")
    assert [each["rank"] for each in answer["placements"]] == [1, 2, 3]
    completions = [each["completion"] for each in answer["placements"]]
    assert completions == sorted(completions)
    best = answer["placements"][0]
    assert best["interval"]["low"] < best["execution_time"] < best["interval"]["high"]
    assert 0 < best["available_cpu"] <= 1
    assert best["reason"].startswith("best; the next is")
    assert best["completion"] == pytest.approx(best["queue_wait"] + best["execution_time"])
    assert max(point["processors"] for point in answer["by_processors"]) == 6


def test_the_table_shows_where_and_why(files, capsys) -> None:
    status, out, _ = run(capsys, "--application", "cg", "--model", "cg.json", "--top", "2")
    assert status == 0
    assert "e[1-" in out or "w[1-" in out
    assert "best; the next is" in out


def test_a_narrow_terminal_breaks_names_of_nodes_but_no_numbers(files, capsys, monkeypatch) -> None:
    wide = run(capsys, "--application", "cg", "--model", "cg.json", "--top", "2")[1]
    monkeypatch.setattr(output.out, "_width", 40)
    narrow = run(capsys, "--application", "cg", "--model", "cg.json", "--top", "2")[1]
    (row,) = (line for line in wide.splitlines() if line.strip().startswith("1   "))
    for cell in ("90% interval", *re.split(r"\s{2,}", row.strip())[2:]):
        assert cell in narrow


def test_options_narrow_what_is_compared(files, capsys) -> None:
    answer = ranked(
        capsys, "--model", "cg.json", "--cluster", "east", "--exclude", "e[1-2]", "--processors", "2-3", "--memory", "1"
    )
    assert {each["processors"] for each in answer["placements"]} <= {2, 3}
    assert {node for each in answer["placements"] for node in each["nodes"]} == {"e3", "e4"}
    assert answer["ruled_out"]["east"] == {"excluded nodes": 2}


def test_models_and_loads_come_from_the_store(files, capsys, model) -> None:
    with Store.open() as store:
        store.models.save("cg", "west", json.loads(dump(model)))
        store.loads.add([Load(100.0, f"w{node}", 0.5 if node < 3 else 0.01, 90.0) for node in range(1, 5)])
    answer = ranked(capsys, "--loads", "store", "--at", "110")
    assert {each["cluster"] for each in answer["placements"]} == {"west"}
    assert set(answer["placements"][0]["nodes"]) <= {"w1", "w2"}
    assert answer["placements"][0]["available_cpu"] == 0.5


def test_loads_come_from_a_file(files, capsys) -> None:
    (files / "loads.csv").write_text("time,node,available_cpu,available_bandwidth\n0,e1,0.05,900\n9,e1,1,900\n")
    before = ranked(
        capsys, "--model", "cg.json", "--loads", "loads.csv", "--at", "5", "--cluster", "east", "--top", "1"
    )
    after = ranked(capsys, "--model", "cg.json", "--loads", "loads.csv", "--cluster", "east", "--top", "1")
    assert "e1" not in before["placements"][0]["nodes"]
    assert "e1" in after["placements"][0]["nodes"]


def test_an_option_says_from_which_age_on_loads_are_stale(files, capsys) -> None:
    """e1 was measured nearly idle long ago, the others half busy just now."""
    rows = ["0,e1,0.95,900", *(f"1000,e{number},0.5,900" for number in (2, 3, 4))]
    (files / "loads.csv").write_text("\n".join(["time,node,available_cpu,available_bandwidth", *rows, ""]))
    options = "--model", "cg.json", "--loads", "loads.csv", "--cluster", "east", "--processors", "1", "--top", "1"

    def first(*more: str) -> dict:
        return ranked(capsys, *options, *more)["placements"][0]

    assert first()["available_cpu"] == 0.5
    assert (first("--stale-after", "2000")["available_cpu"], first("--stale-after", "2000")["nodes"]) == (0.95, ["e1"])


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--application", "ep", "--model", "cg.json"], "--model cg.json is of application cg, expected ep"),
        (
            ["--application", "cg"],
            "store.db: no such database; metasched run or serve creates one; a model can be given",
        ),
        (["--application", "cg", "--db", "made.db"], "holds no model of cg on west; give one by --model"),
        (["--application", "cg", "--model", "no.json"], "no.json: no such file"),
        (["--application", "cg", "--model", "north=cg.json"], "north is not described, expected one of east, west"),
        (["--application", "cg", "--model", "cg.json", "--cluster", "north"], "--cluster north is not described"),
        (["--application", "cg", "--model", "cg.json", "--processors", "2-x"], "'2-x' is not a number of processors"),
        (["--application", "cg", "--model", "cg.json", "--weight", "speed=1"], "no term speed, expected one of time"),
        (["--application", "cg", "--model", "cg.json", "--weight", "time=1_0"], "expected TERM=PRICE, such as"),
        (
            ["--application", "cg", "--model", "cg.json", "--weight", "time=1e-320"],
            "weight of time is 1e-320",
        ),
        (["--application", "cg", "--model", "cg.json", "--least-efficiency", "2"], "least_efficiency is 2.0, expected"),
        (["--application", "cg", "--model", "cg.json", "--processors", "1-10001"], "names more than 10000 numbers"),
        (["--application", "cg", "--model", "cg.json", "--exclude", "n[1-20001]"], "is more than 20000 nodes"),
        (["--application", "cg", "--model", "cg.json", "--exclude", "n7"], "node n7 is in none of the clusters"),
        (["--application", "cg", "--model", "cg.json", "--saving", "1"], "saving is 1.0"),
        (["--application", "cg", "--model", "cg.json", "--at", "1"], "--at is given without --loads"),
        (["--application", "cg", "--model", "cg.json", "--level", "2"], "level"),
    ],
)
def test_wrong_input_is_one_line_and_exit_status_2(files, capsys, options, line) -> None:
    assert line in refusal(run(capsys, *options))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--top", "9" * 23), "less than or equal to 1000000"),
        (("--memory", "1e6"), "4 ruled out (memory of 1e+06 MB)"),
        (("--processors", "500"), "for 500 and at most 6 processors, at most 8 are left together"),
        (("--min-processors", "7"), "max_processors is 6, expected at least min_processors, 7"),
        (("--feature", "gpu"), "4 ruled out (feature gpu)"),
        (("--threads", "3"), "1 process of 3 threads on a node takes 3 processors, no node has more than 2"),
        (("--processes-per-node", "4"), "4 processes of 1 thread on a node take 4 processors"),
        (
            ("--cluster", "west", "--threads", "2"),
            "1 process of 2 threads on a node takes 2 processors, no node has more than 1",
        ),
        (("--exclude", "e[1-4],w[1-4]"), "4 ruled out (excluded nodes)"),
    ],
)
def test_demands_that_never_fit_are_one_line_and_exit_status_2(files, capsys, options, line) -> None:
    status, out, err = run(capsys, "--application", "cg", "--model", "cg.json", *options, "--json")
    assert (status, line in err, err.count("\n")) == (2, True, 1), err
    assert not out or json.loads(out)["placements"] == []


def test_nodes_that_are_busy_are_an_answer_with_exit_status_1(files, capsys) -> None:
    (files / "clusters.toml").write_text('[[cluster]]\nname = "east"\nnodes = [{names = "e[1-4]", jobs = 1}]\n')
    status, out, err = run(capsys, "--application", "cg", "--model", "cg.json", "--exclusive", "--json")
    assert (status, err.count("\n")) == (1, 1), err
    answer = json.loads(out)
    assert (answer["placements"], answer["for_now"]) == ([], True)


def test_a_layout_that_fits_some_nodes_is_ranked_on_these(files, capsys) -> None:
    answer = ranked(capsys, "--model", "cg.json", "--threads", "2")
    assert {each["cluster"] for each in answer["placements"]} == {"east"}


def test_a_size_far_outside_is_answered_with_a_warning(files, capsys) -> None:
    answer = ranked(capsys, "--model", "cg.json", "--problem-size", "1e6")
    assert answer["placements"]
    assert any("times the largest learned" in line for line in answer["warnings"])


def test_explain_says_what_it_takes_where_there_is_no_such_file(files, capsys) -> None:
    status, _, err = call(capsys, "explain", "answer.jsn")
    said = "answer.jsn: no such file or directory, expected the id of a placement, the number of a job, or an answer of"
    assert (status, said in err) == (2, True)


def test_explain_adds_up_to_what_rank_answered(files, capsys) -> None:
    answer = ranked(capsys, "--model", "cg.json")
    (files / "answer.json").write_text(json.dumps(answer))
    options = ["--clusters", "clusters.toml", "--model", "cg.json", "--number", "2", "--json"]
    status, out, _ = call(capsys, "explain", "answer.json", *options)
    assert status == 0
    explained = json.loads(out)
    total = sum(part["seconds"] for part in explained["parts"])
    assert total == pytest.approx(answer["placements"][1]["completion"])
    assert explained["least_cpu"].startswith("node ")


@pytest.mark.parametrize("level", [0.9, 0.8])
def test_rank_explain_and_walltime_show_one_upper_end(files, capsys, model, level: float) -> None:
    def printed(*words: str) -> dict:
        status, out, _ = call(capsys, *words, "--json")
        assert status == 0
        return json.loads(out)

    with Store.open() as store:
        store.models.save("cg", "west", json.loads(dump(model)))
    answer = ranked(capsys, "--cluster", "west", "--level", str(level))
    (files / "answer.json").write_text(json.dumps(answer))
    best = answer["placements"][0]
    explained = printed("explain", "answer.json", "--clusters", "clusters.toml")
    loads = ["--cpu", str(best["available_cpu"]), "--bandwidth", str(best["available_bandwidth"])]
    job = ["--application", "cg", "--problem-size", "2000", "--processors", str(best["processors"])]
    limits = printed("walltime", *job, *loads, "--chance", str((1 - level) / 2), "--db", str(files / "store.db"))
    assert explained["interval"] == best["interval"]
    assert limits["clusters"][0]["limits"][0]["seconds"] == pytest.approx(best["interval"]["high"], rel=1e-9)


@pytest.mark.parametrize("cluster", ["east", "north"])
def test_explain_names_a_cluster_without_a_model_or_a_description(files, capsys, model, cluster: str) -> None:
    with Store.open() as store:
        store.models.save("cg", "west", json.loads(dump(model)))
    answer = ranked(capsys, "--cluster", "west")
    answer["placements"][0]["cluster"] = cluster
    (files / "answer.json").write_text(json.dumps(answer))
    said = f"cluster {cluster} of the placement has no description or no model"
    assert said in refusal(call(capsys, "explain", "answer.json", "--clusters", "clusters.toml"))


@pytest.mark.parametrize(
    ("text", "line"),
    [("{}", "is not an answer of metasched rank --json: application is missing"), ("[", "is not an answer")],
)
def test_explain_refuses_what_rank_never_answered(files, capsys, text, line) -> None:
    (files / "answer.json").write_text(text)
    assert line in refusal(call(capsys, "explain", "answer.json", "--clusters", "clusters.toml", "--model", "cg.json"))


def test_whatif_shows_the_change_the_scaling_and_a_picture(files, capsys) -> None:
    options = ["--problem-size", "2000", "--clusters", "clusters.toml", "--model", "cg.json", "--json"]
    status, out, _ = call(
        capsys, "whatif", "--application", "cg", *options, "--times", "2", "--drain", "e[1-2]", "--picture", "p.png"
    )
    assert status == 0
    answer = json.loads(out)
    assert answer["change"] > 1
    assert not {"e1", "e2"} & set(answer["after"]["nodes"])
    assert answer["enough"] <= answer["fastest"]
    assert (files / "p.png").read_bytes().startswith(b"\x89PNG")


def whatif(capsys, *options: str) -> dict:
    status, out, err = call(capsys, "whatif", "--application", "cg", "--problem-size", "2000", "--json", *options)
    assert status == 0, err
    return json.loads(out)


@pytest.mark.parametrize(
    "settings", [(), ("--processes-per-node", "1"), ("--processes-per-node", "2", "--threads", "2")]
)
def test_whatif_starts_from_what_rank_answers(settings: tuple[str, ...], files, capsys) -> None:
    """Also for processes laid out as they are asked for."""
    runs = [
        Run("cg", "east", n, p, 1.0, 900.0, 1e-4 * n**2 / p * k**0.2 / t**0.8,
            extra={"processes_per_node": str(k), "threads": str(t)})
        for n in range(500, 3000, 500) for p in (2, 4, 8) for k in (1, 2) for t in (1, 2)
    ]  # fmt: skip
    write_model(files / "laid.json", RobustPredictor("cg", "east").fit(runs))
    described = CLUSTERS.replace("processors = 2", "processors = 4").replace('"w[1-4]"', '"w[1-4]", processors = 4')
    (files / "clusters.toml").write_text(described)
    asked = "--model", "laid.json", *settings
    best = ranked(capsys, *asked)["placements"][0]
    found = whatif(capsys, "--clusters", "clusters.toml", *asked)
    layout = "cluster", "nodes", "processors", "threads", "completion"
    assert [found["before"].get(name, 1) for name in layout] == [best.get(name, 1) for name in layout]
    assert found["before"] == found["after"]


def test_whatif_says_that_an_idle_node_raises_the_floor_of_efficiency(files, capsys) -> None:
    loads = "available_cpu = [1.0, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]"
    (files / "clusters.toml").write_text(f'[[cluster]]\nname = "c"\nnodes = [{{names = "n[0-9]", {loads}}}]\n')
    options = "--clusters", "clusters.toml", "--model", "cg.json", "--drain", "n0"
    found = whatif(capsys, *options, "--least-efficiency", "0.4")
    assert found["change"] < 0
    assert found["warnings"][-1].endswith("by draining: with them that placement is below --least-efficiency")
    assert whatif(capsys, *options, "--least-efficiency", "0")["change"] >= 0


@pytest.mark.parametrize("times", ["-2", "0", "nan", "inf"])
def test_whatif_names_the_option_that_is_wrong(files, capsys, times: str) -> None:
    status, _, err = call(
        capsys, "whatif", "--application", "cg", "--problem-size", "9", "--clusters", "clusters.toml", "--times", times
    )
    assert status == 2
    assert err == f"metasched: --times is {times}, expected a number above 0\n"


EVERYTHING = {
    "--processors 2,4": {"processors": [2, 4]}, "--min-processors 2": {"min_processors": 2},
    "--max-processors 8": {"max_processors": 8}, "--per-node 1": {"per_node": 1}, "--memory 100": {"memory": 100.0},
    "--memory-per-processor 50": {"memory_per_processor": 50.0}, "--feature ib": {"features": ["ib"]},
    "--exclusive": {"exclusive": True}, "--cluster e": {"clusters": ["e"]}, "--exclude e1": {"exclude": "e1"},
    "--least-efficiency 0.5": {"least_efficiency": 0.5}, "--no-forecast": {"forecast": False},
    "--stale-after 60": {"stale_after": 60.0}, "--saving 0.2": {"saving": 0.2}, "--near-tie 0.1": {"near_tie": 0.1},
    "--rotate word": {"rotate": "word"}, "--pareto": {"pareto": True}, "--top 3": {"top": 3},
    "--level 0.5": {"level": 0.5},
    "--frequencies 1800,2400": {"frequencies": [1800.0, 2400.0]}, "--max-slowdown 0.5": {"max_slowdown": 0.5},
    "--power-cap 300": {"power_cap": 300.0}, "--threads 2": {"threads": 2},
    "--processes-per-node 2": {"processes_per_node": 2}, "--parameter steps=5": {"parameters": {"steps": 5.0}},
}  # fmt: skip


def test_every_demand_on_a_ranking_reaches_the_daemon(files, capsys, monkeypatch) -> None:
    asked: list[dict[str, object]] = []

    def refuse(config: object, url: object, method: str, path: str, document: dict[str, object]) -> object:
        assert (method, path) == ("POST", "/v1/rankings")
        asked.append(json.loads(json.dumps(document)))
        raise InputError("enough")

    monkeypatch.setattr(given, "ask_daemon", refuse)
    for words in ("", *EVERYTHING):
        assert call(capsys, "rank", "--application", "cg", "--problem-size", "9", *words.split())[0] == 2
    usual, *changed = asked
    assert usual["forecast"] is True
    for document, (words, fields) in zip(changed, EVERYTHING.items(), strict=True):
        differs = {name: value for name, value in document.items() if usual.get(name, ...) != value}
        assert differs == fields, words
        assert RankIn.model_validate(document).model_dump(include=set(fields), mode="json") == fields, words


def test_whatif_asks_the_daemon_before_and_after_the_change(files, capsys, monkeypatch) -> None:
    asked: list[dict[str, object]] = []
    answer = ranked(capsys, "--application", "cg", "--model", "cg.json")

    def answered(config: object, url: object, method: str, path: str, document: dict[str, object]) -> object:
        asked.append(RankIn.model_validate(document).model_dump(exclude_unset=True, mode="json"))
        return answer

    monkeypatch.setattr(given, "ask_daemon", answered)
    options = "--drain e[1-2] --times 3 --processors 2,4 --least-efficiency 0.25 --level 0.8 --threads 2"
    assert call(capsys, "whatif", "--application", "cg", "--problem-size", "9", *options.split())[0] == 0
    before, after = asked
    assert (before["problem_size"], before["least_efficiency"], before["level"], before["threads"]) == (9, 0.25, 0.8, 2)
    changes = {"problem_size": 27.0, "drain": "e[1-2]", "processors": [2, 4]}
    assert after == before | changes


def test_whatif_says_that_draining_gains_nothing(files, capsys, monkeypatch) -> None:
    asked = "--application", "cg", "--model", "cg.json"
    answers = [ranked(capsys, *asked, "--processors", count) for count in ("1", "4")]  # the loads changed meanwhile
    monkeypatch.setattr(given, "ask_daemon", lambda *_: answers.pop(0))
    out = call(capsys, "whatif", "--application", "cg", "--problem-size", "2000", "--drain", "e2", "--json")[1]
    answer = json.loads(out)
    assert answer["change"] < 0
    assert answer["warnings"][-1].endswith(
        "is no gain by draining: the loads that count changed between both answers "
        "or with them that placement is below --least-efficiency"
    )


def test_whatif_says_why_nothing_is_left(files, capsys) -> None:
    options = ["--problem-size", "2000", "--clusters", "clusters.toml", "--model", "cg.json"]
    status, out, err = call(capsys, "whatif", "--application", "cg", *options, "--drain", "e[1-4],w[1-4]", "--json")
    assert status == 1
    assert "no feasible resource set" in json.loads(out)["why"]
    assert "4 ruled out (down, drained or reserved)" in err


def test_one_placement_of_many_is_not_called_the_only_one(files, capsys) -> None:
    asked = "--application", "cg", "--model", "cg.json", "--top", "1"
    (best,) = ranked(capsys, *asked)["placements"]
    assert "resource sets compared" in best["reason"]
    (best,) = ranked(capsys, *asked, "--processors", "1", "--exclude", "e[2-4],w[1-4]")["placements"]
    assert best["reason"] == "the best resource set of 1 processor"


def test_live_loads_come_from_prometheus_without_a_daemon(files, capsys) -> None:
    now = time.time()
    nodes = {f"e{number}": {"idle": 0.0, "processors": 2.0, "runnable": 9.0, "time": now} for number in (1, 2, 3, 4)}
    nodes["e4"] = {"idle": 2.0, "processors": 2.0, "runnable": 1.0, "time": now, "spare": 700e6 / 8}
    options = ("--model", "cg.json", "--processors", "2", "--cluster", "east", "--top", "1")
    described = ranked(capsys, *options)["placements"][0]
    with serving(prometheus(nodes)) as url:
        (files / "live.toml").write_text(f'[[source]]\nkind = "prometheus"\nurl = "{url}"\nbandwidth = 900.0\n')
        answer = ranked(capsys, *options, "--source", "live.toml")
        (files / "clusters.toml").write_text(CLUSTERS + (files / "live.toml").read_text())
        again = ranked(capsys, *options)
    live = answer["placements"][0]
    assert (described["nodes"], live["nodes"]) == (["e1"], ["e4"])
    assert live["available_cpu"] == 1.0
    assert answer["warnings"] == []
    assert again["placements"] == answer["placements"]


def test_a_source_that_does_not_answer_is_a_warning(files, capsys) -> None:
    (files / "live.toml").write_text('[[source]]\nkind = "agent"\nurl = "http://127.0.0.1:9"\nname = "n1"\n')
    status, _, err = run(capsys, "--application", "cg", "--model", "cg.json", "--source", "live.toml")
    assert status == 0
    assert "warning: n1: " in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--source", "nothing.toml"), "nothing.toml"),
        (("--source", "clusters.toml"), "source is missing"),
        (("--source", "clusters.toml", "--loads", "store"), "both --loads and --source are given"),
    ],
)
def test_a_wrong_source_is_refused(files, capsys, options: tuple[str, ...], message: str) -> None:
    assert message in refusal(run(capsys, "--application", "cg", "--model", "cg.json", *options))


def test_whatif_tells_the_chance_of_a_job_that_others_slow_down(files, capsys) -> None:
    busy = '[[cluster]]\nname = "busy"\nnodes = [{ names = "b[0-1]", available_bandwidth = 90.0 }]\n'
    busy += '[[cluster.running]]\nnodes = "b[0-1]"\ncomputation = 1e6\ncommunication = 1e5\n'
    Path("busy.toml").write_text(busy)
    status, out, _ = call(
        capsys, "whatif", "--application", "cg", "--problem-size", "2000", "--clusters", "busy.toml",
        "--model", "cg.json", "--node-mttf", "1e4", "--json",
    )  # fmt: skip
    assert status == 0
    found = json.loads(out)
    assert found["after"]["slowdown"] > 1.3
    assert found["failures"]["success"]["value"] == pytest.approx(found["after"]["success"])
    assert found["failures"]["expected_completion"] > found["after"]["completion"]


def test_whatif_tells_the_chance_to_finish_and_what_checkpoints_bring(files, capsys) -> None:
    options = ["--problem-size", "2000", "--clusters", "clusters.toml", "--model", "cg.json"]

    def answer(*more: str) -> dict:
        status, out, _ = call(capsys, "whatif", "--application", "cg", *options, *more, "--json")
        assert status == 0
        return json.loads(out)

    calm = answer()
    assert "failures" not in calm
    best = calm["after"]
    nodes, time = len({*best["nodes"]}), best["execution_time"]
    both = answer("--node-mttf", str(10 * time), "--checkpoint", "0.01", "--times", "2")
    lengths = {name: both[name]["execution_time"] * len({*both[name]["nodes"]}) for name in ("before", "after")}
    for name, length in lengths.items():
        assert both[name]["success"] == pytest.approx(np.exp(-length / (10 * time)))
    assert both["failures"]["success"]["value"] == pytest.approx(both["after"]["success"])
    assert "success" not in calm["before"]
    struck = answer("--node-mttf", str(10 * time), "--checkpoint", "0.01")["failures"]
    rate = nodes / (10 * time)
    assert struck["nodes"] == nodes
    assert struck["success"]["value"] == pytest.approx(np.exp(-rate * time))
    assert struck["expected_completion"] == pytest.approx(np.expm1(rate * time) / rate)
    assert struck["checkpoint"]["young"] == pytest.approx(np.sqrt(2 * 0.01 / rate))
    assert struck["checkpoint"]["exact"] < struck["checkpoint"]["young"]
    assert time < struck["checkpoint"]["expected_completion"] < struck["expected_completion"]
    # the more often nodes fail, the fewer of them finish first
    often = answer("--node-mttf", str(time / 10))["failures"]
    out = call(capsys, "whatif", "--application", "cg", *options, "--node-mttf", str(time / 1000))[1]
    assert "expected completion with restarts from scratch: never\n" in out
    assert out.endswith("first to finish: none\n")
    out = call(
        capsys, "whatif", "--application", "cg", *options, "--node-mttf", str(10 * time), "--checkpoint", str(time)
    )[1]
    assert f"no checkpoint of {time:g} s makes it end sooner (of a long job every " in out
    assert (often["fastest"], often["checkpoint"]) == (1, None)
    assert struck["fastest"] > 1


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--node-mttf", "0"], "--node-mttf is 0, expected seconds from 0.001 to 1e+15"),
        (["--node-mttf", "1e-300"], "--node-mttf is 1e-300, expected seconds from 0.001 to 1e+15"),
        (["--node-mttf", "1e9", "--checkpoint", "-3"], "--checkpoint is -3, expected seconds from 1e-06 to 1e+09"),
        (["--node-mttf", "1", "--checkpoint", "1e300"], "--checkpoint is 1e+300, expected seconds from 1e-06 to 1e+09"),
        (["--checkpoint", "nan"], "--checkpoint is nan, expected seconds from 1e-06 to 1e+09"),
    ],
)
def test_whatif_refuses_failures_that_cannot_be(files, capsys, options: list[str], expected: str) -> None:
    asked = ["--application", "cg", "--problem-size", "2000", "--clusters", "clusters.toml", "--model", "cg.json"]
    assert expected in refusal(call(capsys, "whatif", *asked, *options))


@pytest.mark.parametrize(
    ("gap", "said"),
    [(0.0, ""), (1e-12, ""), (4e-4, ""), (5e-4, "at most 0.1%"), (0.25, "at most 25.0%"), (None, "at most inf%")],
)
def test_how_far_the_best_may_be_from_the_optimum_is_said_where_it_shows(gap, said, capsys) -> None:
    chosen = {
        "cluster": "east", "nodes": ["e1"], "processors": 2, "available_cpu": 0.9, "available_bandwidth": 90.0,
    }  # fmt: skip
    placement = {
        **chosen, "rank": 1, "execution_time": 9.0, "interval": {"low": 8.0, "high": 10.0, "level": 0.9}, "model": "m",
        "warnings": [], "queue_wait": 0.0, "slowdown": 1.0, "completion": 9.0, "costs": {}, "reason": "best",
    }  # fmt: skip
    answer = {"application": "cg", "problem_size": 1.0, "placements": [placement], "gap": gap}
    rankings.show(rankings.read(answer, where="answer"))
    out = capsys.readouterr().out
    assert ("not proven optimal" in out) is bool(said)
    assert said in out
