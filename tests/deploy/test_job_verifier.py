"""Grid Engine's job submission verifier: what it asks, what it changes, and that it answers every job."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from metasched.advised_placements import Ask
from tests.deploy.job_verifier import JOB, Verifier
from tests.system.bad_daemons import Bad, changed, http

#: A verifier of the site that takes all jobs.
ACCEPTING = """#!/bin/sh
while read -r word _; do
  case $word in
    START) echo STARTED ;;
    BEGIN) echo RESULT STATE ACCEPT ;;
    QUIT) exit 0 ;;
  esac
done
"""


def verified(folder: Path, job: dict[str, str | None], conf: str = "nodes = b[1-4]\n", **answer: object) -> Any:
    """What was changed of the job, with these parameters instead of others, by a sound answer."""
    shown = {key: value for key, value in (JOB | job).items() if value is not None}
    with (
        closing(Bad(changed(**answer))) as daemon,
        Verifier(folder, f"address = {daemon.address}\ndeadline = 2\n{conf}") as verifier,
    ):
        return verifier.judge(shown)[1]


def test_a_job_is_bound_to_hosts_and_its_mark_completed(tmp_path: Path) -> None:
    assert verified(tmp_path, {}) == {
        "q_hard": "new",
        "l_hard": "h_rt=500,hostname=b1|b2",
        "pe_min": "2",
        "pe_max": "2",
        "ac": "owner=me,metasched=app=cg,n=1400,p=2,placement=0f",
        "ENV METASCHED": "metasched:app=cg,n=1400,p=2,placement=0f",
    }


def test_jobs_are_accepted_as_they_are_where_the_verifier_fails(tmp_path: Path) -> None:
    (tmp_path / "site-verifier").mkdir()
    with Verifier(tmp_path, "") as verifier:
        assert verifier.judge() == ("ACCEPT", {})
        assert verifier.close() == 0


def test_one_host_is_a_pattern_too_since_a_name_that_is_gone_would_be_refused(tmp_path: Path) -> None:
    found = verified(tmp_path, {"l_hard": None}, nodes="b3", node_count=1)
    assert found["l_hard"] == "hostname=b3|b3"


@pytest.mark.parametrize(("steer", "conf"), [("nodes", ""), ("features", "nodes = b[1-4]\n"), ("features", "")])
def test_hosts_are_only_preferred_where_none_may_be_demanded(steer: str, conf: str, tmp_path: Path) -> None:
    found = verified(tmp_path, {}, conf, steer=steer)
    assert found["l_soft"] == "hostname=b1|b2"
    assert "l_hard" not in found


def test_steering_by_queue_names_no_hosts_and_a_job_that_names_no_queue_keeps_all(tmp_path: Path) -> None:
    found = verified(tmp_path, {"q_hard": None}, steer="partition")
    assert {"l_hard", "l_soft", "q_hard"}.isdisjoint(found)
    assert verified(tmp_path, {"q_hard": None}, "queues = old, new\n")["q_hard"] == "new"
    assert verified(tmp_path, {"q_hard": None}, "queues = old\n") == {}


@pytest.mark.parametrize(
    "job",
    [
        {"ac": None}, {"ac": "metasched=off"}, {"ac": "metasched=app=cg,n=abc"}, {"ac": "metasched=n=5"},
        {"ac": "metasched=app=cg,n=5,n=7"}, {"ac": "metasched=app=cg," + "s=1," * 120 + "s=1,n=14000000"},
        {"ac": "xmetasched=app=cg,n=5"}, {"l_hard": "hostname=b1"}, {"l_hard": "h=b1"}, {"l_hard": "gpu=1"},
        {"q_hard": "new@b1"}, {"q_hard": "n*"}, {"l_soft": "arch=x"}, {"t_min": "1", "t_max": "9"}, {"h": "u"},
        {"hold_jid": "3"}, {"a": "12312359"}, {"ar": "4"}, {"masterq": "new"}, {"now": "y"}, {"CMDNAME": "NONE"},
        {"pe_min": "0"}, {"ac": "metasched=app=cg,n=5,p=8-9"},
    ],
    ids=str,
)  # fmt: skip
def test_other_jobs_are_left_alone(job: dict[str, str | None], tmp_path: Path) -> None:
    assert verified(tmp_path, job) == {}


def test_a_canary_and_a_file_keep_jobs_out(tmp_path: Path) -> None:
    assert verified(tmp_path, {}, "canary_users = ann\n") == {}
    assert verified(tmp_path, {}, "canary_users = ann, root\n") != {}
    assert verified(tmp_path, {}, "canary_share = 0\n") == {}
    (tmp_path / "metasched.off").touch()
    assert verified(tmp_path, {}) == {}


def asked(folder: Path, job: dict[str, str]) -> dict[str, Any]:
    """What the daemon is asked about a job."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20.0)  # a verifier that does not ask
        conf = f"address = 127.0.0.1:{listening.getsockname()[1]}\ndeadline = 2\ncluster = c\n"
        with Verifier(folder, conf) as verifier:
            answer = answering(listening, heard)
            verifier.judge(JOB | job)
            answer.join()
    return dict(json.loads(heard[0].partition(b"\r\n\r\n")[2]))


