"""What a real Slurm that counts memory has to spare, and starts, is what its partitions are said to have."""

from __future__ import annotations

from pathlib import Path

import pytest

from metasched.placement.clusters.constraints import Constraints
from metasched.schedulers.slurm.source import SlurmSource
from tests.system import real_slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

SLEEP = b"#!/bin/sh\nsleep 120\n"


@pytest.mark.parametrize("counted", [True, False])
def test_memory_that_jobs_have_is_offered_to_no_other(tmp_path: Path, counted: bool) -> None:
    if why := real_slurm.why_not():
        pytest.skip(why)
    with real_slurm.running(tmp_path, bare=True) as slurm:
        if counted:
            conf = slurm.folder / "slurm.conf"
            conf.write_text(conf.read_text().replace("=CR_Core\n", "=CR_Core_Memory\nDefMemPerCPU=250\n"))
            slurm.restart()
        for node, memory in (("a1", 1000), ("a2", 600), ("a3", 100)):
            slurm.sbatch("-n1", f"--mem={memory}", f"--nodelist={node}", script=SLEEP)
        slurm.wait(lambda: slurm.run("squeue", "-h", "-t", "running").count("\n") == 3)
        (old,) = SlurmSource("c", ["old"], configuration=str(slurm.folder / "slurm.conf")).partitions()
        assert old.counts_memory is counted
        demand = Constraints(memory_per_processor=old.memory_per_processor)
        offered = dict(zip(old.state.nodes, demand.offered(old.state).tolist(), strict=True))
        assert offered == ({"a1": 0, "a2": 1, "a3": 3, "a4": 4} if counted else {"a1": 3, "a2": 3, "a3": 3, "a4": 4})
        # Slurm starts that many jobs of one processor at once on each, and no more.
        for node, count in offered.items():
            for _ in range(count + 1):
                slurm.sbatch("-n1", f"--nodelist={node}", script=SLEEP)
        started = sum(offered.values()) + 3
        slurm.wait(lambda: slurm.run("squeue", "-h", "-t", "running").count("\n") == started)
        where = slurm.run("squeue", "-h", "-t", "running", "-o", "%N").split()
        assert {node: where.count(node) - (node != "a4") for node in offered} == offered
        assert slurm.run("squeue", "-h", "-t", "pending").count("\n") == len(offered)
