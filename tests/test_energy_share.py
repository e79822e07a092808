"""What is shared out among the jobs of a node adds up to what was measured, and follows the rule."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched import energy_share
from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.energy_share import Coverage, Occupant, share_of_run, shares
from metasched.jobs import EndedJob
from metasched.placement.clusters.running_jobs import StartedJob
from metasched.schedulers.contract import Source
from metasched.schedulers.slurm.energy import MeteredJob, energies
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


LINE = {"node_offset": Quantity(60.0, "W", "x"), "node_factor": Quantity(1.2, "1", "x")}
IDLE = {"idle_power": Quantity(100.0, "W", "x")}


@pytest.mark.parametrize(
    ("covers", "known", "expected"),
    [
        ("package", LINE | IDLE, ("node", 100.0, 164.4)),
        ("package+memory", LINE, ("node", 0.0, 164.4)),
        ("package", {"node_factor": LINE["node_factor"]}, ("node", 0.0, 104.4)),
        ("package", IDLE, ("package", 0.0, 87.0)),  # what a node draws idle its packages alone do not
        ("package", None, ("package", 0.0, 87.0)),
        ("node", LINE | IDLE, ("node", 100.0, 87.0)),
        ("node", None, ("node", 0.0, 87.0)),
        ("", LINE | IDLE, ("", 0.0, 87.0)),
    ],
)
def test_only_packages_whose_line_to_the_node_is_known_become_the_node_and_have_its_idle_power(
    covers: str, known: dict[str, Quantity] | None, expected: tuple[str, float, float]
) -> None:
    coverage = Coverage.of(covers, None if known is None else Entry("n", Kind.cluster, "", known))
    drawn = coverage.drawn(Drawn(covers, np.array([0.0, 10.0]), np.array([87.0])))
    assert (drawn.covers, coverage.idle_watts, drawn.watts.tolist()) == (*expected[:2], [pytest.approx(expected[2])])
    assert coverage.joules(870.0, 10.0) == pytest.approx(drawn.joules(0.0, 10.0))


def test_idle_power_goes_by_processors_and_the_rest_by_processor_time() -> None:
    drawn = Drawn("node", np.array([0.0, 100.0]), np.array([200.0]))
    busy, waiting = Occupant(0.0, 100.0, 2, 200.0), Occupant(0.0, 100.0, 4, 100.0)
    taken, nobodys = shares(drawn, [busy, waiting], 8, 80.0, 0.0, 100.0)
    assert taken == pytest.approx([8000.0 * 2 / 8 + 12000.0 * 2 / 3, 8000.0 * 4 / 8 + 12000.0 / 3])
    assert nobodys == pytest.approx(8000.0 * 2 / 8)
    # A job that has the node for itself takes all but what its free processors draw doing nothing.
    assert shares(drawn, [Occupant(0.0, 100.0, 8)], 8, 80.0, 0.0, 100.0) == ([20000.0], 0.0)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.floats(0.01, 50.0)), min_size=1, max_size=4),
    st.floats(0.0, 50.0),
    st.floats(1.0, 400.0),
    st.floats(0.0, 300.0),
)
def test_runs_that_a_host_has_at_once_are_given_what_it_took_but_for_others_and_free_processors(
    runs: list[tuple[int, float]], others: float, watts: float, idle: float
) -> None:
    joules, busy, count = watts * 10.0, others + sum(used for _, used in runs), sum(held for held, _ in runs) + 3
    taken = [
        share_of_run(joules, 10.0, Occupant(0.0, 10.0, held, used), busy, count, idle, "node") for held, used in runs
    ]
    spent_idle = min(idle * 10.0, joules)
    left = spent_idle * 3 / count + (joules - spent_idle) * others / busy
    assert sum(taken) + left == pytest.approx(joules, rel=1e-9)


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(1, 60), st.integers(1, 8), st.floats(0.05, 1.0)),
        min_size=1, max_size=6,
    ),
    st.floats(0.0, 100.0),
    st.lists(st.floats(120.0, 400.0), min_size=11, max_size=11),
)  # fmt: skip
def test_jobs_that_slurm_accounts_for_are_given_what_their_node_took_within_a_hundredth(
    jobs: list[tuple[int, int, int, float]], idle: float, watts: list[float]
) -> None:
    truth = Drawn("node", np.linspace(0.0, 110.0, 12), np.array(watts))
    known = {
        str(number): MeteredJob(
            ("n1",), held, 1.0 + start, 1.0 + start + length, busy * held * length,
            truth.joules(1.0 + start, 1.0 + start + length),
        )
        for number, (start, length, held, busy) in enumerate(jobs)
    }  # fmt: skip
    # One more job, which has its processor for all the time, makes what all of them tell the whole measurement.
    first, last = min(each.start for each in known.values()), max(each.end for each in known.values())
    known["all"] = MeteredJob(("n1",), 1, first, last, last - first, truth.joules(first, last))
    found = energies(list(known), known, {"n1": 64}, Coverage("node", idle))
    part_held = sum(each.processors * (each.end - each.start) for each in known.values()) / 64.0
    free = idle * (last - first - part_held)
    assert set(found) == set(known)
    assert sum(found.values()) + free == pytest.approx(truth.joules(first, last), rel=0.01)


class Remembered(PowerHistory):
    """A meter that remembers 300 W of one node, or of its packages."""

    def __init__(self, covers: str = "node") -> None:
        super().__init__("http://127.0.0.1:9", label=covers)

    def drawn(self, start: float, end: float) -> tuple[Mapping[str, Drawn], str]:
        """What the node drew."""
        return {"e1": Drawn(self.label, np.array([start, end]), np.array([300.0]))}, "the counters of e2 were reset"


def test_jobs_of_one_node_are_given_what_it_drew_and_no_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    described = CLUSTERS.replace('name = "east"', 'name = "east"\nidle_watts = 100')
    jobs = [EndedJob("slurm", str(k), "", "", ("e1",), count, 1e9, 1e9 + 50.0, 0) for k, count in ((1, 1), (2, 3))]
    with running(tmp_path, learned=False, clusters=described) as daemon:
        daemon.jobs.energies.meters = (Remembered(),)
        for job in jobs:
            daemon.jobs.take(job, sure=True)
        told = [daemon.jobs.energies.of(job) for job in jobs]
        elsewhere = daemon.jobs.energies.of(EndedJob("slurm", "3", "", "", ("e2",), 1, 1e9, 1e9 + 50.0, 0))
    assert [each.energy_covers for each in told] == ["node", "node"]
    assert sum(each.energy or 0.0 for each in told) == pytest.approx(300.0 * 50.0, rel=0.01)
    assert told[1].energy == pytest.approx(3.0 * (told[0].energy or 0.0))
    assert elsewhere.energy is None
    # What is wrong with another node is said only of jobs that were there.
    assert [each for each in caplog.messages if "counters" in each] == [
        "job 3 of slurm: its power is unknown: the counters of e2 were reset"
    ]


@pytest.mark.parametrize(
    ("ended", "number", "begun", "share"),
    [
        ("1", "2", 0.0, 0.5),  # a scheduler starts several jobs in one cycle
        ("1", "1", 0.0, 1.0),
        ("1", "1", 10.0, 1.0),  # two accounts of when it started
        ("1", "1", 60.0, 1.0),  # it runs again
        ("1", "", 0.0, 1.0),
        ("1", "", 10.0, 0.6),
        ("12", "2", 10.0, 0.5),
    ],
)
def test_jobs_that_are_listed_as_running_count_beside_those_that_have_ended_and_none_twice(
    tmp_path: Path, ended: str, number: str, begun: float, share: float
) -> None:
    jobs = [EndedJob("slurm", each, "", "", ("e1",), 1, 1e9, 1e9 + 50.0, 0) for each in ended]
    with running(tmp_path, learned=False) as daemon:
        daemon.jobs.energies.meters = (Remembered(),)
        for job in jobs:
            daemon.jobs.take(job, sure=True)
        now = time.time()
        daemon.clusters.put_running("slurm", [StartedJob(("e1",), (1,), now - 1e9 - begun, number=number)], now)
        daemon.clusters.refresh(now)
        told = daemon.jobs.energies.of(jobs[0])
    assert told.energy == pytest.approx(share * 300.0 * 50.0, rel=0.01)


class Accounting:
    """A scheduler that knows nothing but processor times, or fails."""

    name = "slurm"

    def __init__(self, used: Mapping[str, float] | None) -> None:
        self.used, self.asked = used, set[str]()

    def processor_times(self, jobs: Collection[str]) -> Mapping[str, float]:
        """The processor times of jobs."""
        self.asked |= set(jobs)
        if self.used is None:
            raise RuntimeError("slurmdbd is down")
        return self.used


@pytest.mark.parametrize(("used", "share"), [({"1": 45.0, "2": 5.0}, 0.9), ({"1": 12.5}, 0.2), (None, 0.5), ({}, 0.5)])
def test_jobs_of_a_metered_node_share_it_by_the_processor_time_that_their_scheduler_records(
    tmp_path: Path, used: Mapping[str, float] | None, share: float
) -> None:
    jobs = [EndedJob("slurm", str(k), "", "", ("e1",), 1, 1e9, 1e9 + 50.0, 0) for k in (1, 2)]
    before = EndedJob("slurm", "0", "", "", ("e1",), 4, 1e9 - 99.0, 1e9 - 1.0, 0)
    accounting = Accounting(used)
    with running(tmp_path, learned=False) as daemon:
        daemon.jobs.energies.meters = (Remembered(),)
        for job in (before, *jobs):
            daemon.jobs.take(job, sure=True)
        daemon.jobs.energies._sources = (cast("Source", accounting),)
        told = [daemon.jobs.energies.of(job).energy or 0.0 for job in jobs]
    assert told[0] == pytest.approx(share * 300.0 * 50.0)
    assert sum(told) == pytest.approx(300.0 * 50.0, rel=0.01)
    assert accounting.asked == {"1", "2"}


@pytest.mark.parametrize(
    ("covers", "line", "told", "watts", "idle"),
    [("node", False, "node", 300.0, 100.0), ("package", False, "package", 300.0, 0.0),
     ("package", True, "node", 420.0, 100.0)],
)  # fmt: skip
def test_the_idle_power_of_nodes_counts_only_in_what_nodes_draw(
    tmp_path: Path, covers: str, line: bool, told: str, watts: float, idle: float
) -> None:
    hardware = tmp_path / "nodes.toml"
    values = {"idle_power": 100, "cores": 4} | ({"node_offset": 60, "node_factor": 1.2} if line else {})
    units = {"idle_power": "W", "node_offset": "W"}
    cells = [f'{name} = {{ value = {value}, unit = "{units.get(name, "1")}" }}' for name, value in values.items()]
    hardware.write_text("\n".join(['kind = "cluster"', 'title = "e"', 'source = "measured"', "[values]", *cells]))
    described = CLUSTERS.replace('name = "east"', f'name = "east"\nhardware = "{hardware}"')
    with running(tmp_path, learned=False, clusters=described) as daemon:
        (east,) = (each for each in daemon.clusters.view.partitions if "e1" in each.state.nodes)
        accounting = Accounting({"1": 49.5, "2": 0.5})
        accounting.name = east.scheduler
        daemon.jobs.energies.meters = (Remembered(covers),)
        daemon.jobs.energies._sources = (cast("Source", accounting),)
        jobs = [
            EndedJob(east.scheduler, number, "", east.name, ("e1",), count, 1e9, 1e9 + 50.0, 0)
            for number, count in (("1", 1), ("2", 3))
        ]
        for job in jobs:
            daemon.jobs.take(job, sure=True)
        found = daemon.jobs.energies.of(jobs[0])
    assert found.energy_covers == told
    assert found.energy == pytest.approx(50.0 * (idle / 4 + 0.99 * (watts - idle)))


def test_of_too_many_measurements_the_longest_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy_share, "MOST_TOGETHER", 1)
    drawn = energy_share.steadiest(
        "node", [energy_share.Measured(0.0, 1.0, 900.0), energy_share.Measured(0.0, 10.0, 1000.0)]
    )
    assert drawn.joules(0.0, 10.0) == pytest.approx(1000.0)
    assert drawn.joules(0.0, 1.0) == pytest.approx(100.0)
