"""OpenPBS's hook in a stand-in of its server: what it changes, and that it accepts every event."""

from __future__ import annotations

import json
import socket
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.pbs_hook import JOB, JOBOBIT, changed, hooked
from tests.deploy.test_epilog import answering, pythons
from tests.deploy.test_job_verifier import answering as question
from tests.system import bad_daemons
from tests.system.bad_daemons import Bad


def placed(folder: Path, conf: str = "nodes = b[1-4]\n", breaks: str = "", answer: dict[str, Any] | None = None,
           **job: Any) -> dict[str, Any]:  # fmt: skip
    """What is changed of the job, with these parts instead of others, by a sound answer."""
    with closing(Bad(bad_daemons.changed(**(answer or {})))) as daemon:
        return changed(folder, f"address = {daemon.address}\ndeadline = 2\n{conf}", JOB | job, breaks=breaks)


MARKED = "app=cg:n=1400:p=2:placement=0f"


def test_a_job_is_bound_to_hosts_with_as_much_memory_for_each_processor_and_its_mark_completed(tmp_path: Path) -> None:
    select = "1:ncpus=1:mem=1048576kb:host=b1+1:ncpus=1:mem=1048576kb:host=b2"
    assert placed(tmp_path) == {"select": select, "mark": MARKED}
    one = {"nodes": "b3", "node_count": 1}
    found = placed(tmp_path, Resource_List={"select": "1:ncpus=2:mpiprocs=2"}, answer=one)
    assert found == {"select": "1:ncpus=2:mpiprocs=2:host=b3", "mark": MARKED}


def test_the_number_of_processors_is_advised_where_the_mark_leaves_it_open(tmp_path: Path) -> None:
    variables = {"METASCHED": "app=cg:n=1400:p=2-16"}
    mine = {"Variable_List": variables, "answer": {"processors": 5}}
    assert placed(tmp_path, **mine)["select"] == "1:ncpus=3:mem=3145728kb:host=b1+1:ncpus=2:mem=2097152kb:host=b2"
    mine["answer"] = {"processors": 5, "steer": "partition"}
    assert placed(tmp_path, **mine)["select"] == "5:ncpus=1:mem=1048576kb"


@pytest.mark.parametrize(("conf", "steer"), [("", "nodes"), ("nodes = b[1-4]\n", "partition")])
def test_without_nodes_in_the_settings_or_in_the_steering_a_job_gets_a_queue_only(
    conf: str, steer: str, tmp_path: Path
) -> None:
    assert placed(tmp_path, conf + "queues = old,new\n", answer={"steer": steer}, queue=None) == {
        "queue": "new", "mark": MARKED,
    }  # fmt: skip


def test_a_job_without_a_queue_stays_in_the_default_queue(tmp_path: Path) -> None:
    assert placed(tmp_path, queue=None) == {}
    assert placed(tmp_path, queue=None, answer={"partition": "old"})["queue"] == "old"


@pytest.mark.parametrize(
    "job",
    [
        {"Variable_List": {}}, {"Variable_List": {"METASCHED": "off"}}, {"Variable_List": {"METASCHED": "app=cg:n=x"}},
        {"array_indices_submitted": "0-9"}, {"interactive": 1}, {"depend": "afterok:3"}, {"Execution_Time": 2e9},
        {"Hold_Types": "u"}, {"Resource_List": {"select": "1:ncpus=2:ngpus=1"}},
        {"Resource_List": {"select": "1:ncpus=1+1:ncpus=1"}}, {"Resource_List": {"select": "2:ncpus=1", "ngpus": 2}},
        {"Resource_List": {"select": "2:ncpus=1", "place": "pack"}}, {"Resource_List": {"select": "1:ncpus=1:host=b1"}},
        {"Resource_List": {"select": "1:ncpus=4:mpiprocs=2"}}, {"Resource_List": {"nodes": "2"}},
    ],
    ids=str,
)  # fmt: skip
def test_other_jobs_are_left_alone(job: dict[str, Any], tmp_path: Path) -> None:
    assert placed(tmp_path, **job) == {}


