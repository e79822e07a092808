"""What is shared out among the jobs of a node adds up to what was measured, and follows the rule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.jobs import EndedJob
from metasched.service.learning.energy_share import Occupant, shares
from monitors.sources.power_history import Drawn, PowerHistory
from tests.service.daemons import CLUSTERS, running

JOBS = st.lists(
    st.builds(
        lambda start, length, processors, used: Occupant(
            start, start + length, processors, None if used is None else used * processors * length
        ),
        st.floats(-20.0, 120.0),
        st.floats(0.1, 80.0),
        st.integers(1, 16),
        st.none() | st.floats(0.0, 1.0),
    ),
    max_size=6,
)


@given(JOBS, st.lists(st.floats(0.0, 900.0), min_size=1, max_size=10), st.integers(1, 32), st.floats(0.0, 300.0))
def test_shares_and_what_is_nobodys_add_up_to_what_was_measured(
    jobs: list[Occupant], watts: list[float], processors: int, idle: float
) -> None:
    drawn = Drawn("node", np.linspace(0.0, 100.0, len(watts) + 1), np.array(watts))
    taken, nobodys = shares(drawn, jobs, processors, idle, 0.0, 100.0)
    assert sum(taken) + nobodys == pytest.approx(drawn.joules(0.0, 100.0), rel=1e-9, abs=1e-6)
    assert min([*taken, nobodys]) >= -1e-6


def test_idle_power_goes_by_processors_and_the_rest_by_processor_time() -> None:
    drawn = Drawn("node", np.array([0.0, 100.0]), np.array([200.0]))
    busy, waiting = Occupant(0.0, 100.0, 2, 200.0), Occupant(0.0, 100.0, 4, 100.0)
    taken, nobodys = shares(drawn, [busy, waiting], 8, 80.0, 0.0, 100.0)
    assert taken == pytest.approx([8000.0 * 2 / 8 + 12000.0 * 2 / 3, 8000.0 * 4 / 8 + 12000.0 / 3])
    assert nobodys == pytest.approx(8000.0 * 2 / 8)
    # A job that has the node for itself takes all but what its free processors draw doing nothing.
    assert shares(drawn, [Occupant(0.0, 100.0, 8)], 8, 80.0, 0.0, 100.0) == ([20000.0], 0.0)


class Remembered(PowerHistory):
    """A meter that remembers 300 W of one node."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:9")

    def drawn(self, start: float, end: float) -> tuple[Mapping[str, Drawn], str]:
        """What the node drew."""
        return {"e1": Drawn("node", np.array([start, end]), np.array([300.0]))}, ""


def test_jobs_of_one_node_are_given_what_it_drew_and_no_more(tmp_path: Path) -> None:
    described = CLUSTERS.replace('name = "east"', 'name = "east"\nidle_watts = 100')
    jobs = [EndedJob("slurm", str(k), "", "", ("e1",), count, 1e9, 1e9 + 50.0, 0) for k, count in ((1, 1), (2, 3))]
    with running(tmp_path, learned=False, clusters=described) as daemon:
        daemon.jobs.meters = (Remembered(),)
        for job in jobs:
            daemon.jobs.take(job, sure=True)
        told = [daemon.jobs.metered(job) for job in jobs]
        elsewhere = daemon.jobs.metered(EndedJob("slurm", "3", "", "", ("e2",), 1, 1e9, 1e9 + 50.0, 0))
    assert [each.energy_covers for each in told] == ["node", "node"]
    assert sum(each.energy or 0.0 for each in told) == pytest.approx(300.0 * 50.0, rel=0.01)
    assert told[1].energy == pytest.approx(3.0 * (told[0].energy or 0.0))
    assert elsewhere.energy is None
