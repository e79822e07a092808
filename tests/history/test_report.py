"""The report of a job log: what it counts, and that it comes out whatever the log holds."""

from __future__ import annotations

import json
import re
import tomllib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from command_line import call

from benchmarks.replay.made_log import as_csv, made_log
from metasched.history.job_log import JobLog
from metasched.history.log_formats import read_log
from metasched.history.report import annotate, report, requests, waits, what_if
from metasched.service.configuration import Configuration

HOSTILE = "<script>alert(1)</script>[red]"


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return call(capsys, "history", *arguments)


#: Makes names of numbers differ by letters.
LETTERS = str.maketrans("0123456789", "ghijklmnop")


def test_who_waits_though_processors_are_free_is_told_from_who_waits_for_them() -> None:
    ones = np.ones(3)
    # The second waits 50 s for processors, the third 40 s although one is free.
    log = JobLog(
        np.array([0.0, 50.0, 60.0]), np.array([100.0, 20.0, 5.0]), np.array([3, 4, 1]), 100 * ones,
        np.array([0.0, 50.0, 40.0]),
    )  # fmt: skip
    found = waits(log, 4)
    assert found["mean"] == 30.0
    assert found["though_free"] == pytest.approx(40 / 90)
    assert [each["jobs"] for each in found["by_processors"]] == [1, 2, 0, 0, 0]


def test_what_was_asked_for_and_used_is_told_by_user() -> None:
    lines = ["submit_time,run_time,processors,requested_time,user,state", "0,3600,2,7200,ada,COMPLETED",
             "1,3600,1,3600,bob,TIMEOUT", "2,1,1,3600,bob,FAILED"]  # fmt: skip
    found = requests(read_log(lines))
    ada, bob = found["by_user"]
    assert (ada["user"], ada["used_hours"]) == ("ada", 2.0)
    assert (bob["jobs"], bob["at_limit"], bob["failed"]) == (2, 0.5, 0.5)


def test_better_limits_and_orders_are_replayed() -> None:
    found = what_if(made_log(800, seed=5, load=0.9), 64, lambda steps, total: steps, 800)
    assert len(found) == 5
    assert found[-1]["avebsld"] <= found[0]["avebsld"]


def test_applications_whose_run_times_differ_are_worth_annotating_and_a_telling_number_is_found() -> None:
    draw = np.random.default_rng(2)
    sizes = draw.integers(100, 2000, 60)
    rows = [f"{n},{size * 2},4,9000,ada,solve_{size}" for n, size in enumerate(sizes)]
    rows += [f"{100 + n},600,4,9000,ada,steady" for n in range(60)]
    found = annotate(read_log(["submit_time,run_time,processors,requested_time,user,name", *rows]))
    assert [each["application"] for each in found] == ["solve_#"]
    (size,) = found[0]["problem_sizes"]
    assert (size["name"], size["place"], size["explains"]) == ("solve_#", "1", pytest.approx(1.0))
    confirmed = Configuration.model_validate(tomllib.loads(size["configuration"])).problem_size
    assert [(each.name, each.place, each.application) for each in confirmed] == [("solve_#", "1", "solve")]


def test_a_telling_number_is_found_in_arguments_and_confirmed_where_it_stands() -> None:
    sizes = np.random.default_rng(2).integers(100, 2000, 60)
    rows = [f"{n},{size * 2},4,9000,ada,run.sh,in.dat -s {n % 5} --size={size}" for n, size in enumerate(sizes)]
    (found,) = annotate(read_log(["submit_time,run_time,processors,requested_time,user,name,arguments", *rows]))
    (size,) = found["problem_sizes"]
    assert (size["name"], size["place"], size["explains"]) == ("run.sh", "--size", pytest.approx(1.0))
    confirmed = Configuration.model_validate(tomllib.loads(size["configuration"])).problem_size
    assert [(each.name, each.place, each.application) for each in confirmed] == [("run.sh", "--size", "run.sh")]


