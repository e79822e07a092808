"""Daemons before a real Slurm: one that its hooks ask, and one that knows an application and what nodes can spare."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from metasched.store.database.store import Store
from tests.service.daemons import teach
from tests.system import real_slurm
from tests.system.real_daemon import Daemon
from tests.system.real_slurm import Slurm


@contextmanager
def hooked(slurm: Slurm, folder: Path, configuration: str) -> Iterator[Daemon]:
    """A daemon that the hooks of a Slurm ask and report to, for the duration of a block.

    Parameters
    ----------
    slurm : whose hooks they are.
    folder : of the daemon.
    configuration : of the daemon, in which ``{}`` stands for the path of slurm.conf.
    """
    daemon = Daemon(folder, configuration.format(slurm.folder / "slurm.conf"))
    daemon.start()
    try:
        slurm.hooks({"socket": daemon.socket})
        yield daemon
    finally:
        daemon.stop()


@contextmanager
def placing(folder: Path, configuration: str, available_cpu: Mapping[str, float]) -> Iterator[tuple[Slurm, Daemon]]:
    """A Slurm, and a daemon that places its jobs of ``cg``, for the duration of a block.

    Parameters
    ----------
    folder : an empty one.
    configuration : of the daemon, in which ``{}`` stands for the path of slurm.conf.
    available_cpu : of the nodes whose loads the daemon knows.
    """
    if why := real_slurm.why_not():
        pytest.skip(why)
    own = folder / "daemon"
    own.mkdir()
    with real_slurm.running(folder / "slurm") as slurm:
        with Store.open(own / "metasched.db") as store:
            teach(store, "proof")
        with hooked(slurm, own, configuration) as daemon:
            for node, cpu in available_cpu.items():
                daemon.ask("POST", "/v1/loads", {"node": node, "samples": [[time.time() + 30.0, cpu, 100.0]]})
            time.sleep(1.5)  # until placements see it
            yield slurm, daemon
