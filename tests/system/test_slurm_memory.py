"""What a real Slurm that counts memory has to spare, and starts, is what its partitions are said to have."""

from __future__ import annotations

from pathlib import Path

import pytest

from metasched.placement.clusters.constraints import Constraints
from metasched.schedulers.slurm.source import SlurmSource
from metasched.service.advice.usual_memory import with_usual_memory
from tests.system import real_slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

SLEEP = b"#!/bin/sh\nsleep 120\n"


ALL, SHARE = {"a1": 3, "a2": 3, "a3": 3, "a4": 4}, {"a1": 0, "a2": 1, "a3": 3, "a4": 4}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("CR_Core", ALL),
        ("CR_Core_Memory\nDefMemPerCPU=250", SHARE),
        ("CR_Core_Memory\nDefMemPerNode=900\nPartitionName=DEFAULT DefMemPerCPU=250", SHARE),
        ("CR_Core_Memory", {"a1": 0, "a2": 0, "a3": 0, "a4": 4}),  # a job that states none gets all memory of its nodes
    ],
)
def test_memory_that_jobs_have_is_offered_to_no_other(tmp_path: Path, settings: str, expected: dict[str, int]) -> None:
    if why := real_slurm.why_not():
        pytest.skip(why)
    with real_slurm.running(tmp_path, bare=True) as slurm:
        conf = slurm.folder / "slurm.conf"
        conf.write_text(conf.read_text().replace("=CR_Core\n", f"={settings}\n"))
        slurm.restart()
        for node, memory in (("a1", 1000), ("a2", 600), ("a3", 100)):
            slurm.sbatch("-n1", f"--mem={memory}", f"--nodelist={node}", script=SLEEP)
        slurm.wait(lambda: slurm.run("squeue", "-h", "-t", "running").count("\n") == 3)
        (old,) = SlurmSource("c", ["old"], configuration=str(slurm.folder / "slurm.conf")).partitions()
        offered = with_usual_memory(Constraints(), [old]).offered(old.state)
        assert dict(zip(old.state.nodes, offered.tolist(), strict=True)) == expected
        # A job of so many processors starts at once on each node, one of more does not.
        for node, count in expected.items():
            more = slurm.sbatch(f"-n{count + 1}", "-N1", f"--nodelist={node}", script=SLEEP).job
            slurm.wait(lambda job=more: not job or slurm.job(job)["Reason"] == "Resources")
            if more:
                slurm.run("scancel", str(more))
            if count:
                fits = slurm.sbatch(f"-n{count}", "-N1", f"--nodelist={node}", script=SLEEP).job
                slurm.wait(lambda job=fits: slurm.job(job)["JobState"] == "RUNNING")