@pytest.mark.parametrize(
    ("name", "application"),
    [("cg-20240101-n{}-run7", "cg-n-run"), ("lu_{}_p4", "lu-p"), ("{}", "application"), ("a+b.out {}", "a+b.out")],
)
def test_an_application_is_called_by_what_its_names_have_in_common(name: str, application: str) -> None:
    rows = [f"{size},{size},1,9000,ada,{name.format(size)}" for size in range(100, 1100, 25)]
    (found,) = annotate(read_log(["submit_time,run_time,processors,requested_time,user,name", *rows]))
    assert tomllib.loads(found["problem_sizes"][0]["configuration"])["problem_size"][0]["application"] == application


def test_what_was_learned_from_older_jobs_counts_in_the_replay_of_the_newest() -> None:
    """Short jobs of one user and long ones of another, with the same limit, wait for one processor for a day."""
    rows = [f"{1000 * n},{(30, 900)[n % 2]},1,1800,{('ada', 'bob')[n % 2]}" for n in range(200)]
    rows += ["300000,90000,2,90000,eve", "300001,9,3,60,eve"]
    rows += [f"300002,{(900, 30)[n // 49]},1,1800,{('bob', 'ada')[n // 49]}" for n in range(98)]
    log = read_log(["submit_time,run_time,processors,requested_time,user", *rows])
    as_asked, _, by_requests, by_predictions, known = (
        case["mean_wait"] for case in report(log, 3, replayed=100)["what_if"]
    )
    assert by_predictions == pytest.approx(known, rel=0.01)
    assert known < 0.7 * by_requests <= 0.7 * as_asked


def test_a_log_that_says_next_to_nothing_has_a_report() -> None:
    found = report(read_log(["submit_time,run_time,processors", "5,0,1"]), 1)
    assert (found["waits"], found["annotate"], found["requests"]["used_share"]) == (None, [], None)
    assert found["users"] == 0


def test_one_long_name_makes_no_other_take_more_memory() -> None:
    rows = [f"{n},9,1,60,user{n % 7},a{n % 5}.out,FAILED" for n in range(20_000)]
    rows[7] = f"7,9,1,60,{1000 * 'u'},{1000 * 'x'},{1000 * 'S'}"
    log = read_log(["submit_time,run_time,processors,requested_time,user,executable,state", *rows])
    tracemalloc.start()
    found = requests(log)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [each["jobs"] for each in found["by_user"]] == [*[2857] * 7, 1]
    assert most < 40e6  # 80 MB would be an array of twenty thousand names of 1,000 characters


def test_who_waits_is_told_although_the_waits_of_a_few_jobs_are_unknown() -> None:
    rows = [f"{100 * n},9,1,60,{n % 3}" for n in range(20)]
    for unknown, known in ((2, True), (3, False)):
        torn = [row.rpartition(",")[0] + "," for row in rows[:unknown]]
        log = read_log(["submit_time,run_time,processors,requested_time,wait", *torn, *rows[unknown:]])
        told = report(log, 4)["waits"]
        assert (told is not None) == known
        if told is not None:
            assert told["mean"] == pytest.approx(np.nanmean(log.wait))
            assert told["by_processors"][0]["jobs"] == 18


def test_users_are_counted_without_jobs_that_name_none() -> None:
    rows = ["submit_time,run_time,processors,user", "5,1,1,ada", "6,1,1,", "7,1,1,bob", "8,1,1,ada"]
    assert report(read_log(rows), 1)["users"] == 2


def test_among_a_hundred_thousand_names_the_most_frequent_stem_is_looked_into() -> None:
    """Each name is counted once: to count them for each would take hours."""
    jobs = [(f"{chr(97 + n % 26)}{n:x}x".translate(LETTERS), 60.0 + 7919 * n % 5000) for n in range(100_000)]
    jobs += [(f"run_{size}", 0.5 * size) for size in range(100, 1100, 25)]
    rows = [f"{n},{run:.0f},4,86400,ada,{name},a.out" for n, (name, run) in enumerate(jobs)]
    (found,) = annotate(read_log(["submit_time,run_time,processors,requested_time,user,name,executable", *rows]))
    assert (found["application"], found["jobs"], found["problem_sizes"][0]["name"]) == ("a.out", 100_040, "run_#")