@pytest.mark.parametrize("breaks", ["queue"])
def test_what_the_server_refuses_is_taken_back_altogether(breaks: str, tmp_path: Path) -> None:
    assert placed(tmp_path, breaks=breaks) == {}


def test_a_queue_that_the_server_does_not_have_is_not_followed(tmp_path: Path) -> None:
    assert placed(tmp_path, queue=None, conf="queues = gold\n", answer={"partition": "gold"}) == {}


def test_every_event_is_accepted_though_the_shared_files_are_missing(tmp_path: Path) -> None:
    found = hooked(tmp_path, "", shared=False)
    assert "No module named" in found["said"][0]
    hooked(tmp_path, "", ENDED, event=JOBOBIT, shared=False)


def test_the_daemon_is_asked_for_the_job_with_its_limit_and_queue(tmp_path: Path) -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        waiting = question(listening, heard)
        conf = f"address = 127.0.0.1:{listening.getsockname()[1]}\ndeadline = 2\ncluster = c\n"
        assert changed(tmp_path, conf) == {}
        waiting.join()
    asked = json.loads(heard[0].partition(b"\r\n\r\n")[2])
    assert abs(asked.pop("asked_at") - time.time()) < 3600.0
    assert asked == {
        "application": "cg", "problem_size": 1400.0, "scheduler": "c", "user": "0", "name": "job.sh",
        "processors": [2], "partitions": ["new"], "time_limit": 500.0, "annotated": True,
    }  # fmt: skip


ENDED = JOB | {
    "id": "7.pbs", "Job_Owner": "root@login", "Exit_status": 0, "stime": 1_700_000_100, "qtime": 1_700_000_000,
    "exec_vnode": "(b1[0]:ncpus=2+b1[1]:ncpus=1)+(b2:ncpus=1:mem=4kb)",
}  # fmt: skip


def test_a_job_that_has_ended_is_kept_until_the_daemon_has_taken_it(tmp_path: Path) -> None:
    hooked(tmp_path, "address = 127.0.0.1:1\ncluster = c\n", ENDED, event=JOBOBIT)
    (path,) = tmp_path.glob("ended.7.*.json")
    job = json.loads(path.read_text())
    end = job.pop("end")
    assert job == {
        "scheduler": "c", "job": "7", "comment": "metasched:app=cg,n=1400", "partition": "new", "nodes": "b1,b2",
        "processors": 4, "start": 1_700_000_100.0, "exit_status": 0, "user": "0", "name": "job.sh",
        "numbers": "", "submitted": 1_700_000_000.0,
    }  # fmt: skip
    assert end > job["start"]
    with answering(lambda job: 200) as (address, told):
        hooked(tmp_path, f"address = {address}\ndeadline = 2\ncluster = c\n", ENDED | {"id": "8.pbs"}, event=JOBOBIT)
    assert sorted(told) == ["7", "8"]
    assert list(tmp_path.glob("ended.*.json")) == []


@pytest.mark.parametrize(("status", "told"), [(3, 3), (271, 143), (-2, 1)])
def test_exit_statuses_are_those_of_shells(status: int, told: int, tmp_path: Path) -> None:
    hooked(tmp_path, "address = 127.0.0.1:1\n", ENDED | {"Exit_status": status}, event=JOBOBIT)
    (path,) = tmp_path.glob("ended.7.*.json")
    assert json.loads(path.read_text())["exit_status"] == told


def test_a_job_that_never_started_and_events_that_are_not_ours_are_accepted(tmp_path: Path) -> None:
    hooked(tmp_path, "", ENDED | {"stime": None}, event=JOBOBIT)
    hooked(tmp_path, "", JOB, event=64)
    assert list(tmp_path.glob("ended.*")) == []


@pytest.mark.parametrize("python", pythons())
def test_every_python_from_3_6_on_runs_it(python: str, tmp_path: Path) -> None:
    with closing(Bad(bad_daemons.changed())) as daemon:
        conf = f"address = {daemon.address}\ndeadline = 2\nnodes = b[1-4]\n"
        assert hooked(tmp_path, conf, python=python)["job"]["mark"] == MARKED
