"""Limits of a QOS, and what ended while the daemon was away, on a real Slurm with a real slurmdbd and MariaDB."""

from __future__ import annotations

import getpass
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metasched.records import InputError
from metasched.schedulers.slurm import source as slurm_source
from metasched.schedulers.slurm.node_failures import recorded_for
from metasched.schedulers.slurm.source import SlurmSource
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from tests.service.daemons import teach
from tests.system import real_accounting, real_slurm
from tests.system.placing_daemon import hooked
from tests.system.real_accounting import Accounting
from tests.system.real_daemon import Daemon
from tests.system.real_slurm import NODES, Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

#: A job that finds no place is let go soon; the controller forgets ended jobs at once, and only sacct tells of them.
CONFIGURATION = (
    'mode = "act"\n[periods]\npartitions = 1.0\nrelease = 2.0\nconfirm = 0.5\n'
    '[[slurm]]\nname = "proof"\nconfiguration = "{}"\n'
    '[[problem_size]]\nname = "by-argument"\nargument = "-n"\napplication = "sized"\n'
    '[[problem_size]]\nname = "by-script"\nscript = "N="\napplication = "sized"\n'
    '[[problem_size]]\nname = "placed#"\nargument = "-n"\napplication = "cg"\n'
    '[[problem_size]]\nname = "placed#"\nargument = "$2"\napplication = "cg"\n'
    '[[problem_size]]\nname = "placed#"\nscript = "N="\napplication = "cg"\n'
)
FORGOTTEN = 2
QOS = {
    "small": ("MaxTRESPerJob=cpu=2", "Flags=DenyOnLimit"),
    "narrow": ("MaxTRESPerJob=node=1", "Flags=DenyOnLimit"),
    "short": ("MaxWall=1", "Flags=DenyOnLimit"),
    "one": ("MaxJobsPerUser=1",),
}
MARK = "--comment=metasched:app=cg,n=500"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slurm")


@pytest.fixture(scope="module")
def accounting(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accounting]:
    if why := real_slurm.why_not() or real_accounting.why_not():
        pytest.skip(why)
    with real_accounting.keeping(tmp_path_factory.mktemp("site") / "accounting", site / "munge.sock") as accounting:
        yield accounting


@pytest.fixture(scope="module")
def accounted(
    site: Path, accounting: Accounting, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Slurm, Daemon]]:
    folder = tmp_path_factory.mktemp("daemon")
    with real_slurm.running(site, memory=FORGOTTEN, accounting=accounting) as slurm:
        for name, limits in QOS.items():
            slurm.run("sacctmgr", "--immediate", "add", "qos", name, *limits)
        slurm.run("sacctmgr", "--immediate", "add", "account", "tight", "MaxTRESPerJob=cpu=3")
        slurm.run("sacctmgr", "--immediate", "add", "user", "root", "account=tight")
        every = ",".join(("normal", *QOS))
        slurm.run("sacctmgr", "--immediate", "modify", "user", "root", "set", f"qos={every}", "defaultqos=normal")
        with Store.open(folder / "metasched.db") as store:
            teach(store, "proof")
            (folder / "admin").write_text(store.tokens.add("a", "admin"))
        with hooked(slurm, folder, CONFIGURATION) as daemon:
            for node in NODES:
                daemon.ask("POST", "/v1/loads", {"node": node, "samples": [[time.time() + 30.0, 0.9, 100.0]]})
            time.sleep(1.5)  # until placements see it
            yield slurm, daemon


def test_a_job_is_not_made_larger_or_longer_than_its_qos_or_account_allows(accounted: tuple[Slurm, Daemon]) -> None:
    slurm, _ = accounted
    slurm.stand_still()
    found = {}
    for name in ("normal", "small", "narrow", "short", "tight"):
        sent = slurm.sbatch("--account=tight" if name == "tight" else f"--qos={name}", "-n1", f"{MARK},p=1-16")
        assert sent.job, (name, sent.said)
        found[name] = slurm.job(sent.job)
        slurm.run("scancel", str(sent.job))
    slurm.stand_still(False)
    processors = {name: int(told["NumTasks"]) for name, told in found.items()}
    print(f"processors advised: {processors}")
    assert processors["normal"] > 2
    assert (processors["small"], processors["tight"]) == (2, 3)
    assert found["narrow"]["NumNodes"].partition("-")[0] == "1"
    assert found["short"]["TimeLimit"] == "00:01:00"


