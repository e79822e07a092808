"""What Slurm's commands print becomes partitions and finished jobs; here the commands are scripts that print it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metasched.schedulers.slurm.source import SlurmSource

SINFO = json.loads((Path(__file__).parents[1] / "placement" / "slurm-22.05" / "sinfo.json").read_text())


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "sinfo.json").write_text(json.dumps(SINFO))
    script(
        tmp_path / "sinfo",
        f'case $1 in --json) cat {tmp_path}/sinfo.json;; *) echo "racka|1:00:00"; echo "all|infinite";; esac',
    )
    return tmp_path


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_partitions_have_their_nodes_and_time_limits(commands: Path) -> None:
    racka, every = SlurmSource("c").partitions()
    assert (racka.state.name, racka.scheduler, racka.name, racka.time_limit) == ("c/racka", "c", "racka", 3600.0)
    assert set(racka.state.nodes) < set(every.state.nodes)
    assert every.time_limit is None


def test_a_partition_that_is_not_there_is_named(commands: Path) -> None:
    with pytest.raises(RuntimeError, match="no partition gpu"):
        SlurmSource("c", ["gpu"]).partitions()


def test_finished_jobs_come_from_the_accounting(commands: Path) -> None:
    script(
        commands / "sacct",
        'echo "7|racka|a[1-2]|4|1000|1010|COMPLETED|0:0|1000|990|metasched:app=cg,n=5 | more"\n'
        'echo "8|racka|a1|1|1000|1004|FAILED|3:0|1000|991|x"\n'
        'echo "9|racka|a1|1|1000|1002|CANCELLED by 0|0:15|0|992|"\n'
        'echo "10|racka|None assigned|0|Unknown|1001|CANCELLED by 0|0:0|0|Unknown|"\n',
    )
    jobs = SlurmSource("c").finished(0.0)
    assert [(job.job, job.exit_status) for job in jobs] == [("9", 143), ("8", 3), ("7", 0)]
    assert jobs[2].nodes == ("a1", "a2")
    assert (jobs[2].comment, jobs[2].user, jobs[2].submitted) == ("metasched:app=cg,n=5 | more", "1000", 990.0)


def test_without_accounting_they_come_from_the_controllers_memory(commands: Path) -> None:
    script(commands / "sacct", "echo disabled >&2; exit 1")
    job = {"job_id": 3, "partition": "racka", "nodes": "a1", "cpus": 2, "start_time": 100, "end_time": 200,
           "job_state": "FAILED", "exit_code": 768, "comment": "metasched:app=cg,n=5"}  # fmt: skip
    running = job | {"job_id": 4, "job_state": "RUNNING", "end_time": 900}
    (commands / "squeue.json").write_text(json.dumps({"jobs": [job, running]}))
    script(commands / "squeue", f"cat {commands}/squeue.json")
    (ended,) = SlurmSource("c").finished(150.0)
    assert (ended.job, ended.exit_status, ended.processors) == ("3", 3, 2)
    assert SlurmSource("c").finished(250.0) == []


def test_jobs_ahead_in_the_queue_make_a_partition_wait_until_processors_are_free(commands: Path) -> None:
    def waits() -> list[float]:
        return [float(each.state.queue_wait.at(1)) for each in SlurmSource("c").partitions()]

    free = sum(each.state.processors[each.state.up].sum() for each in SlurmSource("c", ["racka"]).partitions())
    rows = [
        "RUNNING|racka|4|1:40|10:00|None",
        f"PENDING|racka|{free + 4}|INVALID|5:00|Resources",
        "PENDING|all|100000|INVALID|5:00|Dependency",
        "PENDING|all|x|INVALID|5:00|Resources",
    ]
    script(commands / "squeue", "\n".join(f'echo "{row}"' for row in rows))
    assert waits() == [400.0, 0.0]
    script(
        commands / "squeue",
        f'echo "RUNNING|racka,all|4|1:40|10:00|None"; echo "PENDING|all|{free}|0:00|1-0:0:0|JobHeldUser"',
    )
    assert waits() == [0.0, 0.0]
    script(commands / "squeue", "echo down >&2; exit 1")
    assert waits() == [0.0, 0.0]
