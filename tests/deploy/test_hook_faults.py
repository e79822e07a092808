"""Whatever the daemon does, the hook of every scheduler leaves the job as it was: one suite for all of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.deploy import flux_stand_in, oar_rule, pbs_hook
from tests.deploy.job_verifier import Verifier
from tests.system.bad_daemons import FAULTS, Bad, changed
from tests.system.test_lua_hook import LUA, UNCHANGED, driven

#: Hands a job to a hook whose settings name this daemon and a deadline (s), in a folder, and says what was changed.
Submit = Callable[[Path, str, float], dict[str, Any]]
#: Deadlines for answers that never come, and for those that a busy machine may take a while to give (s).
SHORT, LONG = 0.2, 2.0


def to_slurm(folder: Path, daemon: str, deadline: float) -> dict[str, Any]:
    if not shutil.which(LUA):
        pytest.skip(f"{LUA} is not installed")
    job = driven(folder, f"address = {daemon}\ndeadline = {deadline}\n", partition="b[1-4]")
    return {key: value for key, value in job.items() if key != "said" and UNCHANGED.get(key) != value}


def to_grid_engine(folder: Path, daemon: str, deadline: float) -> dict[str, Any]:
    with Verifier(folder, f"address = {daemon}\ndeadline = {deadline}\nnodes = b[1-4]\n") as verifier:
        return verifier.judge()[1]


def to_pbs(folder: Path, daemon: str, deadline: float) -> dict[str, Any]:
    return pbs_hook.changed(folder, f"address = {daemon}\ndeadline = {deadline}\nnodes = b[1-4]\n")


def to_flux(folder: Path, daemon: str, deadline: float) -> dict[str, Any]:
    return flux_stand_in.changed(folder, f"address = {daemon}\ndeadline = {deadline}\nnodes = b[1-4]\n")


def to_oar(folder: Path, daemon: str, deadline: float) -> dict[str, Any]:
    if why := oar_rule.why_not():
        pytest.skip(why)
    settings = f"address = {daemon}\ndeadline = {deadline}\nnodes = b[1-4]\nproperty = cluster\npartitions = old, new\n"
    return oar_rule.changed(folder, settings)


SCHEDULERS = pytest.mark.parametrize("submit", [to_slurm, to_grid_engine, to_pbs, to_flux, to_oar])


@SCHEDULERS
@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_daemon_changes_no_job(submit: Submit, fault: str, tmp_path: Path) -> None:
    with closing(Bad(FAULTS[fault])) as daemon:
        assert submit(tmp_path, daemon.address, SHORT) == {}


@SCHEDULERS
def test_a_daemon_that_is_down_changes_no_job(submit: Submit, tmp_path: Path) -> None:
    with closing(Bad(changed())) as daemon:
        address = daemon.address
    assert submit(tmp_path, "127.0.0.1:1", SHORT) == {}
    assert submit(tmp_path, address.replace("127.0.0.1", "no-such-host.invalid"), SHORT) == {}


@SCHEDULERS
def test_a_sound_answer_is_followed(submit: Submit, tmp_path: Path) -> None:
    with closing(Bad(changed())) as daemon:
        assert submit(tmp_path, daemon.address, LONG) != {}


@SCHEDULERS
def test_a_byte_that_is_no_text_in_the_settings_keeps_no_hook_from_its_work(submit: Submit, tmp_path: Path) -> None:
    with closing(Bad(changed())) as daemon:
        assert submit(tmp_path, f"{daemon.address}\n# caf\udce9\n", LONG) != {}


@SCHEDULERS
@pytest.mark.parametrize("mode", ["shadow", "advise"])
def test_where_the_daemon_does_not_act_nothing_is_changed(submit: Submit, mode: str, tmp_path: Path) -> None:
    with closing(Bad(changed(mode=mode))) as daemon:
        assert submit(tmp_path, daemon.address, LONG) == {}