def test_a_job_that_its_qos_keeps_waiting_is_not_bound_and_runs_in_its_turn(accounted: tuple[Slurm, Daemon]) -> None:
    slurm, _ = accounted
    script = b"#!/bin/sh\nsleep 6\n"
    first, second = (slurm.sbatch("--qos=one", "-n2", MARK, script=script).job for _ in range(2))
    slurm.wait(lambda: slurm.job(second).get("Reason") == "QOSMaxJobsPerUserLimit", 20.0)
    slurm.wait(lambda: slurm.job(second)["ReqNodeList"] == "(null)", 20.0)
    slurm.wait_for([first, second])
    slurm.wait(lambda: state(slurm, second) != "RUNNING", 20.0)
    assert (state(slurm, first), state(slurm, second)) == ("COMPLETED", "COMPLETED")


def test_jobs_that_ended_while_the_daemon_was_away_are_learned_by_sacct(accounted: tuple[Slurm, Daemon]) -> None:
    slurm, daemon = accounted
    slurm.hooks({"socket": daemon.socket, "state": str(slurm.folder / "elsewhere")})  # no epilog tells of these
    before = daemon.ask("GET", "/v1/runs")["stored"]
    sent = [slurm.sbatch("-n2", f"{MARK}", script=b"#!/bin/sh\nsleep 2\n").job for _ in range(2)]
    sent.append(slurm.sbatch("-n2", f"{MARK}", script=b"#!/bin/sh\nsleep 2; exit 4\n").job)
    gpus = {("-wa1", "--gpus=2"): ("a100", 2.0), ("-wa3", "--gres=gpu:1"): ("unknown", 1.0), ("-wa2",): (None, None)}
    special = {
        slurm.sbatch("-pold", "-N1", "-n2", *words, f"{MARK},p=2", script=b"#!/bin/sh\nsleep 2\n").job: expected
        for words, expected in gpus.items()
    }
    sent += special
    daemon.stop()
    slurm.wait_for(sent)
    slurm.wait(lambda: [state(slurm, job) for job in sent].count("COMPLETED") == len(sent) - 1, 30.0)
    slurm.wait(lambda: not slurm.run("squeue", "--noheader", "--states=all"), 60.0)
    daemon.start()
    slurm.wait(lambda: daemon.ask("GET", "/v1/runs")["stored"] == before + 6, 60.0)
    newest = daemon.ask("GET", "/v1/runs?last=6")["runs"]
    assert [run["exit_status"] for run in newest].count(4) == 1
    assert all(abs(run["execution_time"] - 2.0) < 3.0 for run in newest)
    with Store.open(daemon.database) as store:
        found = {int(each.run.extra.get("job", 0)): each for each in store.runs.all() if each.learnable}
    had = {job: dict(found[job].run.settings.parameters) for job in special}
    assert {job: (each.get("gpu"), each.get("gpus")) for job, each in had.items()} == special


def forgotten(slurm: Slurm) -> None:
    """Wait until the controller knows no job any more."""
    slurm.wait(lambda: not slurm.run("squeue", "--noheader", "--states=all"), 90.0)


def told(daemon: Daemon, application: str) -> dict[float, RecordedRun]:
    """The runs of an application by their problem size."""
    with Store.open(daemon.database) as store:
        return {each.run.problem_size: each for each in store.runs.all(application=application)}


