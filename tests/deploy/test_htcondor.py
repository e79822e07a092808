"""HTCondor's side: the loads that a host publishes, and expressions that the real ClassAd library evaluates."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sampled_agent import sampled_agent

from tests.system.bad_daemons import FAULTS, Bad

classad2 = pytest.importorskip("classad2", reason="the htcondor package is not installed")

DEPLOYED = Path(__file__).resolve().parents[2] / "deploy"
FRESH = {"MetaschedAvailCPU": 0.75, "MetaschedAvailBW": 940.5}
NOTHING = {"MetaschedAvailCPU": None, "MetaschedAvailBW": None}


def published(folder: Path, conf: str) -> dict[str, Any]:
    """The attributes that the cron job publishes, as HTCondor's own parser reads them; None where undefined."""
    shutil.copy(DEPLOYED / "htcondor" / "metasched_loads.py", folder)
    shutil.copy(DEPLOYED / "hooks" / "metasched_hooks.py", folder)
    (folder / "hooks.conf").write_text(conf)
    words = [sys.executable, "-IS", str(folder / "metasched_loads.py")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    *lines, last = done.stdout.splitlines()
    assert last == "- update:true"
    found = classad2.parseOne("\n".join(lines))
    return {name: None if found[name] == classad2.Value.Undefined else found[name] for name in found}


@pytest.mark.parametrize(("age", "expected"), [(5.0, FRESH), (900.0, NOTHING)])
def test_the_agents_last_sample_is_published_unless_it_is_old(
    age: float, expected: dict[str, Any], tmp_path: Path
) -> None:
    with sampled_agent(tmp_path, age) as conf:
        assert published(tmp_path, conf) == expected
        (tmp_path / "token").write_text("another")
        assert published(tmp_path, conf) == NOTHING


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_agent_leaves_the_values_undefined(fault: str, tmp_path: Path) -> None:
    with closing(Bad(FAULTS[fault])) as agent:
        assert published(tmp_path, f"address = {agent.address}\ndeadline = 0.2\n") == NOTHING


def test_without_an_agent_or_settings_the_values_are_undefined(tmp_path: Path) -> None:
    assert published(tmp_path, "address = 127.0.0.1:1\n") == NOTHING
    assert published(tmp_path, "address = nowhere\noldest = soon\n") == NOTHING


def transformed(job: str) -> Any:
    """A job's ClassAd after the transforms of the deployed configuration, as the schedd carries them out."""
    found = classad2.parseOne(job)
    text = (DEPLOYED / "htcondor" / "metasched.conf").read_text()
    rules = re.findall(r"JOB_TRANSFORM_\w+ @=end\n\s+REQUIREMENTS (.*)\n\s+SET (\w+) (.*)\n@end", text)
    assert [name for _, name, _ in rules] == ["Rank", "Requirements"]
    for condition, name, value in rules:
        if classad2.ExprTree(condition).eval(found) is True:
            found[name] = classad2.ExprTree(value.replace("$(MY.Requirements)", str(found.lookup("Requirements"))))
    return found


JOB = 'Metasched = "app=cg,n=1400"\nRank = 0.0\nRequirements = TARGET.Memory > 1000\n'


def rank(job: Any, machine: str) -> float:
    return float(job.lookup("Rank").eval(job, classad2.parseOne(machine)))


def test_a_marked_job_prefers_machines_on_which_most_is_available() -> None:
    job = transformed(JOB)
    machines = [
        "Memory = 2000",
        "MetaschedAvailCPU = undefined\nMetaschedAvailBW = undefined\nMips = 20000",
        "MetaschedAvailCPU = 0.2\nMetaschedAvailBW = 900.0\nMips = 10000",
        "MetaschedAvailCPU = 0.9\nMetaschedAvailBW = 100.0\nMips = 10000",
        "MetaschedAvailCPU = 0.9\nMetaschedAvailBW = 900.0\nMips = 10000",
        "MetaschedAvailCPU = 0.6\nMetaschedAvailBW = 100.0\nMips = 20000",
    ]
    ranks = [rank(job, machine) for machine in machines]
    assert ranks == sorted(ranks)
    assert ranks[:2] == [0.0, 0.0]
    assert len(set(ranks)) == 5


OTHERS = (
    JOB.replace("Rank = 0.0", "Rank = TARGET.Mips"),
    JOB.replace("app=cg,n=1400", "off"),
    "Rank = 0.0\nRequirements = true",
)


@pytest.mark.parametrize("job", OTHERS, ids=["of its own", "off", "without a mark"])
def test_other_jobs_keep_their_rank(job: str) -> None:
    assert str(transformed(job).lookup("Rank")) == str(classad2.parseOne(job).lookup("Rank"))


@pytest.mark.parametrize(
    ("machine", "matches"),
    [
        ('Memory = 2000\nMetaschedPartition = "new"', True), ('Memory = 10\nMetaschedPartition = "new"', False),
        ('Memory = 2000\nMetaschedPartition = "old"', False), ("Memory = 2000", False),
    ],
)  # fmt: skip
def test_a_job_keeps_to_the_partition_that_was_chosen_and_to_its_own_requirements(machine: str, matches: bool) -> None:
    job = transformed(JOB + 'MetaschedPartition = "new"\n')
    assert job.lookup("Requirements").eval(job, classad2.parseOne(machine)) is matches


def test_machines_that_name_no_partition_are_the_pool() -> None:
    job = transformed(JOB + 'MetaschedPartition = "pool"\n')
    assert job.lookup("Requirements").eval(job, classad2.parseOne("Memory = 2000")) is True


def test_a_mark_in_an_ad_is_what_the_daemon_reads() -> None:
    printed = json.loads(transformed(JOB).printJson())
    assert printed["Metasched"] == "app=cg,n=1400"
