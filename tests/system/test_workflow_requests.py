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
from tests.free_ports import free_port
from tests.schedulers.oar_answers import RESOURCES
from tests.service.daemons import teach
from tests.system.real_daemon import ROOT, Daemon

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


#: Evaluates the rules by TPV itself, and prints what the job's destination gets. Galaxy's packages take too long to
#: install: TPV gets stand-ins for the classes of Galaxy that it imports.
DRY_RUN = """
import sys
import types
from unittest.mock import MagicMock

class Galaxy(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        above = (Exception,) if name.endswith("Exception") else ()
        made = type(name, above, {"__init__": lambda self, *words, **fields: self.__dict__.update(fields)})
        setattr(self, name, made)
        return made

for name in ("", ".app", ".jobs", ".jobs.mapper", ".model", ".tools", ".util", ".tool_util", ".tool_util.version"):
    sys.modules["galaxy" + name] = Galaxy("galaxy" + name)
    if name:
        above, _, last = ("galaxy" + name).rpartition(".")
        setattr(sys.modules[above], last, sys.modules["galaxy" + name])
sys.modules["galaxy.util"].asbool = bool

from tpv.core.loader import TPVConfigLoader
from tpv.core.mapper import EntityToDestinationMapper

tool = MagicMock(id="cg", version="1", dynamic_tool=None, resource_requirements=[], requirements=[])
mapper = EntityToDestinationMapper(TPVConfigLoader.from_url_or_path("rules.yml"))
found = mapper.map_to_destination(MagicMock(), tool, None, MagicMock(input_datasets=[], param_values={}))
print(found.params.get("nativeSpecification"))
"""


@pytest.fixture(scope="module")
def tpv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of an environment with TPV: that of METASCHED_TPV, or a new one."""
    if "METASCHED_TPV" in os.environ:
        return Path(os.environ["METASCHED_TPV"]) / "bin" / "python"
    folder = tmp_path_factory.mktemp("tpv")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    needed = ("total-perspective-vortex>=3,<4", "sqlalchemy", "packaging")
    words = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *needed]
    if subprocess.run(words, check=False, capture_output=True, timeout=400).returncode:
        pytest.skip("total-perspective-vortex cannot be installed from PyPI")
    return folder / "bin" / "python"


@pytest.mark.parametrize("there", [True, False])
def test_a_rule_of_tpv_sets_partition_and_time(there: bool, tpv: Path, asked: Asked, tmp_path: Path) -> None:
    address = asked.daemon.socket if there else "/nowhere/d.sock"
    (tmp_path / "rules.yml").write_text(block("# Galaxy TPV").replace("/run/metasched/metasched.sock", address))
    done = subprocess.run(
        [str(tpv), "-c", DRY_RUN], cwd=tmp_path, capture_output=True, text=True, timeout=200,
        env=os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.strip().splitlines()[-1]
    assert re.fullmatch(r"-p (old|new) -t \d+", said) if there else said == "None"