def test_jobs_that_are_no_ordinary_ones_are_left_alone_where_only_the_accounting_tells_of_them(
    accounted: tuple[Slurm, Daemon],
) -> None:
    slurm, daemon = accounted
    mark, job = "--comment=metasched:app=odd,p=2,n={}", slurm.folder / "odd.sh"
    job.write_text("#!/bin/sh\nsleep 1\n")
    slurm.sbatch("-n2", mark.format(1), ":", "-n2", mark.format(2), str(job))  # whose epilogs leave them alone
    forgotten(slurm)
    slurm.hooks({"socket": daemon.socket, "state": str(slurm.folder / "elsewhere")})  # no epilog tells of these
    daemon.stop()
    slurm.sbatch("-n2", mark.format(3), ":", "-n2", mark.format(4), str(job))
    slurm.run("srun", "-n2", mark.format(5), "sleep", "1")
    slurm.run("salloc", "-n2", mark.format(6), "sleep", "1")
    slurm.sbatch("-n2", "--array=1", mark.format(7), str(job), script=b"")
    slurm.sbatch("-n2", mark.format(8), str(job), script=b"")
    forgotten(slurm)
    daemon.start()
    slurm.wait(lambda: {7.0, 8.0} <= told(daemon, "odd").keys(), 60.0)
    time.sleep(2.0)
    assert {size: each.learnable for size, each in told(daemon, "odd").items()} == {7.0: True, 8.0: True}


def test_jobs_wait_for_an_accounting_that_is_away_and_are_learned_when_it_is_back(
    accounted: tuple[Slurm, Daemon], accounting: Accounting
) -> None:
    slurm, daemon = accounted
    mark, script = "--comment=metasched:app=late,p=1,n={}", b"#!/bin/sh\nsleep 1\n"
    slurm.hooks({"socket": daemon.socket})
    daemon.stop()
    accounting.end()
    slurm.wait_for([slurm.sbatch("-n1", mark.format(1), script=script).job])
    slurm.hooks({"socket": daemon.socket, "state": str(slurm.folder / "elsewhere")})  # no epilog tells of this one
    slurm.wait_for([slurm.sbatch("-n1", mark.format(2), script=script).job])
    forgotten(slurm)
    slurm.hooks({"socket": daemon.socket})
    daemon.start()
    slurm.run_epilog("--tell")
    slurm.wait(lambda: told(daemon, "late"), 60.0)
    time.sleep(6.0)  # until it was asked several times, and for what ended while the daemon was away
    assert {size: each.learnable for size, each in told(daemon, "late").items()} == {1.0: False}
    accounting.resume(slurm.environment)
    slurm.wait(lambda: {size for size, each in told(daemon, "late").items() if each.learnable} == {1.0, 2.0}, 120.0)


@pytest.mark.timeout(400)  # accounting is first asked two minutes after a start
def test_run_times_are_learned_of_jobs_that_say_nothing_and_ended_while_the_daemon_was_away(
    accounted: tuple[Slurm, Daemon],
) -> None:
    slurm, daemon = accounted
    slurm.hooks({"socket": daemon.socket, "state": str(slurm.folder / "elsewhere")})  # no epilog tells of these
    asked = {"user": getpass.getuser(), "processors": 2, "requested_time": 420.0, "cluster": "proof"}
    daemon.stop()
    sent = [slurm.sbatch("-n2", "--time=7", script=b"#!/bin/sh\nsleep 3\n").job for _ in range(3)]
    slurm.wait_for(sent)
    slurm.wait(lambda: [state(slurm, job) for job in sent] == ["COMPLETED"] * 3, 30.0)
    daemon.start()
    slurm.wait(
        lambda: "3 jobs of this user with the same size and limit" in expected(daemon, asked).get("reason", ""), 200.0
    )
    found = expected(daemon, asked)
    assert 1.0 <= found["run_time"] <= 10.0
    assert found["requested_time"] == 420.0


@pytest.mark.timeout(500)  # accounting is first asked two minutes after a start
def test_waits_are_learned_of_jobs_that_no_look_at_the_queue_saw(accounted: tuple[Slurm, Daemon]) -> None:
    slurm, daemon = accounted
    slurm.hooks({"socket": daemon.socket, "state": str(slurm.folder / "elsewhere")})  # no epilog tells of these
    daemon.stop()
    configuration = daemon.folder / "metasched.toml"
    text = configuration.read_text()
    configuration.write_text(text.replace("partitions = 1.0", "partitions = 20.0"))

    def learned() -> int:
        with Store.open(daemon.database) as store:
            errors = store.wait_errors.all().get("proof")
        return 0 if errors is None else sum(map(len, errors.as_dict()["ratios"]))

    before = learned()
    daemon.start()
    try:
        time.sleep(22.0)  # until the queue was looked at with the history known
        sent = [slurm.sbatch("-n1", "--time=6", script=b"#!/bin/sh\nsleep 1\n").job for _ in range(4)]
        slurm.wait_for(sent)
        asked = {"user": getpass.getuser(), "processors": 1, "requested_time": 360.0, "cluster": "proof"}
        # Jobs of other tests are known before.
        slurm.wait(lambda: "4 jobs of this user with the same" in expected(daemon, asked).get("reason", ""), 280.0)
    finally:
        daemon.stop()
        configuration.write_text(text)
    found = learned()
    daemon.start()
    assert found - before == len(sent)


