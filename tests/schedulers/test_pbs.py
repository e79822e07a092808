"""What OpenPBS's commands print becomes partitions, jobs and outcomes; no server was ever run: they are scripts."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from types import SimpleNamespace

import pytest

from metasched.jobs import Fate
from metasched.schedulers.pbs.commands import PbsCommands
from metasched.schedulers.pbs.listing import ended, hosts
from metasched.schedulers.pbs.source import PbsSource
from metasched.service.configuration import Configuration
from metasched.service.sources import sources
from tests.schedulers.pbs_answers import (
    ENDED,
    FILES,
    NODES,
    QSTAT,
    QUEUES,
    STARTED,
    SUBMITTED,
    job,
    node,
    printed,
    queue,
)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the commands; qalter notes what it was asked."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for name, body in (("pbsnodes", 'cat "$0.sound"'), ("qstat", QSTAT), ("qalter", 'printf "%s\\n" "$@" >"$0.asked"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def source(*queues: str) -> PbsSource:
    return PbsSource("c", queues)


def test_execution_queues_are_partitions_with_the_free_processors_of_their_hosts(server: Path) -> None:
    new, old = source().partitions()
    assert (new.name, new.scheduler, new.state.name, new.time_limit) == ("new", "c", "c/new", 86_400.0)
    assert (new.state.nodes, new.state.processors.tolist()) == (("n1", "n2", "n3"), [1, 4, 0])
    assert (new.state.up.tolist(), new.state.memory.tolist()) == ([True, True, False], [1024.0] * 3)
    assert (old.name, old.time_limit) == ("old", None)
    assert (new.total, old.total) == (8, 8)
    with pytest.raises(RuntimeError, match="no queue gpu, expected one of new, old"):
        source("gpu").partitions()


def test_queues_have_the_hosts_that_are_tied_to_them_and_vnodes_of_a_host_are_one(server: Path) -> None:
    vnodes = {f"n4[{place}]": node("n4", used=place) for place in (0, 1)}
    tied = node("n5", resources_available={"ncpus": 8, "Qlist": "fast,more", "mem": "4gb"}), node("n6", queue="own")
    everything = NODES | vnodes | {"n5": tied[0], "n6": tied[1]}
    (server / "pbsnodes.sound").write_text(printed(nodes=everything))
    more = {"fast": queue(default_chunk={"Qlist": "fast"}), "own": queue(), "shut": queue(started="False")}
    (server / "qstat.queues").write_text(printed(Queue=QUEUES | more))
    found = {each.name: each.state for each in source().partitions()}
    assert (found["fast"].nodes, found["own"].nodes) == (("n5",), ("n6",))
    assert found["new"].nodes == ("n1", "n2", "n3", "n4", "n5")
    assert found["new"].processors.tolist() == [1, 4, 0, 7, 8]
    assert not found["shut"].up.any()


def test_jobs_run_on_their_hosts_and_wait_with_what_they_select(server: Path) -> None:
    seven, task, waits, held = source().queue()
    assert (seven.number, seven.nodes, seven.processors, seven.limit) == ("7", ("n1", "n2"), 3, 600.0)
    assert (seven.started, seven.partitions, task.number) == (STARTED, {"new"}, "8[1]")
    assert (waits.processors, waits.ran, waits.ready, waits.submitted, held.ready) == (3, None, True, SUBMITTED, False)
    started = source().running()[0]
    assert (started.processors, started.application, started.problem_size) == ((2, 1), "cg", 1400.0)


def test_a_bound_job_is_let_go_with_its_other_parts(server: Path) -> None:
    select = "1:ncpus=2:mem=4kb:host=n1+1:ncpus=1:host=n2"
    bound = job("Q", Resource_List={"select": select}, Variable_List={"METASCHED": "app=cg:n=1400:p=3:placement=0f"})
    (server / "qstat.jobs").write_text(printed(Jobs={"9.pbs": bound}))
    (found,) = source().bound()
    assert (found.number, found.placement, found.nodes, found.partition) == ("9", "0f", {"n1", "n2"}, "new")
    assert found.since == SUBMITTED
    source().release("9", 60.0, 2)
    assert (server / "qalter.asked").read_text().split("\n") == ["-l", "select=1:ncpus=2:mem=4kb+1:ncpus=1", "9", ""]


def test_fates_and_finished_jobs_come_from_the_history_of_the_server(server: Path) -> None:
    fates = source().fates({"3", "4", "9", "99"})
    assert {number: fate.completed for number, fate in fates.items()} == {"3": True, "4": False, "9": None}
    three, four = source().finished(STARTED)
    assert (three.nodes, three.processors, three.end - three.start) == (("n1", "n2"), 3, 50.0)
    assert (three.comment, three.exit_status, four.exit_status, four.partition) == (
        "metasched:app=cg,n=1400", 0, 143, "old"
    )  # fmt: skip
    assert [each.numbers for each in (three, four, fates["4"])] == ["", "-n=400", "-n=400"]
    log = source().accounted(0.0)
    assert log is not None
    assert (log.run_time.tolist(), log.wait.tolist()) == ([50.0, 5.0], [100.0, 100.0])


def test_a_job_that_could_not_be_run_has_failed_one_that_ran_badly_has_ended_by_itself() -> None:
    jobs = {f"{number}.pbs": job("F", Exit_status=status) for number, status in ((3, 0), (4, 1), (6, -1))}
    found = [(each.number, each.failed, each.completed) for each in ended(json.loads(printed(Jobs=jobs)))]
    assert found == [("3", False, True), ("4", False, False), ("6", True, False)]


#: What the qstat of released versions prints where a user chose such variables, and how it is read.
CHOSEN = {
    '"RANK":005': ("RANK", "005"),
    '"RANK":-00.5': ("RANK", "-00.5"),
    '"RANK":.5': ("RANK", ".5"),
    '"RANK":5.': ("RANK", "5."),
    '"RANK":0x1F': ("RANK", "0x1F"),
    '"RANK":nan': ("RANK", "nan"),
    '"RANK":-inf': ("RANK", "-inf"),
    r'"LIST":"a\,b\\c\"d\u00e9"': ("LIST", 'a,b\\c"d\u00e9'),
    r'"QUOTED":"\'x\'"': ("QUOTED", "'x'"),
    '"NULL":null': ("NULL", None),
}


@pytest.mark.parametrize("chosen", CHOSEN)
def test_variables_of_one_user_do_not_hide_the_jobs_of_all(server: Path, chosen: str) -> None:
    text = printed(Jobs={"7.pbs": job(), "9.pbs": job("Q")}).replace('"PBS_O_HOME"', f'{chosen}, "PBS_O_HOME"', 1)
    (server / "qstat.jobs").write_text(text)
    (server / "qstat.ended").write_text(text)
    assert [each.number for each in source().queue()] == ["7", "9"]
    assert source().running()[0].application == "cg"
    assert source().fates({"9", "8"}) == {"9": Fate(None)}
    document = PbsCommands.of().json("qstat", "-f")
    name, value = CHOSEN[chosen]
    assert document["Jobs"]["7.pbs"]["Variable_List"][name] == value


@pytest.mark.parametrize("depth", [2, 12, 13, 900, 100_000])
def test_a_variable_that_is_json_itself_is_no_trap_however_deep(server: Path, depth: int) -> None:
    deep = f'"DEEP":{"[" * depth}{{"a,b]":1}}{"]" * depth}, "PBS_O_HOME"'
    text = printed(Jobs={"7.pbs": job(), "9.pbs": job("Q")}).replace('"PBS_O_HOME"', deep, 1)
    (server / "qstat.jobs").write_text(text)
    assert [each.number for each in source().queue()] == ["7", "9"]
    assert source().running()[0].application == "cg"


@pytest.mark.parametrize(("value", "name"), [("1e5", "1e5"), ("null", "null"), ("true", "true"), ('"cg"', "cg")])
def test_a_job_is_called_what_its_user_typed(server: Path, value: str, name: str) -> None:
    (server / "qstat.jobs").write_text(printed(Jobs={"7.pbs": job()}).replace('"cg"', value, 1))
    (server / "qstat.ended").write_text(printed(Jobs={"3.pbs": ENDED["3.pbs"]}).replace('"cg"', value, 1))
    (runs,), (ended_job,) = source().queue(), source().finished(STARTED)
    assert (runs.name, ended_job.name) == (name, name)


def test_without_jobs_the_lists_are_empty_though_nothing_is_printed(server: Path) -> None:
    (server / "qstat.jobs").write_text("")
    (server / "qstat.ended").write_text(printed())
    assert (source().queue(), source().finished(0.0)) == ([], [])


@pytest.mark.parametrize("spoil", [{"job_state": 7}, {"Resource_List": 3}, {"queue": None, "exec_vnode": []}], ids=str)
def test_jobs_that_are_none_are_one_clear_error(spoil: dict[str, object], server: Path) -> None:
    (server / "qstat.jobs").write_text(printed(Jobs={"7.pbs": job() | spoil, "forged": job()}))
    with pytest.raises(RuntimeError, match="qstat -f -t -F json prints unexpected output: "):
        source().queue()


def test_the_configuration_names_servers(tmp_path: Path) -> None:
    settings = Configuration.model_validate({"pbs": [{"name": "c", "server": "head", "partitions": ["new"]}]})
    (found,) = sources(settings)
    assert (found.name, found.kind, settings.schedulers) == ("c", "pbs", ("c",))
    assert found.submission(["job.sh"], "new").environment == {"PBS_SERVER": "head"}
    assert found.submission(["-qold", "job.sh"], "new").words == ("qsub", "-q", "new", "job.sh")


def test_a_host_that_states_no_processors_has_the_physical_ones_or_none() -> None:
    stated, physical, silent = (
        {"state": "free", "resources_available": {"host": name} | has, **more}
        for name, has, more in (("n1", {"ncpus": 2}, {"pcpus": 8}), ("n2", {}, {"pcpus": 8}), ("n3", {}, {}))
    )
    found = hosts({"nodes": {"n1": stated, "n2": physical, "n3": silent}})
    assert {name: host.slots for name, host in found.items()} == {"n1": 2, "n2": 8, "n3": 0}


@pytest.mark.parametrize("shown", ["[]", '{"Jobs": {}}', '{"Jobs": {"7": {"Resource_List": {}}}}', '{"Jobs": [7]}'])
def test_a_job_whose_selection_is_not_shown_is_left_alone(server: Path, shown: str) -> None:
    (server / "qstat").write_text(f"#!/bin/sh\necho '{shown}'\n")
    with pytest.raises(RuntimeError, match=r"^qstat does not show the selection of job 7$"):
        source().release("7", None, None)
    assert not (server / "qalter.asked").exists()


@pytest.mark.parametrize(("status", "failed"), [(-1, True), (0, False), (1, False), (271, False)])
def test_a_job_failed_where_pbs_could_not_run_it(server: Path, status: int, failed: bool) -> None:
    document = {"Jobs": {"7.pbs": job("F", Exit_status=status)}}
    found = [each for each in ended(document) if each.number.startswith("7")]
    assert [each.failed for each in found] == [failed]


@pytest.mark.parametrize(
    ("user", "uid", "may"), [("ann", 1, True), ("bob", 1, True), ("eve", 1, False), ("eve", 0, True)]
)
def test_jobs_may_be_let_go_by_root_managers_and_operators(
    user: str, uid: int, may: bool, server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_name=user))
    assert {each.releases for each in source().partitions()} == {may}