def test_the_page_stands_alone_and_nothing_in_it_comes_alive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.csv"
    log.write_text(as_csv(made_log(300, seed=1)).replace("user3", HOSTILE))
    page = tmp_path / "report.html"
    status, said, _ = _run(capsys, "report", str(log), "--html", str(page))
    assert status == 0
    assert "alert(1)" in said
    text = page.read_text()
    assert "<script" not in text
    assert HOSTILE.replace("<", "&lt;").replace(">", "&gt;") in text
    assert len(re.findall(r'src="data:image/png;base64,', text)) == len(re.findall("<img", text)) >= 2


def test_what_was_imported_is_reported_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, database = tmp_path / "log.csv", str(tmp_path / "site.db")
    log.write_text(as_csv(made_log(300, seed=1)))
    assert _run(capsys, "import", str(log), "--database", database)[0] == 0
    document = json.loads(_run(capsys, "report", "--from-store", "--database", database, "--json")[1])
    same = json.loads(_run(capsys, "report", str(log), "--json")[1])
    assert document["requests"]["used_hours"] == pytest.approx(same["requests"]["used_hours"])
    assert _run(capsys, "report")[0] == 2
    assert _run(capsys, "report", str(log), "--from-store")[0] == 2
    assert _run(capsys, "import", str(log), "--database", database, "--cluster", "other")[0] == 0
    said = _run(capsys, "report", "--from-store", "--database", database)[2]
    assert said == "metasched: --cluster: there are jobs of several clusters, expected one of '', 'other'\n"
    status, _, said = _run(capsys, "report", "--from-store", "--database", database, "--cluster", "c9")
    assert (status, said) == (2, "metasched: --cluster: no jobs of c9 are known, expected one of '', 'other'\n")


def test_waits_are_listed_by_classes_of_processors_and_requested_times() -> None:
    widths, limits = np.array([1, 2, 8, 9, 64, 65, 512, 513]), np.array([3600, 3601, 21600, 21601, 86400, 86401, 9, 9])
    log = JobLog(
        np.arange(8) * 1e6, np.full(8, 5.0), widths, limits.astype(float), 2.0 ** np.arange(8),
    )  # fmt: skip
    found = waits(log, 1000)
    assert [each["jobs"] for each in found["by_processors"]] == [1, 2, 2, 2, 1]
    assert [each["jobs"] for each in found["by_requested_time"]] == [3, 2, 2, 1]
    assert [round(each["mean"], 3) for each in found["by_processors"]] == [1.0, 3.0, 12.0, 48.0, 128.0]


def test_a_report_says_nothing_of_requests_where_the_log_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.csv"
    log.write_text("submit_time,run_time,processors,user\n0,3600,2,ada\n5,60,2,bob\n")
    status, said, _ = _run(capsys, "report", str(log))
    assert status == 0
    assert said.startswith("2 jobs of 2 users on 3 processors, over 0 days.\n")
    assert [line.split() for line in said.splitlines() if " ada " in line] == [["ada", "1", "2", "-", "-", "-", "-"]]
    told = report(read_log([*log.read_text().splitlines(), "9,60,1,"]), 4)["requests"]
    assert (told["requested_hours"], told["at_limit"]) == (None, None)
    states = report(read_log(["submit_time,run_time,processors,state", "0,9,1,TIMEOUT", "9,9,1,COMPLETED"]), 4)
    assert states["requests"]["at_limit"] == 0.5


def test_users_are_listed_by_how_long_their_jobs_waited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.csv"
    rows = ["0,60,1,60,ada,0", "9,60,1,60,bob,7200", "19,60,1,60,ada,600", "29,3600,1,60,ada,600"]
    log.write_text("\n".join(["submit_time,run_time,processors,requested_time,user,wait", *rows, ""]))
    said = _run(capsys, "report", str(log), "--html", str(tmp_path / "r.html"))[1]
    listed = said.partition("Waits, by user")[2].partition("replayed")[0].splitlines()
    found = [line.split() for line in listed if line.split()[:1] in (["ada"], ["bob"])]
    assert found == [["bob", "1", "2.0", "h", "2.0", "h"], ["ada", "3", "400", "s", "20.0", "min"]]
    assert "<h2>Waits, by user</h2>" in (tmp_path / "r.html").read_text()
    assert json.loads(_run(capsys, "report", str(log), "--json")[1])["until"] == 9 + 7200 + 60
