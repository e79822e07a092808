"""What OAR's commands print becomes partitions, jobs and outcomes; the real server is in tests/system/test_oar.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.schedulers.oar import submission
from metasched.schedulers.oar.source import OarSource
from metasched.service.configuration import Configuration
from metasched.service.sources import sources
from tests.schedulers.oar_answers import FILES, OARSTAT, STARTED, SUBMITTED, job


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the commands."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for name, body in (("oarnodes", 'cat "$0.sound"'), ("oarstat", OARSTAT)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


SOURCE = OarSource("c", property="cluster")


def test_values_of_the_property_are_partitions_with_the_processors_that_no_job_holds(server: Path) -> None:
    new, old = SOURCE.partitions()
    assert (new.name, new.state.nodes, new.state.processors.tolist()) == ("new", ("n3", "n4", "n5"), [0, 1, 0])
    assert (new.state.up.tolist(), new.releases) == ([True, True, False], False)
    assert (old.name, old.state.nodes, old.state.processors.tolist()) == ("old", ("n1", "n2"), [2, 2])
    assert (new.total, old.total) == (4, 4)
    (one,) = OarSource("c").partitions()
    assert (one.name, one.state.nodes) == ("default", ("n1", "n2", "n3", "n4", "n5"))


def test_jobs_run_on_their_nodes_and_wait(server: Path) -> None:
    runs, waits, held = SOURCE.queue()
    assert (runs.number, runs.nodes, runs.processors, runs.started) == ("7", ("n3", "n4"), 3, STARTED)
    assert (waits.limit, waits.ready, waits.submitted, waits.processors) == (7200.0, True, SUBMITTED, 3)
    assert (waits.partitions, held.partitions) == ({"new"}, {"new", "old"})
    assert (held.ready, held.limit, held.processors, held.name) == (False, 120.0, 2, "cg-9")
    (started,) = SOURCE.running()
    assert (started.processors, started.application, started.problem_size) == ((2, 1), "cg", 500.0)


def test_without_jobs_oarstat_prints_nothing(server: Path) -> None:
    (server / "oarstat.jobs").write_text("")
    assert [each.state.processors.tolist() for each in SOURCE.partitions()] == [[2, 2, 0], [2, 2]]
    assert (SOURCE.queue(), SOURCE.running(), SOURCE.bound()) == ([], [], [])


def test_fates_and_finished_jobs_come_from_the_jobs_that_ended(server: Path) -> None:
    fates = SOURCE.fates({"3", "4", "5", "7", "99"})
    assert {number: fate.completed for number, fate in fates.items()} == {"3": True, "4": False, "7": None}
    three, four, six = SOURCE.finished(0.0)
    assert (three.nodes, three.processors, three.end - three.start) == (("n3", "n4"), 3, 50.0)
    assert (three.partition, three.comment, three.submitted) == ("new", "metasched:app=cg,n=500", SUBMITTED)
    assert [each.exit_status for each in (three, four, six)] == [0, 1, 1]
    assert len(SOURCE.finished(STARTED + 6.0)) == 2
    assert (four.numbers, fates["4"].numbers) == ("-n=400", "-n=400")


@pytest.mark.parametrize(
    "forged",
    [7, {"Job_Id": 7}, job(-1, "Waiting"), job(7, "Running", assigned_resources=["n1"]), job(7, "Waiting", owner=7)],
    ids=lambda forged: str(forged)[:40],
)
def test_jobs_that_are_none_are_one_clear_error(forged: Any, server: Path) -> None:
    wrong = {"7": forged, "8": job(-8, "Waiting")}
    (server / "oarstat.jobs").write_text(json.dumps(wrong))
    with pytest.raises(RuntimeError, match="oarstat -f -J prints unexpected output: "):
        SOURCE.queue()


def test_the_configuration_names_servers() -> None:
    (found,) = sources(Configuration.model_validate({"oar": [{"name": "c", "property": "cluster"}]}))
    handed = found.submission(["-l", "core=2", "./cg.sh"], "new")
    assert handed.words == ("oarsub", "-l", "core=2", "-p", "cluster = 'new'", "./cg.sh")
    assert OarSource("c").submission(["./cg.sh"], "default").words == ("oarsub", "./cg.sh")
    with pytest.raises(ValueError, match="property"):
        Configuration.model_validate({"oar": [{"name": "c", "property": "x' OR 'a"}]})


@pytest.mark.parametrize(
    ("words", "handed"),
    [
        (["-pa='1'", "c"], ["-p(a='1') AND cluster = 'new'", "c"]),
        (["--property=a='1'", "c"], ["--property=(a='1') AND cluster = 'new'", "c"]),
        (["--property", "a='1'", "c"], ["--property", "(a='1') AND cluster = 'new'", "c"]),
        (["-S", "c", "-p", "x"], ["-S", "-p", "cluster = 'new'", "c", "-p", "x"]),
    ],
)
def test_a_partition_is_put_beside_the_condition_that_is_there(words: list[str], handed: list[str]) -> None:
    assert submission.placed(words, "new", "cluster") == handed


WORD = st.text("abz-=,./' $;\np", min_size=0, max_size=8)


@given(st.lists(WORD, max_size=6))
def test_no_words_are_too_strange_and_what_names_no_partition_is_left_out(words: list[str]) -> None:
    assert submission.asked_for(words, "cluster").processors >= 1
    assert submission.placed(words, "new' OR 'a'='a", "cluster") == words
    place = submission.options(words)[1]
    assert submission.placed(words, "new", "cluster")[-(len(words) - place) or len(words) + 2 :] == words[place:]


def test_a_job_is_placed_only_by_a_property_that_tells_partitions_apart() -> None:
    words = ["-l", "core=4", "./cg.sh"]
    assert submission.placed(words, "new", "") == words
    assert submission.placed(words, "a'b", "cluster") == words
    assert submission.placed(words, "new", "cluster") != words
