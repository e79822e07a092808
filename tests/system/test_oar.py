"""The daemon and a real OAR together: jobs get the better partition and are learned, and no daemon harms one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from command_line import status_of

from metasched.doctor.oar import check_oar
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from tests.service.daemons import teach
from tests.system import real_oar
from tests.system.bad_daemons import FAULTS, Bad, changed
from tests.system.real_daemon import ROOT, Daemon
from tests.system.real_oar import CLUSTERS, Oar

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

#: What a job does that is to be learned. Where the machine is quick OAR dates the start of a job up to two seconds
#: ahead, and where the job ends before that, its end as well: as if it had taken no time.
RUN = "sleep 4"

CONFIGURATION = """
mode = "act"
[periods]
partitions = 1.0
confirm = 0.5
[[oar]]
name = "oar"
property = "cluster"
[[problem_size]]
name = "by-argument"
argument = "-n"
application = "cg"
[[problem_size]]
name = "solv\u00e9_#"
application = "cg"
"""


@pytest.fixture(scope="module")
def oar() -> Iterator[Oar]:
    if why := real_oar.why_not():
        pytest.skip(why)
    with pytest.MonkeyPatch.context() as patch, real_oar.running() as oar:
        patch.setenv("PATH", str(oar.commands), prepend=":")
        before = oar.run("oaradmissionrules", "--show-all", "--full")
        setup(oar, "--yes")
        yield oar
        setup(oar, "--undo", "--yes")
        assert oar.run("oaradmissionrules", "--show-all", "--full") == before


def setup(oar: Oar, *more: str) -> None:
    words = ["--folder", str(oar.hooks_folder), "--property", "cluster", "--config", f"{oar.folder}/metasched.toml"]
    assert status_of("setup", "oar", *words, *more) == 0


@pytest.fixture(scope="module")
def daemon(oar: Oar) -> Iterator[Daemon]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(oar.commands), prepend=":")
        folder = oar.folder / "daemon"
        folder.mkdir()
        with Store.open(folder / "metasched.db") as store:
            teach(store, "oar")
            token = store.tokens.add("oar", "scheduler")
        daemon = Daemon(folder, CONFIGURATION)
        daemon.start()
        # The rule runs as the user oar, who is in the daemon's group or has a token.
        shutil.chown(daemon.socket, "oar")
        (oar.hooks_folder / "token").write_text(token)
        for cluster, nodes in CLUSTERS.items():
            for node in nodes:
                sample = [time.time() + 30.0, 0.95 if cluster == "new" else 0.3, 100.0]
                daemon.ask("POST", "/v1/loads", {"node": node, "samples": [sample]})
        time.sleep(1.5)  # until placements see it
        try:
            yield daemon
        finally:
            daemon.stop()


def job(oar: Oar, number: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(oar.run("oarstat", "-f", "-J", "-j", str(number)))[str(number)]
    return found


def learned(daemon: Daemon, number: int) -> list[RecordedRun]:
    with Store.open(daemon.database) as store:
        return [each for each in store.runs.all() if each.run.extra.get("job") == str(number) and each.learnable]


def wait_for_runs(oar: Oar, daemon: Daemon, *numbers: int) -> None:
    """Wait until jobs are learned; where OAR does not answer at once, it is asked again two minutes later."""

    def otherwise() -> str:
        with Store.open(daemon.database) as store:
            runs = "".join(f"{each}\n" for each in store.runs.all())
        jobs = "".join(f"{job(oar, number)}\n" for number in numbers)
        return f"{(daemon.folder / 'daemon.log').read_text()}\n{jobs}\n{runs}"

    oar.wait(lambda: all(learned(daemon, number) for number in numbers), 200.0, otherwise=otherwise)


def test_a_job_gets_the_better_partition_and_is_learned(oar: Oar, daemon: Daemon) -> None:
    oar.hooks({"socket": daemon.socket, "token_file": "/etc/oar/metasched/token"})
    number = oar.oarsub("-l", "core=2,walltime=0:2:0", f"METASCHED=app=cg,n=500 {RUN}")
    answer = job(oar, number)
    assert answer["properties"] == "((desktop_computing = 'NO') AND cluster = 'new') AND drain='NO'"
    assert answer["command"].startswith("METASCHED=app=cg,n=500,p=2,placement=")
    oar.wait(lambda: job(oar, number)["state"] == "Terminated")
    assert set(job(oar, number)["assigned_network_address"]) <= set(CLUSTERS["new"])
    # It is looked for every two minutes, and soon after the start.
    daemon.stop()
    daemon.start()
    shutil.chown(daemon.socket, "oar")
    wait_for_runs(oar, daemon, number)
    (record,) = learned(daemon, number)
    assert (record.run.problem_size, record.run.processors, record.exit_status) == (500, 2, 0)


def test_jobs_are_placed_learned_and_settled_by_the_numbers_that_they_state(oar: Oar, daemon: Daemon) -> None:
    oar.hooks({"socket": daemon.socket, "token_file": "/etc/oar/metasched/token"})
    asked = ("-l", "core=2,walltime=0:2:0")
    jobs = [("by-argument", f"sh -c '{RUN}' x -n 500"), ("by-argument", f"sh -c '{RUN}' caf\u00e9 -n 600"),
            ("solv\u00e9_300", RUN), ("by-argument", f"sh -c '{RUN}' x")]  # fmt: skip
    sizes = [500.0, 600.0, 300.0, None]
    numbers = [oar.oarsub(*asked, "-n", name, line) for name, line in jobs]
    found = [job(oar, number) for number in numbers]
    usual = "(desktop_computing = 'NO') AND drain='NO'"
    placed = [f"((desktop_computing = 'NO') AND cluster = '{cluster}') AND drain='NO'" for cluster in CLUSTERS]
    assert [each["properties"] in placed for each in found] == [True, True, True, False]
    assert (found[0]["properties"], found[3]["properties"]) == (placed[list(CLUSTERS).index("new")], usual)
    assert found[0]["command"] == jobs[0][1]
    oar.wait(lambda: all(job(oar, number)["state"] == "Terminated" for number in numbers))
    daemon.stop()
    daemon.start()
    shutil.chown(daemon.socket, "oar")
    wait_for_runs(oar, daemon, *numbers[:3])
    runs = [learned(daemon, number) for number in numbers]
    assert [each[0].run.problem_size if each else None for each in runs] == sizes
    advice = daemon.ask("GET", "/v1/placements?limit=1000")
    outcomes = {each["outcome"]["job"]: each["question"]["problem_size"] for each in advice if each["outcome"]}
    assert {number: outcomes.get(str(number)) for number in numbers} == dict(zip(numbers, sizes, strict=True))


def test_setup_does_nothing_twice_and_the_doctor_finds_the_rule(
    oar: Oar, daemon: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(oar.commands), prepend=":")
    setup(oar, "--yes")
    assert capsys.readouterr().out == "there is nothing to do\n"
    oar.hooks({"socket": daemon.socket, "token_file": str(oar.hooks_folder / "token")})
    assert [each for each in check_oar("oar", "cluster", daemon.socket) if each.state != "well"] == []
    wrong = [each.found for each in check_oar("oar", "core2", daemon.socket) if each.state == "wrong"]
    assert "no resource has the property 'core2'" in wrong


def test_jobs_without_a_mark_stay_as_they_are(oar: Oar, daemon: Daemon) -> None:
    oar.hooks({"socket": daemon.socket, "token_file": "/etc/oar/metasched/token"})
    answer = job(oar, oar.oarsub("-l", "core=1", "true"))
    assert (answer["command"], answer["properties"]) == ("true", "(desktop_computing = 'NO') AND drain='NO'")


def test_metasched_submit_names_the_partition_in_which_a_job_is_done_first(oar: Oar, daemon: Daemon) -> None:
    oar.hooks({"off": "/etc/oar/metasched/hooks.conf"})
    words = ("-l", "core=2,walltime=0:2:0", "METASCHED=app=cg,n=500 true")
    done = subprocess.run(
        [sys.executable, "-m", "metasched", "submit", "--config", str(daemon.folder / "metasched.toml"), "--", *words],
        env=os.environ, cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "oar/new" in done.stderr or "new" in done.stderr
    number = int(done.stdout.rpartition("OAR_JOB_ID=")[2])
    assert "cluster = 'new'" in job(oar, number)["properties"]


@pytest.mark.parametrize("fault", ["is down", "lies about partitions", *list(FAULTS)[:6], "names an unknown partition"])
def test_a_faulty_daemon_changes_no_job(oar: Oar, fault: str) -> None:
    answer = FAULTS.get(fault, changed(partition="old' OR 'a'='a"))
    with closing(Bad(answer, str(oar.folder / "bad.sock"))):
        (oar.folder / "bad.sock").chmod(0o777)
        oar.hooks({"socket": str(oar.folder / ("nobody" if fault == "is down" else "bad.sock")), "deadline": "0.2"})
        number = oar.oarsub("-l", "core=2", "METASCHED=app=cg,n=500 true")
    found = job(oar, number)
    assert found["command"] == "METASCHED=app=cg,n=500 true"
    assert found["properties"] == "(desktop_computing = 'NO') AND drain='NO'"
