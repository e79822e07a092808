"""What a job requests of a real Slurm, by options or in its script, and no placement may break."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.system import real_slurm
from tests.system.bad_daemons import GOOD, Bad, changed
from tests.system.real_slurm import Slurm
from tests.system.test_slurm_failures import MARK

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

#: The fields of a job that a placement changes.
FIELDS = ("Partition", "ReqNodeList", "NumNodes", "TimeLimit", "Comment")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Slurm, Bad]]:
    """A Slurm on which no job starts, and the daemon that its hook asks."""
    if why := real_slurm.why_not():
        pytest.skip(why)
    with real_slurm.running(tmp_path_factory.mktemp("slurm")) as slurm, closing(Bad(changed())) as daemon:
        with (slurm.folder / "slurm.conf").open("a") as conf:
            conf.write("AllowSpecResourcesUsage=yes\n")
        slurm.restart()
        slurm.hooks({"address": daemon.address})
        slurm.stand_still()
        yield slurm, daemon


def submitted(slurm: Slurm, *words: str, said: str = "", comment: str = MARK) -> dict[str, str]:
    """What Slurm knows of a job of two processes, whose script says something."""
    script = f"#!/bin/sh\n{said}\ntrue\n".encode()
    found = slurm.sbatch("-n2", f"--comment={comment}", *words, script=script)
    assert found.job, found.said
    answer = slurm.job(found.job)
    slurm.run("scancel", str(found.job))
    return {name: answer[name] for name in FIELDS}


@pytest.mark.parametrize(
    "words",
    [
        ("--switches=1",), ("--prefer=old",), ("--constraint=old", "--batch=old"), ("--spread-job",), ("--overcommit",),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_job_that_a_placement_would_change_is_left_alone(words: tuple[str, ...], asked: tuple[Slurm, Bad]) -> None:
    slurm, _ = asked
    assert submitted(slurm, *words) | {"Comment": ""} == submitted(slurm, *words, comment="x") | {"Comment": ""}


@pytest.mark.parametrize("said", ["#SBATCH -S1", "#SBATCH --core-spec=1", "#SBATCH --thread-spec 1", "#SBATCH -O"])
def test_a_job_that_says_so_in_its_script_is_left_alone(said: str, asked: tuple[Slurm, Bad]) -> None:
    slurm, _ = asked
    assert submitted(slurm, said=said) | {"Comment": ""} == submitted(slurm, said=said, comment="x") | {"Comment": ""}


@pytest.mark.parametrize(
    ("words", "said", "limit"),
    [
        (("--time=0",), "", "UNLIMITED"),
        (("--time=10",), "#SBATCH --signal=B:USR1@300", "00:10:00"),
        ((), "#SBATCH -J night --signal USR1@300", "00:05:00"),
        (("--time=10",), "true\n#SBATCH --signal=B:USR1@300", "00:02:00"),  # which sbatch does not read
        (("--time=10",), "#SBATCH --job-name=--signal", "00:02:00"),
    ],
)
def test_a_job_without_a_limit_or_that_gets_a_signal_before_its_limit_keeps_it(
    words: tuple[str, ...], said: str, limit: str, asked: tuple[Slurm, Bad]
) -> None:
    answer = submitted(asked[0], *words, said=said)
    assert (answer["ReqNodeList"], answer["TimeLimit"]) == (GOOD["nodes"], limit)


def test_a_job_whose_environment_has_it_sent_a_signal_keeps_its_limit(
    asked: tuple[Slurm, Bad], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(asked[0].environment, "SBATCH_SIGNAL", "USR1@300")
    assert submitted(asked[0], "--time=10")["TimeLimit"] == "00:10:00"


@pytest.mark.parametrize(("word", "alone"), [("--mem=0", True), ("--mem=10", None), ("--nice=1", None)])
def test_a_job_that_takes_all_memory_of_its_nodes_is_asked_for_as_one_that_shares_them_with_none(
    word: str, alone: bool | None, asked: tuple[Slurm, Bad]
) -> None:
    slurm, daemon = asked
    submitted(slurm, word)
    assert json.loads(daemon.asked[-1]).get("exclusive") is alone
