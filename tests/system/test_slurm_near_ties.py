"""Near ties on a real Slurm: a job is submitted to all partitions that may complete it first, and starts in one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.system.placing_daemon import placing
from tests.system.real_slurm import NODES, Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

#: Slurm is asked for its nodes once only: the daemon does not see that a partition is full by now.
CONFIGURATION = (
    'mode = "act"\nseveral_partitions = true\n[periods]\npartitions = 3600.0\n'
    '[[slurm]]\nname = "proof"\nconfiguration = "{}"\n'
)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    # One partition is a little better.
    cpu = {node: 0.9 if node.startswith("b") else 0.88 for node in NODES}
    with placing(tmp_path_factory.mktemp("site"), CONFIGURATION, cpu) as (slurm, _):
        yield slurm


def submit(slurm: Slurm, *words: str) -> int:
    submitted = slurm.sbatch("-n2", "--comment=metasched:app=cg,n=500", *words, script=b"#!/bin/sh\nsleep 30\n")
    assert submitted.job, submitted.said
    return submitted.job


def partitions(slurm: Slurm, job: int) -> set[str]:
    return set(slurm.job(job)["Partition"].split(","))


def test_a_job_starts_in_the_near_tie_that_has_room(slurm: Slurm) -> None:
    hook = {"socket": (slurm.folder / "hooks.conf").read_text().partition("socket = ")[2].splitlines()[0]}
    better = slurm.sbatch(
        "--partition=new", "-N4", "--exclusive", "--comment=metasched:off", script=b"#!/bin/sh\nsleep 200\n"
    ).job
    slurm.wait(lambda: slurm.job(better)["JobState"] == "RUNNING")
    try:
        slurm.stand_still()
        waiting = submit(slurm)
        answer = slurm.job(waiting)
        assert partitions(slurm, waiting) == {"old", "new"}
        assert (answer["ReqNodeList"], answer["TimeLimit"]) == ("(null)", "00:05:00")
        slurm.stand_still(still=False)
        slurm.wait(lambda: slurm.job(waiting)["JobState"] == "RUNNING", 30.0)
        assert (partitions(slurm, waiting), slurm.job(waiting)["NodeList"][0]) == ({"old"}, "a")
        slurm.run("scancel", str(waiting))
        # Whoever names a partition stays there, and so does who may use the default one only.
        own = submit(slurm, "--partition=new")
        assert partitions(slurm, own) == {"new"}
        slurm.hooks(hook | {"partitions": "default"})
        only = submit(slurm)
        assert partitions(slurm, only) == {"old"}
    finally:
        slurm.stand_still(still=False)
        slurm.run("scancel", "--user=root")
