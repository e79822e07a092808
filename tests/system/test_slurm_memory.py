"""What a real Slurm that counts memory has to spare, and starts, is what its partitions are said to have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from metasched.placement.clusters.constraints import Constraints
from metasched.schedulers.slurm.source import SlurmSource
from metasched.service.advice.usual_memory import with_usual_memory
from tests.system import real_slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

SLEEP = b"#!/bin/sh\nsleep 120\n"
ALL, SHARE = {"a1": 3, "a2": 3, "a3": 3, "a4": 4}, {"a1": 0, "a2": 1, "a3": 3, "a4": 4}


@contextmanager
def configured(folder: Path, settings: str) -> Iterator[real_slurm.Slurm]:
    """A real Slurm whose ``SelectTypeParameters``, and the lines after them, are some settings."""
    if why := real_slurm.why_not():
        pytest.skip(why)
    with real_slurm.running(folder, bare=True) as slurm:
        conf = slurm.folder / "slurm.conf"
        conf.write_text(conf.read_text().replace("=CR_Core\n", f"={settings}\n"))
        slurm.restart()
        yield slurm


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
    with configured(tmp_path, settings) as slurm:
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


REQUESTS = (
    ({"memory_per_processor": 250.0}, ("-n2", "--mem-per-cpu=250")),
    ({"memory_per_processor": 260.0}, ("-n2", "--mem-per-cpu=260")),
    ({"memory_per_processor": 500.0}, ("-n2", "--mem-per-cpu=500")),
    ({"memory": 250.0, "per_node": 1}, ("-n2", "-N2", "--mem=250")),
    ({"memory": 500.0, "per_node": 2}, ("-n2", "-N1", "--mem=500")),
    ({"memory": 900.0, "per_node": 2}, ("-n2", "-N1", "--mem=900")),
)


@pytest.mark.parametrize(
    "settings",
    [
        "CR_Core\nMaxMemPerCPU=250",
        "CR_Core_Memory\nMaxMemPerNode=400",
        "CR_Core_Memory\nMaxMemPerNode=10\nPartitionName=DEFAULT MaxMemPerCPU=250",
    ],
)
def test_the_jobs_that_get_the_processors_which_they_request_are_those_within_the_limits_of_memory(
    tmp_path: Path, settings: str
) -> None:
    with configured(tmp_path, settings) as slurm:
        (old,) = SlurmSource("c", ["old"], configuration=str(slurm.folder / "slurm.conf")).partitions()
        admitted = [old.memory_limits.admit(Constraints(**demands)) for demands, _ in REQUESTS]
        found = []
        for _, words in REQUESTS:
            job = slurm.sbatch(*words, script=SLEEP).job
            slurm.wait(lambda job=job: slurm.job(job)["JobState"] == "RUNNING" or "Max" in slurm.job(job)["Reason"])
            told = slurm.job(job)
            found.append(told["JobState"] == "RUNNING" and told["NumCPUs"] == "2")
            slurm.run("scancel", str(job))
    assert admitted == found
    assert set(found) == {True, False}


def test_what_nodes_keep_for_the_system_is_offered_to_nobody(tmp_path: Path) -> None:
    with configured(tmp_path, "CR_Core_Memory") as slurm:
        conf = slurm.folder / "slurm.conf"
        kept = "RealMemory=1000 MemSpecLimit=300 CoreSpecCount=1"
        conf.write_text(conf.read_text().replace("RealMemory=1000", kept))
        slurm.restart()
        (old,) = SlurmSource("c", ["old"], configuration=str(conf)).partitions()
        assert set(old.state.memory) == {700.0}
        assert set(old.state.processors) == {3}
        fits = slurm.sbatch("-n3", "-N1", "--mem=700", "--nodelist=a1", script=SLEEP).job
        slurm.wait(lambda: slurm.job(fits)["JobState"] == "RUNNING")
        assert not slurm.sbatch("-n1", "--mem=701", "--nodelist=a2", script=SLEEP).job
