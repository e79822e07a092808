"""Snakemake, Parsl and Dask-jobqueue as they are installed from PyPI, in an environment without metasched's needs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.client.test_advice import GOOD
from tests.system.bad_daemons import Bad, http

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("snakemake>=9,<10", "parsl", "dask-jobqueue>=0.9,<1")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment with the workflow systems: that of METASCHED_WORKFLOWS, or a new one."""
    if "METASCHED_WORKFLOWS" in os.environ:
        return Path(os.environ["METASCHED_WORKFLOWS"]) / "bin" / "python"
    folder = tmp_path_factory.mktemp("workflows")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *NEEDED], check=True)
    return folder / "bin" / "python"


@pytest.fixture
def daemon() -> Iterator[str]:
    """A daemon that sends every task to the partition new, for two minutes."""
    body = http(json.dumps(GOOD).encode())
    with closing(Bad(lambda link: link.sendall(body))) as bad:
        yield f"http://{bad.address}"


def page(name: str) -> str:
    """The block of the page that a comment in its first line names."""
    blocks = re.findall(r"```text\n(# .*?)```", (ROOT / "docs" / "workflows.md").read_text(), re.DOTALL)
    (found,) = (block for block in blocks if block.startswith(f"# {name}"))
    return found.replace("/run/metasched/metasched.sock", "DAEMON")


def run(python: Path, folder: Path, *words: str) -> str:
    environment = dict(os.environ, PYTHONPATH=str(ROOT), HOME=str(folder), XDG_CACHE_HOME=str(folder))
    done = subprocess.run(
        [str(python), *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def snaked(python: Path, folder: Path, daemon: str) -> list[str]:
    rule = '\nrule all:\n    default_target: True\n    input: "field.500"\n'
    (folder / "Snakefile").write_text(page("Snakefile").replace("DAEMON", daemon) + rule)
    (folder / "solve").write_text("#!/bin/sh\necho $2 $3 >$1\n")
    (folder / "solve").chmod(0o755)
    run(python, folder, "-m", "snakemake", "--cores", "2", "--quiet")
    return (folder / "field.500").read_text().split()


def test_snakemake_asks_for_partition_and_runtime(python: Path, daemon: str, tmp_path: Path) -> None:
    assert snaked(python, tmp_path, daemon) == ["new", "2"]


def test_snakemake_goes_on_without_a_daemon(python: Path, tmp_path: Path) -> None:
    assert snaked(python, tmp_path, "/nowhere/d.sock") == ["batch", "60"]


PARSL = """
import parsl
from parsl.config import Config
from parsl.executors import ThreadPoolExecutor
parsl.load(Config(executors=[ThreadPoolExecutor(label=label) for label in ("site_new", "site_old")]))
"""


def test_parsl_runs_a_task_where_it_is_advised_to(python: Path, daemon: str, tmp_path: Path) -> None:
    asked = "\nimport threading\nprint(solve_at(500, 2).result())\nparsl.dfk().cleanup()\n"
    for address, label in ((daemon, "site_new"), ("/nowhere/d.sock", "site_old")):
        (tmp_path / "flow.py").write_text(PARSL + page("Parsl").replace("DAEMON", address) + asked)
        assert label in run(python, tmp_path, "flow.py")


def test_a_cluster_of_dask_gets_its_queue_and_walltime(python: Path, daemon: str, tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(page("Dask").replace("DAEMON", daemon) + "\nprint(cluster.job_script())\n")
    script = run(python, tmp_path, "flow.py")
    assert "#SBATCH -p new" in script
    assert "#SBATCH -t 0:02:00" in script
