"""The admission rule of OAR: what it asks, what it changes of a job, and that no job is refused for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.deploy import oar_rule
from tests.deploy.oar_rule import JOB
from tests.system.bad_daemons import Bad, changed

pytestmark = pytest.mark.skipif(bool(oar_rule.why_not()), reason=oar_rule.why_not())

PLACED = {
    "command": "METASCHED=app=cg,n=500,p=2,placement=0f ./cg.sh",
    "jobproperties": "(desktop_computing = 'NO') AND cluster = 'new'",
}


@pytest.fixture
def settings() -> Iterator[str]:
    """Settings with a sound daemon."""
    with closing(Bad(changed())) as daemon:
        yield f"address = {daemon.address}\ndeadline = 2\nproperty = cluster\npartitions = old, new\n"


def test_a_job_gets_a_partition_and_its_placement_and_nothing_else(settings: str, tmp_path: Path) -> None:
    assert oar_rule.changed(tmp_path, settings) == PLACED
    named = {"jobproperties": "(cluster = 'new') AND gpu = 'NO'"}
    assert oar_rule.changed(tmp_path, settings, job=named)["jobproperties"] == (
        "((cluster = 'new') AND gpu = 'NO') AND cluster = 'new'"
    )


@pytest.mark.parametrize(
    "job",
    [
        {"command": "./cg.sh"}, {"command": "METASCHED=off ./cg.sh"}, {"command": None}, {"command": "METASCHED=x"},
        {"command": "METASCHED=app=cg,n=500;reboot ./cg.sh"}, {"command": "METASCHED=app=cg,n=500 " + "x" * 70_000},
        {"jobType": "INTERACTIVE"}, {"job_hold": 1}, {"reservationField": "toSchedule"}, {"anterior_ref": [7]},
        {"type_list": ["deploy"]}, {"array_job_nb": 3}, {"array_params_ref": ["1", "2"]},
        {"jobproperties": "cluster = 'old'"}, {"ref_resource_list": []},
        {"ref_resource_list": JOB["ref_resource_list"] * 2},
        {"ref_resource_list": [[[{"resources": [{"resource": "network_address", "value": 2}]}], None]]},
        {"ref_resource_list": [[[{"resources": [{"resource": "core", "value": "ALL"}]}], None]]},
    ],
    ids=lambda job: str(job)[:60],
)  # fmt: skip
def test_other_jobs_are_left_alone(job: dict[str, Any], settings: str, tmp_path: Path) -> None:
    assert oar_rule.changed(tmp_path, settings, job=job) == {}


def test_a_partition_without_enough_resources_is_not_followed(settings: str, tmp_path: Path) -> None:
    for estimate in ("none", "dies"):
        assert oar_rule.changed(tmp_path, settings, estimate=estimate) == {}
    assert oar_rule.changed(tmp_path, settings, fields=("core",)) == {}


@pytest.mark.parametrize("missing", ["metasched_oar.pl", "metasched_oar.py", "metasched_advice.py"])
def test_files_that_are_missing_change_no_job(missing: str, settings: str, tmp_path: Path) -> None:
    assert oar_rule.changed(tmp_path, settings, missing=missing) == {}


@pytest.mark.parametrize(
    "script",
    [
        "import time; time.sleep(600)", "print('x' * 100000)", "import os; os._exit(3)", "print('cluster')",
        "import sys; sys.stdout.write(\"cluster\\nnew' OR 'a'='a\\nm=1\\n\")",
        "import sys; sys.stdout.write('cluster\\nnew\\nm=1; reboot\\n')",
        "import sys; sys.stdout.write('1=1 OR cluster\\nnew\\nm=1\\n')",
        "import sys, time\nwhile True:\n    sys.stdout.write('c'); sys.stdout.flush(); time.sleep(0.05)",
    ],
)  # fmt: skip
def test_whatever_the_script_prints_becomes_no_sql(script: str, settings: str, tmp_path: Path) -> None:
    rule = tmp_path / "folder"
    rule.mkdir()
    short = (oar_rule.DEPLOYED / "oar" / "metasched_oar.pl").read_text().replace("$DEADLINE = 4", "$DEADLINE = 0.5")
    (tmp_path / "own.pl").write_text(short.replace("'/metasched_oar.py'", "'/../own.py'"))
    (tmp_path / "own.py").write_text(script)
    # The rule loads what lies in this folder under its own name.
    (rule / "metasched_oar.pl").write_text(
        (tmp_path / "own.pl").read_text().replace("dirname(File::Spec->rel2abs(__FILE__))", f"'{rule}'")
    )
    assert oar_rule.changed(rule, settings, missing="metasched_oar.pl") == {}