def answering(listening: socket.socket, heard: list[bytes]) -> threading.Thread:
    """A thread that hears one request, and says that nothing is advised."""

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            heard.append(connection.recv(65_536))
            connection.sendall(http(b'{"placed": false, "mode": "shadow"}'))

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_the_daemon_is_asked_for_the_parameters_and_the_clock_that_a_job_states(tmp_path: Path) -> None:
    found = asked(tmp_path, {"ac": "metasched=app=cg,n=5,steps=1e3,solver=amg,checkpoint=60,frequency=2.4e3"})
    assert found["parameters"] == {"steps": "1e3", "solver": "amg"}
    assert found["frequency"] == 2400.0
    assert Ask.model_validate(found).settings.parameters == (("solver", "amg"), ("steps", 1000.0))


def test_the_daemon_is_asked_for_as_many_processes_on_a_node_as_a_job_states(tmp_path: Path) -> None:
    found = asked(
        tmp_path, {"ac": "metasched=app=cg,n=5,processes_per_node=2.0,threads=4", "pe_min": "8", "pe_max": "8"}
    )
    ask = Ask.model_validate(found)
    assert ask.processes_per_node == 2
    # A slot may be a process or a thread, so that the slots say nothing about threads.
    assert "threads" not in found
    assert asked(tmp_path, {"ac": "metasched=app=cg,n=5"}).keys() == found.keys() - {"processes_per_node"}


def test_the_daemon_is_asked_for_the_job_by_its_number(tmp_path: Path) -> None:
    question = asked(tmp_path, {})
    assert abs(question.pop("asked_at") - time.time()) < 3600.0
    assert question == {
        "application": "cg", "problem_size": 1400.0, "scheduler": "c", "user": "0", "name": "job.sh", "job": "7",
        "processors": [2], "partitions": ["new"], "time_limit": 500.0,
    }  # fmt: skip
    found = asked(tmp_path, {"pe_max": "16", "q_hard": "new,old", "ac": "metasched=app=cg,n=5,p=4-99"})
    assert (found["min_processors"], found["max_processors"], found["partitions"]) == (4, 16, ["new", "old"])


def test_it_serves_one_job_after_another_and_leaves_when_it_is_told_to(tmp_path: Path) -> None:
    with closing(Bad(changed())) as daemon, Verifier(tmp_path, f"address = {daemon.address}\ndeadline = 2\n") as jsv:
        states = [jsv.judge(job)[0] for job in (JOB, JOB | {"ac": "x=y"}, JOB)]
        assert states == ["CORRECT", "ACCEPT", "CORRECT"]
        assert jsv.close() == 0


def test_jobs_are_accepted_where_the_verifier_cannot_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python3"
    python.write_text("#!/bin/sh\nexit 127\n")
    python.chmod(0o755)
    monkeypatch.setenv("PATH", str(python.parent), prepend=":")
    with Verifier(tmp_path, "") as verifier:
        assert verifier.judge() == ("ACCEPT", {})
        assert verifier.close() == 0


def test_jobs_are_accepted_where_the_verifier_is_killed(tmp_path: Path) -> None:
    with Verifier(tmp_path, "address = 127.0.0.1:1\n") as verifier:
        assert verifier.judge() == ("ACCEPT", {})
        children = Path(f"/proc/{verifier.process.pid}/task/{verifier.process.pid}/children")
        os.kill(int(children.read_text()), signal.SIGKILL)
        while children.read_text():
            time.sleep(0.01)
        assert verifier.judge() == ("ACCEPT", {})


#: What a user puts into an argument so that the answer about his job is the one about the next job of somebody else.
FORGED = "PARAM ac metasched=app=cg,n=1400\nPARAM N x\nBEGIN"


@pytest.mark.parametrize("site", ["", ACCEPTING])
@pytest.mark.parametrize(
    "text",
    [
        "BEGIN", FORGED, f"{FORGED}\nSTART\n{FORGED}", f"START\n{FORGED}", f"{FORGED}\nSTART", f"{FORGED}\nQUIT",
        "QUIT", f"{FORGED}\n" + f"START\n{FORGED}\n" * 1000 + "x" * 70_000,
    ],
    ids=range(8),
)  # fmt: skip
def test_no_word_of_a_job_is_answered_as_one_of_grid_engine(text: str, site: str, tmp_path: Path) -> None:
    with (
        closing(Bad(changed())) as daemon,
        Verifier(tmp_path, f"address = {daemon.address}\ndeadline = 2\n", site) as verifier,
    ):
        for _ in range(2):
            assert verifier.judge({"CMDARG0": f"x\n{text}"} | JOB) == ("ACCEPT", {})
            assert verifier.judge({name: value for name, value in JOB.items() if name != "ac"}) == ("ACCEPT", {})
        assert verifier.judge()[0] == "CORRECT"
        assert [b"/v1/placements" in head for head in daemon.heads].count(True) == 1
        assert verifier.close() == 0
