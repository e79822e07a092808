"""What each section of the dashboard says, word for word."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.advised_placements import AdvisedPlacement, Answer, Ask, Outcome
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.records import Interval, Placement, Prediction, ResourceSet
from metasched.service.dashboard import advice_quality, applications, clusters, formats, health, placements
from metasched.service.quality.advice_quality import Settled, quality, report
from metasched.service.quality.recent_predictions import JudgedRun
from metasched.service.state.load_history import LoadHistory


@pytest.mark.parametrize(
    ("age", "said"),
    [
        (0.99, "now"),
        (1.0, "1 s ago"),
        (119.0, "119 s ago"),
        (120.0, "2 min ago"),
        (7199.0, "120 min ago"),
        (7200.0, "2 h ago"),
        (172_799.0, "48 h ago"),
        (172_800.0, "2 days ago"),
    ],
)
def test_an_age_is_said_in_the_unit_that_suits_it(age: float, said: str) -> None:
    assert formats.ago(age) == said


def test_a_moment_is_said_in_utc_and_none_that_no_calendar_has() -> None:
    assert [formats.moment(at) for at in (0.0, 1e9, None, float("inf"), 1e18)] == [
        "1970-01-01T00:00:00Z",
        "2001-09-09T01:46:40Z",
        *[""] * 3,
    ]
    assert formats.count(1234567, "node") == "1\u202f234\u202f567 nodes"


def advised(outcome: Outcome | None = None, *, nodes: tuple[str, ...] = ("n1", "n2"), **more) -> AdvisedPlacement:
    sets = ResourceSet("c/p", nodes, 8, 1.0, 100.0, frequency=more.pop("frequency", None))
    placement = Placement(sets, Prediction(90.0, Interval(80.0, 100.0, 0.9), "m"), reason="best", **more)
    answer = Answer(
        id="0a", mode="shadow", steer="nodes", placed=True, message="", partition="p", nodes="n[1-2]",
        placement=placement,
    )  # fmt: skip
    return AdvisedPlacement(5.0, Ask(application="cg", problem_size=7.0), answer, outcome)


def test_a_placement_says_where_how_long_and_why() -> None:
    shown = placements.shown(advised())
    assert shown == placements.Shown(
        5.0, "cg", 7.0, "p: 8 processors on n[1-2]", "90.0 s (80.0 s to 100 s)", "best", "…",
        "not finished, or not reported",
    )  # fmt: skip
    waiting = placements.shown(advised(queue_wait=600.0, energy=4500.0, frequency=1800.0))
    assert waiting.predicted == (
        "90.0 s (80.0 s to 100 s) after 10.0 min in the queue; 4500 J, 50 W on average, at 1800 MHz"
    )
    assert placements.shown(advised(nodes=tuple(f"n{k}" for k in range(64)))).where == "p: 8 processors on n[1-2]"
    assert placements.shown(advised(nodes=tuple(f"n{k}" for k in range(65)))).where == "p: 8 processors on 65 nodes"
    alone = advised()
    described = replace(alone, answer=alone.answer.model_copy(update={"partition": ""}))
    assert placements.shown(described).where == "c/p: 8 processors on n[1-2]"


def test_advice_that_could_not_be_given_says_why() -> None:
    answer = Answer(id="0a", mode="shadow", steer="nodes", placed=False, message="no model of cg yet")
    shown = placements.shown(AdvisedPlacement(5.0, Ask(application="cg", problem_size=7.0), answer, None))
    assert shown == placements.Shown(5.0, "cg", 7.0, "nowhere", "", "no model of cg yet", "·", "no advice")


@pytest.mark.parametrize(
    ("changes", "mark", "came"),
    [
        ({}, "✓", "100 s, inside the interval; predicted -10 %"),
        ({"execution_time": 75.0}, "≠", "75.0 s, outside the interval; predicted +20 %"),
        ({"exit_status": 3}, "✕", "failed after 100 s (exit status 3)"),
        ({"nodes": ("n3", "n4")}, "↷", "100 s elsewhere, on n[3-4]"),
        ({"processors": 4}, "↷", "100 s elsewhere, on n[1-2]"),
        ({"nodes": ()}, "↷", "100 s elsewhere, on unknown nodes"),
        ({"nodes": tuple(f"m{k}" for k in range(65))}, "↷", "100 s elsewhere, on 65 nodes"),
        ({"nodes": tuple(f"m{k}" for k in range(64))}, "↷", "100 s elsewhere, on m[0-63]"),
    ],
)
def test_what_became_of_a_job_is_said_with_a_mark(changes: dict, mark: str, came: str) -> None:
    outcome = replace(Outcome("c", "p", ("n1", "n2"), 8, 100.0, 0), **changes)
    shown = placements.shown(advised(outcome))
    assert (shown.mark, shown.came) == (mark, came)


def test_a_cluster_shows_the_nodes_with_the_least_to_spare_and_rows_evenly_over_time() -> None:
    cpu = [0.9, 0.1, 0.5, 0.4, 0.3, 0.2, 0.6, 0.7, 0.8, 1.0]
    state = ClusterState.make(
        "c/p", [f"n{k}" for k in range(10)], processors=4, available_cpu=cpu, available_bandwidth=50.0,
        age=[0.0] * 9 + [1e6],
    )  # fmt: skip
    state = replace(state, up=np.array([True, False] + [True] * 8))
    history = LoadHistory()
    assert clusters.shown(Partition(state, "s", "s", "p"), history, day=False).latest is None
    for k in range(30):
        history.note([Partition.of(state)], 15.0 * k)
    shown = clusters.shown(Partition(state, "s", "s", "p"), history, day=False)
    assert (shown.name, shown.scheduler, shown.nodes, shown.up, shown.silent, shown.free) == ("c/p", "s", 10, 9, 1, 36)
    assert [(node.name, node.cpu) for node in shown.tight] == [
        ("n5", 0.2), ("n4", 0.3), ("n3", 0.4), ("n2", 0.5), ("n6", 0.6), ("n7", 0.7), ("n8", 0.8), ("n0", 0.9),
    ]  # fmt: skip
    assert (shown.tight[0].bandwidth, shown.tight[0].age) == (50.0, 0.0)
    assert [row.time for row in shown.rows] == [15.0 * k for k in (0, 3, 5, 8, 11, 13, 16, 18, 21, 24, 26, 29)]
    assert shown.latest == history.of("c/p")[-1]
    assert shown.chart is not None
    assert shown.chart["time"] == [15 * k for k in range(30)]
    low, middle, high = shown.rows[0].cpu
    assert [end[0] for end in shown.chart["cpu"]] == [formats.figure(each) for each in (low, middle, high)]
    assert low < middle < high
    assert shown.chart["bandwidth"] == [[50.0] * 30] * 3


@pytest.mark.parametrize("odd", [0.0, 5e-324, 1e300, float("inf")])
def test_a_run_that_no_axis_shows_is_in_the_table_alone(odd: float) -> None:
    predicted = [JudgedRun(1.0, 5.0, 2, time, time, time, 9.0) for time in (10.0, odd, 8.0)]
    runs: Any = SimpleNamespace(
        recent=SimpleNamespace(of=lambda *key: predicted), answering=lambda key: None,
        learned_by=lambda key: SimpleNamespace(unmeasured=0),
    )  # fmt: skip
    shown = applications.shown("cg", "east", runs)
    assert (shown.chart["predicted"], len(shown.runs)) == ([10.0, 8.0], 3)
    predicted = predicted[1:2]
    shown = applications.shown("cg", "east", runs)
    assert (shown.chart, len(shown.runs)) == (None, 1)


def test_a_cluster_with_one_row_has_no_picture() -> None:
    state, history = ClusterState.make("c", ["n0"]), LoadHistory()
    history.note([Partition.of(state)], 0.0)
    shown = clusters.shown(Partition.of(state), history, day=True)
    assert (shown.chart, [row.time for row in shown.rows]) == (None, [0.0])


def test_loads_over_time_go_on_where_the_clock_was_set_back() -> None:
    state, history = ClusterState.make("c", ["n0"]), LoadHistory()
    for now in (0.0, 3600.0, 3900.0, 900.0, 1200.0):
        history.note([Partition.of(state)], now)
    for day in (False, True):
        assert [row.time for row in history.of("c", day=day)] == [0.0, 900.0, 1200.0]


def test_the_figures_of_the_advice_say_what_they_are_of() -> None:
    followed = Settled(False, True, actual=100.0, advised=110.0, inside=True, there=110.0, held=True, limit=90.0,
                       same_partition=True, application="cg", platform="east")  # fmt: skip
    elsewhere = [
        Settled(False, False, actual=200.0, advised=there / 2, there=there, held=False, same_partition=True,
                application="lu", platform="west", energy=1000.0, energy_as_advised=600.0)
        for there in (200.0, 100.0)
    ]  # fmt: skip
    told = quality([followed, *elsewhere, Settled(failed=True, application="cg", platform="east")])
    assert list(advice_quality.figures(told)) == [
        ("finished jobs with advice", "3", "1 more failed or were killed"),
        ("agreement", "1 of 3", "ran on the nodes advised, 3 in the partition"),
        ("mean prediction error", "20.0 %", "3 jobs, with the loads of the runs"),
        ("coverage of the intervals", "33 %", "90 % expected"),
        ("median error of the advice", "10.0 %", "1 job that followed it"),
        ("time that the advice would save", "50 % (50 to 50)", "of 400 s that 2 jobs ran elsewhere"),
        ("energy that the advice would save", "40 % (40 to 40)", "of 2000 J that 2 jobs took elsewhere"),
        ("over the suggested limit", "1", "jobs would exceed the suggested limit"),
    ]
    assert list(advice_quality.figures(quality([]))) == [
        ("finished jobs with advice", "0", "0 more failed or were killed")
    ]
    first, second = advice_quality.parts(report([followed, *elsewhere]))
    assert first == advice_quality.Part(
        "lu", "west", 2, "25.0 %", "0 %", "0 of 2", "50 % (50 to 50)", "too early to tell"
    )
    assert second == advice_quality.Part("cg", "east", 1, "10.0 %", "100 %", "1 of 1", "", "too early to tell")
    (alone,) = advice_quality.parts(report(elsewhere[:1]))
    assert alone.saved == "50 %"
    nothing = [Settled(False, actual=200.0, there=100.0, advised=advised) for advised in (100.1, 100.2)]
    assert [each.saved for each in advice_quality.parts(report(nothing))] == ["0 % (0 to 0)"]


@given(st.integers(0, 120))
def test_no_more_applications_are_listed_than_a_page_holds(count: int) -> None:
    told = report([Settled(False, application=f"a{k}", actual=1.0) for k in range(count)])
    assert len(advice_quality.parts(told)) == min(count, advice_quality.LISTED)


def site(**changes):
    """A daemon as far as its health goes: all is well but for what is changed."""
    found: dict[str, Any] = {
        "faults": dict, "ages": {"n1": 0.0, "n2": 0.0}, "seen": {"slurm": 98.0}, "leads": True, "reports": (),
        "batches": 0, "runs": 0, "failures": 0,
    } | changes  # fmt: skip
    return SimpleNamespace(
        configuration=SimpleNamespace(periods=SimpleNamespace(partitions=10.0)),
        clusters=SimpleNamespace(
            view=SimpleNamespace(
                made_at=70.0, ages=lambda: found["ages"],
                silent=lambda: sum(age > 300.0 for age in found["ages"].values()),
            ),
            seen_at=found["seen"],
        ),
        faults=found["faults"], leads=found["leads"], sources=[SimpleNamespace(name="slurm")],
        load_sources=SimpleNamespace(reports=lambda: found["reports"]),
        writes=SimpleNamespace(waiting=found["batches"]),
        models=SimpleNamespace(waiting=found["runs"], failures=found["failures"]),
    )  # fmt: skip


def test_a_daemon_that_is_well_says_so_line_by_line() -> None:
    assert [(each.name, each.well, each.found) for each in health.checks(site(), 100.0)] == [
        ("view for placements", True, "updated 30 s ago"),
        ("scheduler slurm", True, "last report 2 s ago"),
        ("nodes", True, "2 nodes, none silent for more than 5 min"),
        ("database", True, "0 batches to write"),
        ("learning", True, "0 runs to learn, no failures"),
    ]


def source(**changes):
    told = {"name": "prom", "answered_at": 90.0, "newest": 80.0, "failures": 0, "fault": "", "nodes": 3} | changes
    return SimpleNamespace(**told, well=lambda now: now < 200.0)


@pytest.mark.parametrize(
    ("changes", "name", "well", "found"),
    [
        ({"faults": lambda: {"late": "old"}}, "view for placements", False, "updated 30 s ago"),
        ({"faults": lambda: {"clock": "an hour ahead"}}, "clock", False, "an hour ahead"),
        ({"leads": False}, "lead", True, "another daemon leads; this one only answers reads"),
        ({"seen": {}}, "scheduler slurm", False, "no report yet"),
        ({"seen": {"slurm": 60.0}}, "scheduler slurm", True, "last report 40 s ago"),
        ({"seen": {"slurm": 59.0}}, "scheduler slurm", False, "last report 41 s ago"),
        ({"reports": (source(),)}, "source prom", True, "answered 10 s ago, newest sample 20 s ago, 3 nodes"),
        (
            {"reports": (source(fault="refused", failures=2),)}, "source prom", False,
            "answered 10 s ago, newest sample 20 s ago, 3 nodes, 2 failures: refused",
        ),
        ({"reports": (source(answered_at=None, newest=None),)}, "source prom", True, "never answered, 3 nodes"),
        ({"ages": {"n1": 0.0, "n2": 1e5}}, "nodes", False, "2 nodes, 1 silent for more than 5 min"),
        ({"batches": 999}, "database", True, "999 batches to write"),
        ({"batches": 1000}, "database", False, "1\u202f000 batches to write"),
        ({"faults": lambda: {"damaged": "see check"}}, "database", False, "see check"),
        ({"runs": 499}, "learning", True, "499 runs to learn, no failures"),
        ({"runs": 500}, "learning", False, "500 runs to learn, no failures"),
        ({"failures": 1}, "learning", False, "0 runs to learn, 1 failure"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_daemon_shows_on_its_line(changes: dict, name: str, well: bool, found: str) -> None:
    (line,) = [each for each in health.checks(site(**changes), 100.0) if each.name == name]
    assert (line.well, line.found) == (well, found)
