"""What Flux's commands print becomes partitions, jobs and outcomes; no instance was ever run: it is a script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metasched.schedulers.flux.listing import cores
from metasched.schedulers.flux.source import FluxSource
from metasched.schedulers.flux.submission import asked_for
from metasched.schedulers.submission import JobRequest
from metasched.service.configuration import Configuration
from metasched.service.sources import sources
from tests.schedulers.flux_answers import FILES, FLUX, STARTED, SUBMITTED, job, resources


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the command."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "flux").write_text(f"#!/bin/sh\n{FLUX}\n")
    (tmp_path / "flux").chmod(0o755)
    return tmp_path


SOURCE = FluxSource("c")


def test_queues_are_partitions_with_the_free_cores_of_nodes_with_their_properties(instance: Path) -> None:
    new, old = SOURCE.partitions()
    assert (new.name, new.state.nodes, new.state.processors.tolist()) == ("new", ("n1", "n2"), [3, 3])
    assert (old.state.nodes, old.state.processors.tolist()) == (("n1", "n2", "n3"), [3, 3, 0])
    assert (old.state.up.tolist(), old.releases) == ([True, True, False], False)
    assert (new.total, old.total) == (8, 8)  # processors of what is down do not count
    (instance / "flux.queues").write_text("{}")
    (one,) = SOURCE.partitions()
    assert (one.name, one.state.nodes) == ("default", ("n1", "n2", "n3"))


def test_jobs_run_on_their_nodes_and_wait(instance: Path) -> None:
    runs, waits, held = SOURCE.queue()
    assert (runs.number, runs.nodes, runs.processors, runs.started) == ("7", ("n1", "n2"), 3, STARTED)
    assert (waits.limit, waits.ready, waits.submitted, held.ready) == (600.0, True, SUBMITTED, False)
    assert [each.processors for each in SOURCE.running()] == [(2, 1)]


def test_ranks_of_any_height_are_read_and_too_many_refused(instance: Path) -> None:
    (instance / "flux.all").write_text(resources("40-42", "n[1-3]"))
    (instance / "flux.free").write_text(resources("41", "n2", "1-2"))
    (instance / "flux.down").write_text(resources("", ""))
    (instance / "flux.queues").write_text("{}")
    (one,) = SOURCE.partitions()
    assert (one.state.nodes, one.state.processors.tolist()) == (("n1", "n2", "n3"), [0, 2, 0])
    (instance / "flux.all").write_text(resources("0-10000001", "n[1-3]"))
    with pytest.raises(RuntimeError, match="prints unexpected output: "):
        SOURCE.partitions()


def test_fates_and_finished_jobs_come_from_the_jobs_that_ended(instance: Path) -> None:
    fates = SOURCE.fates({"3", "4", "7", "99"})
    assert {number: fate.completed for number, fate in fates.items()} == {"3": True, "4": False, "7": None}
    three, four = SOURCE.finished(0.0)
    assert (three.nodes, three.end - three.start, three.user, three.name) == (("n1", "n2"), 50.0, "1000", "cg")
    assert (three.submitted, four.exit_status) == (SUBMITTED, 137)


@pytest.mark.parametrize(
    "forged",
    [job("--x", "SCHED"), job(7, "RUN", nodelist="n[1-99999999999]"), 7, {"id": 7}],
    ids=str,  # type: ignore[arg-type]
)
def test_jobs_that_are_none_are_one_clear_error(forged: object, instance: Path) -> None:
    (instance / "flux.jobs").write_text(json.dumps({"jobs": [forged]}))
    with pytest.raises(RuntimeError, match="flux jobs -A --json prints unexpected output: "):
        SOURCE.queue()


def test_the_configuration_names_instances() -> None:
    (found,) = sources(Configuration.model_validate({"flux": [{"name": "c", "uri": "local:///run/flux/local"}]}))
    handed = found.submission(["submit", "-n2", "cg"], "new")
    assert handed.environment == {"FLUX_URI": "local:///run/flux/local"}
    assert handed.words == ("flux", "submit", "-n2", "--queue=new", "cg")


@pytest.mark.parametrize(("ranks", "count"), [("0-2,5", 4), ("7", 1), ("0-0", 1)])
def test_ranks_are_sets_of_numbers(ranks: str, count: int) -> None:
    lite = [{"rank": ranks, "children": {"core": "0-1,3"}}]
    document = {"execution": {"R_lite": lite, "nodelist": [f"n[1-{count}]"]}}
    assert list(cores(document).values()) == count * [3]


def test_a_set_of_more_numbers_than_can_be_is_refused_in_a_short_line() -> None:
    lite = [{"rank": "0-10000001" + 90 * ",1", "children": {"core": "0"}}]
    with pytest.raises(ValueError, match=r"^'0-10000001(,1){15}' is not a set of numbers$") as refused:
        cores({"execution": {"R_lite": lite, "nodelist": ["n0"]}})
    assert len(str(refused.value)) < 80


@pytest.mark.parametrize("words", [["-n", "many"], ["--setattr"], ["-q"]])
def test_options_that_flux_will_refuse_ask_for_nothing_here(words: list[str]) -> None:
    asked = SOURCE.submission(["submit", *words], "new")
    assert asked.words[:2] == ("flux", "submit")
    assert asked_for(["submit", "-q", "fast", *words]) == JobRequest("", 1, ())
