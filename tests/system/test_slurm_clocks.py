"""Clocks of processors on a real Slurm: that of a placement is set, and a job that names one itself keeps it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest

from metasched.jobs import read_mark
from metasched.store.database.store import Store
from tests.service.daemons import teach_clocks
from tests.system import real_slurm
from tests.system.placing_daemon import hooked
from tests.system.real_daemon import Daemon
from tests.system.real_slurm import Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

CONFIGURATION = (
    'mode = "act"\n[periods]\npartitions = 1.0\nconfirm = 0.5\n[[slurm]]\nname = "proof"\nconfiguration = "{}"\n'
    '[energy]\npolicy = "min-energy"\nmax_slowdown = 0.5\nfrequencies = [1200, 2000]\nset_frequency = true\n'
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Slurm, Daemon]]:
    if why := real_slurm.why_not():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("daemon")
    with Store.open(folder / "metasched.db") as store:
        teach_clocks(store, "proof")
    with (
        real_slurm.running(tmp_path_factory.mktemp("slurm") / "slurm") as slurm,
        hooked(slurm, folder, CONFIGURATION) as daemon,
    ):
        yield slurm, daemon


@pytest.mark.parametrize(
    ("words", "clocks", "noted"),
    [
        ((), ("1200000", "1200000"), 1200.0),
        (("--cpu-freq=2000000",), (None, "2000000"), 2000.0),
        (("--cpu-freq=1200000-2000000",), ("1200000", "2000000"), None),
        (("--cpu-freq=performance",), (None, None), None),
        (("--cpu-freq=highm1",), (None, "Highm1"), None),
    ],
    ids=lambda value: str(value) if isinstance(value, tuple) else "",
)
def test_each_job_runs_and_is_learned_at_its_clock(
    site: tuple[Slurm, Daemon], words: tuple[str, ...], clocks: tuple[str | None, ...], noted: float | None
) -> None:
    slurm, daemon = site
    submitted = slurm.sbatch(
        "-n2", "--comment=metasched:app=a,n=1500", *words, script=b"#!/bin/sh\nsrun sleep 2\n"
    )  # fmt: skip
    assert submitted.job, submitted.said
    told = slurm.job(submitted.job)
    mark = read_mark(told["Comment"])
    assert mark is not None
    assert (bool(mark.placement), mark.settings.frequency) == (True, noted)
    # The limit of a job whose clock is not known stays as it was.
    assert (told["TimeLimit"] == "00:05:00") is (noted is None)
    step: dict[str, str] = {}

    def runs() -> bool:
        with suppress(subprocess.CalledProcessError):  # there is no step yet
            lines = slurm.run("scontrol", "--oneliner", "show", "step", f"{submitted.job}.0").split()
            step.update(word.split("=", 1) for word in lines if "=" in word)
        return step.get("State") == "RUNNING"

    slurm.wait(runs)
    for known in (told, step):
        assert tuple(known.get(f"CPU_{end}_freq") for end in ("min", "max")) == clocks
    slurm.wait_for([submitted.job])
    found: list[dict[str, object]] = []

    def ended() -> bool:
        found[:] = [each["outcome"] for each in daemon.ask("GET", "/v1/placements") if each["id"] == mark.placement]
        return found[0] is not None

    slurm.wait(ended)
    assert found[0]["frequency"] == noted