def summer_time(ends: float) -> str:
    """A time zone whose daylight saving time ends at a moment (s)."""
    local = time.gmtime(ends + 3600.0)
    day = local.tm_yday - 1
    return time.strftime(f"AAA0BBB,{(day + 180) % 365}/0,{day}/%H:%M:%S", local)


@pytest.mark.parametrize("ends_in", [-1800.0, 1800.0])
def test_accounting_tells_of_what_ended_in_an_hour_that_comes_twice(
    ends_in: float, accounted: tuple[Slurm, Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm, _ = accounted
    source = SlurmSource("proof", configuration=str(slurm.folder / "slurm.conf"))
    begin = time.time()
    job = slurm.sbatch("-n1", script=b"#!/bin/sh\nsleep 1\n").job
    slurm.wait_for([job])
    slurm.wait(lambda: state(slurm, job) == "COMPLETED", 30.0)
    end = time.time() + 1.0
    monkeypatch.setenv("TZ", summer_time(begin + ends_in))
    time.tzset()
    try:
        periods = ((begin, None), (begin, end), (begin - 7200.0, end))
        assert [source.accounted(*each) is None for each in periods] == [False] * 3
        assert source.accounted(begin - 7200.0, begin - 3600.0) is None
    finally:
        monkeypatch.undo()
        time.tzset()


def test_accounting_tells_of_what_ended_in_a_period(accounted: tuple[Slurm, Daemon]) -> None:
    slurm, _ = accounted
    ended = []
    for _ in range(2):
        job = slurm.sbatch("-n1", "--time=9", script=b"#!/bin/sh\nsleep 1\n").job
        slurm.wait_for([job])
        slurm.wait(lambda job=job: state(slurm, job) == "COMPLETED", 30.0)
        ended.append(time.time())
        time.sleep(3.0)
    source = SlurmSource("proof", configuration=str(slurm.folder / "slurm.conf"))

    def found(since: float, until: float | None) -> int:
        log = source.accounted(since, until)
        return 0 if log is None else int((log.requested_time == 540.0).sum())

    begin, between = ended[0] - 60.0, ended[0] + 1.0
    assert [found(begin, between), found(between, None), found(begin, None)] == [1, 1, 2]
    assert source.accounted(begin - 1e7, begin - 9e6) is None


def test_problem_sizes_in_arguments_and_scripts_are_learned_from_epilog_controller_and_accounting(
    accounted: tuple[Slurm, Daemon], tmp_path: Path
) -> None:
    slurm, daemon = accounted
    slurm.hooks({"socket": daemon.socket})
    path = tmp_path / "run.sh"
    path.write_text("#!/bin/sh\nN=700\nsleep 2 # 800\n")

    def sent(name: str, *arguments: str) -> int:
        return slurm.sbatch("-n2", f"--job-name={name}", str(path), *arguments, script=b"").job

    def sizes() -> list[float]:
        runs = daemon.ask("GET", "/v1/runs?last=100")["runs"]
        return sorted(run["problem_size"] for run in runs if run["application"] == "sized")

    slurm.wait_for([sent("by-argument", "case.in", "-n", "400"), sent("by-script"), sent("by-argument", "-x", "5")])
    slurm.wait(lambda: len(sizes()) == 2, 60.0)
    assert sizes() == [400.0, 700.0]
    slurm.hooks({"socket": daemon.socket, "state": str(slurm.folder / "elsewhere")})
    daemon.stop()
    last = sent("by-argument", "-n900")
    slurm.wait(lambda: state(slurm, last) == "COMPLETED", 30.0)
    slurm.wait(lambda: not slurm.run("squeue", "--noheader", "--states=all"), 60.0)
    daemon.start()
    slurm.wait(lambda: len(sizes()) == 3, 60.0)
    assert sizes() == [400.0, 700.0, 900.0]


@pytest.mark.parametrize("mode", ["act", "shadow"])
def test_a_job_is_placed_by_the_number_that_it_states_and_learned_with_the_same(
    accounted: tuple[Slurm, Daemon], tmp_path: Path, mode: str
) -> None:
    slurm, daemon = accounted
    daemon.ask("PUT", "/v1/mode", {"mode": mode}, token=(daemon.folder / "admin").read_text())
    slurm.hooks({"socket": daemon.socket})
    path = tmp_path / "run.sh"
    path.write_text("#!/bin/sh\nsleep 1\n")
    script = tmp_path / "sized.sh"
    script.write_text("#!/bin/sh\nN=570\nsleep 1 # 800\n")
    words = {
        510.0: (str(path), "a case.in", "-n", "510"),
        520.0: (str(path), "case.in", "520"),
        530.0: (str(path), "two words", "it's", "-n530"),
        540.0: (str(path), "'one word'", "540"),
        550.0: ("--wrap=true -n 550 && sleep 1",),
        560.0: ("--wrap", "true case.in 560 && sleep 1"),
        570.0: (str(script),),
    }  # fmt: skip
    sent = {}
    for size, more in words.items():
        # The name tells them from the jobs of the other mode, submitted some seconds before.
        job = slurm.sbatch("-n2", f"--job-name=placed{len(mode)}{len(sent)}", *more, script=b"").job
        sent[job] = size
        comment = slurm.job(job).get("Comment", "")
        assert comment.startswith(f"metasched:app=cg,n={size:g},p=2,placement=") is (mode == "act"), (size, comment)
    slurm.wait_for([*sent])
    found: dict[str, Any] = {}

    def settled() -> bool:
        found.clear()
        for job in sent:
            advised = [each for each in daemon.ask("GET", f"/v1/placements?job={job}") if each["outcome"]]
            found.update((str(job), each["question"]["problem_size"]) for each in advised)
        return len(found) == len(sent)

    slurm.wait(settled, 60.0)
    assert found == {str(job): size for job, size in sent.items()}
    with Store.open(daemon.database) as store:
        runs = {each.run.extra.get("job"): each.run.problem_size for each in store.runs.all()}
    assert {str(job): runs.get(str(job)) for job in sent} == found


def test_placements_tell_the_chance_to_finish_by_the_failures_that_the_accounting_records(
    accounted: tuple[Slurm, Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm, _ = accounted
    source, lost = SlurmSource("proof", configuration=str(slurm.folder / "slurm.conf")), f"NodeName={NODES[0]}"
    assert recorded_for(slurm.run("sacctmgr", "--noheader", "show", "configuration")) == 300 * 86_400.0 - 60.0
    source.learn_failures()
    assert source.partitions()[0].state.failures is None  # nodes were watched for less than a year in all
    monkeypatch.setattr(slurm_source, "TELLING", 0.0)
    source.learn_failures()
    before = source.partitions()[0].state.failures
    assert before is not None
    slurm.run("scontrol", "update", lost, "State=DOWN", "Reason=test")

    def failed() -> bool:
        source.learn_failures()
        found = source.partitions()[0].state.failures
        return found is not None and found.shape >= before.shape + 1

    try:
        slurm.wait(failed, 60.0)
    finally:
        slurm.run("scontrol", "update", lost, "State=RESUME")
    print(f"failures before: {before}, after: {source.partitions()[0].state.failures}")


def expected(daemon: Daemon, asked: dict[str, Any]) -> dict[str, Any]:
    """What the daemon expects of a job; nothing where it knows no jobs of the cluster yet."""
    try:
        return daemon.ask("POST", "/v1/history/predictions", asked)
    except InputError:
        return {}


def state(slurm: Slurm, job: int) -> str:
    """What the accounting says of a job."""
    return slurm.run(
        "sacct", "--allusers", "--allocations", "--noheader", "--parsable2", "--format=State", f"--jobs={job}"
    ).strip()
