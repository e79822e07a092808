"""A daemon before a real Slurm that has learned an application, and knows how much each node has to spare."""

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
        daemon = Daemon(own, configuration.format(slurm.folder / "slurm.conf"))
        daemon.start()
        slurm.hooks({"socket": daemon.socket})
        for node, cpu in available_cpu.items():
            daemon.ask("POST", "/v1/loads", {"node": node, "samples": [[time.time() + 30.0, cpu, 100.0]]})
        time.sleep(1.5)  # until placements see it
        try:
            yield slurm, daemon
        finally:
            daemon.stop()
