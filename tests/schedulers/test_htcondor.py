"""What HTCondor's commands print becomes partitions, jobs and outcomes; no pool was ever run: they are scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metasched.schedulers.htcondor.source import HTCondorSource
from metasched.schedulers.htcondor.submission import asked_for
from metasched.service.configuration import Configuration
from metasched.service.sources import sources
from tests.schedulers.htcondor_answers import ENDED, PRINTED, RAN, RUNS, STARTED, SUBMITTED, job, slot


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the commands."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for name, text in PRINTED.items():
        (tmp_path / f"{name}.sound").write_text(text)
        (tmp_path / name).write_text('#!/bin/sh\ncat "$0.sound"\n')
        (tmp_path / name).chmod(0o755)
    return tmp_path


SOURCE = HTCondorSource("c")


def test_machines_are_partitions_by_what_their_ads_say(pool: Path) -> None:
    plain, new = SOURCE.partitions()
    assert (plain.name, plain.state.nodes, plain.state.processors.tolist()) == ("pool", ("n1", "n2"), [1, 4])
    assert (plain.state.up.tolist(), plain.state.memory.tolist()) == ([True, False], [16_000.0] * 2)
    assert (new.name, new.state.nodes, new.releases, new.time_limit) == ("new", ("n3", "n4"), False, None)
    assert (plain.total, new.total) == (4, 8)
    with pytest.raises(RuntimeError, match="no partition gpu, expected one of new, pool"):
        HTCondorSource("c", ["gpu"]).partitions()


def test_jobs_run_on_their_machine_and_wait(pool: Path) -> None:
    runs, waits, held = SOURCE.queue()
    assert (runs.number, runs.nodes, runs.processors, runs.started, runs.name) == ("7.0", ("n1",), 3, STARTED, "cg")
    assert (waits.limit, waits.ready, waits.submitted, held.ready) == (600.0, True, SUBMITTED, False)
    (started,) = SOURCE.running()
    assert (started.application, started.problem_size, started.processors) == ("cg", 1400.0, (3,))
    assert started.number == runs.number
    assert SOURCE.bound() == []


def test_fates_and_finished_jobs_come_from_the_history(pool: Path) -> None:
    fates = SOURCE.fates({"3.0", "4.2", "7.0", "99.0"})
    assert {number: fate.completed for number, fate in fates.items()} == {"3.0": True, "4.2": False, "7.0": None}
    three, four = SOURCE.finished(0.0)
    assert (three.nodes, three.end - three.start, three.comment) == (("n1",), 50.0, "metasched:app=cg,n=1400")
    assert (four.exit_status, four.kind, three.exit_status, three.kind) == (137, "array", 0, "")


def test_a_job_that_was_suspended_is_interrupted(pool: Path) -> None:
    suspended = [job(3, 4, **RAN, ExitCode=0, CumulativeSuspensionTime=at) for at in (0, 30)]
    (pool / "condor_history.sound").write_text(json.dumps(suspended))
    assert [each.kind for each in SOURCE.finished(0.0)] == ["", "interrupted"]


def test_without_jobs_and_machines_the_lists_are_empty_though_nothing_is_printed(pool: Path) -> None:
    for name in PRINTED:
        (pool / f"{name}.sound").write_text("")
    assert (SOURCE.partitions(), SOURCE.queue(), SOURCE.finished(0.0)) == ([], [], [])


@pytest.mark.parametrize("forged", [slot("--x"), slot("n1", cpus=-1), {"Machine": "n1"}, 7], ids=str)
def test_machines_that_are_none_are_one_clear_error(forged: object, pool: Path) -> None:
    (pool / "condor_status.sound").write_text(json.dumps([forged]))
    with pytest.raises(RuntimeError, match=r"condor_status .* prints unexpected output: "):
        SOURCE.partitions()


def test_an_expression_for_the_processors_counts_as_one(pool: Path) -> None:
    (pool / "condor_q.sound").write_text(json.dumps([job(7, 1, RequestCpus="max({1,2})")]))
    assert SOURCE.queue()[0].processors == 1


def test_what_a_description_asks_for_and_words_go_over_it(tmp_path: Path) -> None:
    description = tmp_path / "job.sub"
    description.write_text('executable = cg\nrequest_cpus = 8\nMy.Metasched = "app=cg,n=1400"\nqueue\n')
    asked = SOURCE.asked([str(description)])
    assert asked.mark is not None
    assert (asked.mark.application, asked.processors, asked.partitions) == ("cg", 8, ())
    assert SOURCE.asked(["request_cpus=4", str(description)]).processors == 4
    assert SOURCE.asked([str(description), "-append", '+MetaschedPartition = "new"']).partitions == ("new",)


def test_the_configuration_names_pools() -> None:
    (found,) = sources(Configuration.model_validate({"htcondor": [{"name": "c", "pool": "head"}]}))
    handed = found.submission(["job.sub"], "new")
    assert handed.environment == {"_CONDOR_COLLECTOR_HOST": "head"}
    assert handed.words == ("condor_submit", "-append", '+MetaschedPartition = "new"', "job.sub")


def test_options_that_stand_alone_are_followed_by_no_value() -> None:
    words = ["-verbose", "-name", "there", "-spool", "cg.sub", '+Metasched = "app=cg,n=9"', "request_cpus=3"]
    assert asked_for(words).processors == 3
    for alone in ("-verbose", "-spool", "-terse"):
        assert asked_for([alone, "request_cpus=3"]).processors == 3
    assert asked_for(["-name", "request_cpus=3"]).processors == 1


@pytest.mark.parametrize(
    "chosen",
    [
        {"RequestCpus": -1},
        {"RequestCpus": 10**30},
        {"RequestCpus": [1]},
        {"RemoteHost": "a b", "LastRemoteHost": {"a": 1}},
        {"ExitBySignal": "yes", "ExitSignal": "x"},
        {"ExitBySignal": False, "ExitCode": "no"},
        {"AllowedJobDuration": "long", "JobBatchName": None, "Cmd": 7, "Metasched": ["app=cg"]},
    ],
    ids=str,
)
def test_attributes_that_one_user_chose_do_not_hide_the_jobs_of_all(chosen: dict[str, object], pool: Path) -> None:
    (pool / "condor_q.sound").write_text(json.dumps([job(6, 2, **RUNS | chosen), job(7, 2, **RUNS)]))
    (pool / "condor_history.sound").write_text(json.dumps([job(2, 4, **RAN | chosen), ENDED[0]]))
    assert [each.number for each in SOURCE.queue()] == ["6.0", "7.0"]
    assert SOURCE.queue()[0].processors == (1 if "RequestCpus" in chosen else 3)
    assert SOURCE.fates({"3.0"})["3.0"].completed
    assert SOURCE.finished(0.0)[-1].job == "3.0"


def test_a_list_within_lists_is_no_trap(pool: Path) -> None:
    deep = json.dumps([job(7, 2, **RUNS), job(8, 1)]).replace('"app=cg,n=1400"', f"{'[' * 9000}{']' * 9000}", 1)
    (pool / "condor_q.sound").write_text(deep)
    assert [each.number for each in SOURCE.queue()] == ["7.0", "8.0"]
    assert [each.application for each in SOURCE.running()] == [""]
