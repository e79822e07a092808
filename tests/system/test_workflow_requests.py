"""The examples of docs/workflows.md that ask by HTTP or by a rule of Galaxy's TPV, with a real daemon."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from metasched.store.database.store import Store
from tests.schedulers.oar_answers import RESOURCES
from tests.service.daemons import teach
from tests.system.real_daemon import ROOT, Daemon
from tests.system.test_sites import free_port

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed"),
]

PAGE = (ROOT / "docs" / "workflows.md").read_text()
CONFIGURATION = """
[periods]
partitions = 0.5
[[oar]]
name = "oar"
property = "cluster"
"""


@dataclass
class Asked:
    """A daemon that answers, by its port, and a token of a reader."""

    daemon: Daemon
    token: str

    def run(self, script: str, *words: str) -> str:
        script = script.replace("http://metasched:8765", f"http://127.0.0.1:{self.daemon.port}")
        environment = os.environ | {"METASCHED_TOKEN": self.token}
        done = subprocess.run(
            ["bash", "-c", script, "advised", *words], env=environment, capture_output=True, text=True, timeout=60
        )
        return done.stdout


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """A daemon of a server of OAR that scripts stand for, with the partitions old and new."""
    folder = tmp_path_factory.mktemp("daemon")
    (folder / "resources").write_text(json.dumps({str(each["resource_id"]): each for each in RESOURCES}))
    for name, does in (("oarnodes", f"cat {folder}/resources"), ("oarstat", "true")):
        (folder / name).write_text(f"#!/bin/sh\n{does}\n")
        (folder / name).chmod(0o755)
    with Store.open(folder / "metasched.db") as store:
        teach(store, "oar")
        token = store.tokens.add("workflow", "reader")
    daemon = Daemon(folder, CONFIGURATION, port=free_port())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(folder), prepend=":")
        daemon.start()
        try:
            yield Asked(daemon, token)
        finally:
            daemon.stop()


def block(name: str) -> str:
    """The block of the page that has this in its first two lines."""
    found = [
        each for each in re.findall(r"```\w+\n(.*?)```", PAGE, re.DOTALL) if name in "".join(each.splitlines()[:2])
    ]
    (one,) = found
    return str(one)


def test_the_request_is_answered_with_a_partition_and_a_time_limit(asked: Asked) -> None:
    answer = json.loads(asked.run(block("curl --silent --max-time 2")))
    assert (answer["placed"], answer["processors"]) == (True, 4)
    assert answer["partition"] in ("old", "new")
    assert answer["time_limit"] > 0
    assert asked.daemon.ask("GET", "/v1/placements?limit=10") == []


def test_the_script_for_nextflow_prints_partition_and_minutes_or_the_workflows_own(asked: Asked) -> None:
    partition, minutes = asked.run(block("bin/advised SIZE"), "500").split()
    assert partition in ("old", "new")
    assert int(minutes) >= 1
    for size in ("many", "-5"):
        assert asked.run(block("bin/advised SIZE"), size).split() == ["batch", "60"]
    asked.daemon.stop()
    try:
        assert asked.run(block("bin/advised SIZE"), "500").split() == ["batch", "60"]
    finally:
        asked.daemon.start()


#: Evaluates the rules by TPV itself, and prints what the job's destination gets.
DRY_RUN = """
from tpv.commands.dryrunner import TPVDryRunner
destination, _ = TPVDryRunner.from_params(tool_id="cg", tpv_confs=["rules.yml"], job_conf="job_conf.yml").run()
print(destination.params.get("nativeSpecification"))
"""
JOB_CONF = """
runners:
  slurm: {load: "galaxy.jobs.runners.slurm:SlurmJobRunner"}
execution:
  default: tpv
  environments:
    tpv: {runner: dynamic, type: python, function: map_tool_to_destination, rules_module: tpv.rules}
"""


@pytest.fixture(scope="module")
def tpv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment with TPV and what it needs of Galaxy: that of METASCHED_TPV, or a new one."""
    if "METASCHED_TPV" in os.environ:
        return Path(os.environ["METASCHED_TPV"]) / "bin" / "python"
    folder = tmp_path_factory.mktemp("tpv")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    words = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "total-perspective-vortex[cli]>=3,<4"]
    if subprocess.run(words, check=False, capture_output=True, timeout=400).returncode:
        pytest.skip("total-perspective-vortex[cli] cannot be installed from PyPI")
    return folder / "bin" / "python"


@pytest.mark.parametrize("there", [True, False])
def test_a_rule_of_tpv_sets_partition_and_time(there: bool, tpv: Path, asked: Asked, tmp_path: Path) -> None:
    address = asked.daemon.socket if there else "/nowhere/d.sock"
    (tmp_path / "rules.yml").write_text(block("# Galaxy TPV").replace("/run/metasched/metasched.sock", address))
    (tmp_path / "job_conf.yml").write_text(JOB_CONF)
    done = subprocess.run(
        [str(tpv), "-c", DRY_RUN], cwd=tmp_path, capture_output=True, text=True, timeout=200,
        env=os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.strip().splitlines()[-1]
    assert re.fullmatch(r"-p (old|new) -t \d+", said) if there else said == "None"
