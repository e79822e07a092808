"""A simulated application as a predictor of the common contract: before any run, corrected by runs, as a document."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.predictors.abilities import computing_share
from metasched.predictors.analytic.simulated import SimulatedPredictor
from metasched.predictors.contract import Predictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.tournament import Tournament
from metasched.records import InputError, Request, Run
from metasched.simulation.language import parse
from metasched.simulation.outcome import simulate
from metasched.simulation.system import Network, Nodes, System
from metasched.store import documents

TEXT = """
n = 1000
rounds = 5

def w():
    for i in range(rounds):
        compute(n ** 2 * 1000 / size)
        alltoall(10000 * n / size)

def m():
    compute(1)
"""


def entry() -> Entry:
    values = {
        "speed": Quantity(1.0, "Gflop/s", "x"),
        "bandwidth": Quantity(1.0, "Gbit/s", "x"),
        "latency": Quantity(50.0, "us", "x"),
    }
    return Entry("node", Kind.cluster, "", values)


SYSTEM = System("made", (Network("lan", entry()),), (Nodes("n", 33, "lan", entry(), {"w": 1, "m": 1}),))


def predictor() -> SimulatedPredictor:
    return SimulatedPredictor(SYSTEM, TEXT, label="w", size="n", processes={"m": 1}, variables={"rounds": 20})


def runs(computing: float = 2.0, sending: float = 3.0, count: int = 12) -> list[Run]:
    """Runs whose computation and communication take longer than the simulation says."""
    draw = np.random.default_rng(5)
    of = predictor()
    made = []
    for turn in range(count):
        n, p, cpu = float(draw.integers(500, 4000)), (1, 2, 4, 8)[turn % 4], float(draw.uniform(0.5, 1.0))
        computation, communication = of._parts(np.array([[n, p, cpu, 1000.0]]))[0]
        time = (computing * computation + sending * communication) * float(draw.lognormal(0.0, 0.01))
        made.append(Run("app", "made", n, p, cpu, 1000.0, time))
    return made


def test_it_answers_what_the_simulation_tells_before_any_run() -> None:
    of = predictor()
    assert isinstance(of, Predictor)
    for n, p in ((1000, 1), (3000, 16)):
        told = simulate(SYSTEM, parse(TEXT), {"w": p, "m": 1}, {"n": n, "rounds": 20}).execution_time
        found = of.predict(Request(n, p, 1.0, 1000.0))
        assert found.execution_time == pytest.approx(told, rel=1e-9)
        assert found.interval.low < told < found.interval.high
        assert any("no run has been learned yet" in warning for warning in found.warnings)
        assert sum(term.seconds for term in of.breakdown(Request(n, p, 1.0, 1000.0))) == pytest.approx(told)


def test_busy_processors_slow_computation_and_busy_links_communication() -> None:
    of = predictor()
    asked = (1000, 16)
    share = float(computing_share(of, *asked, 1.0, 1000.0)[0])
    alone, busy, narrow = (of.expect_many(*asked, cpu, bw)[0] for cpu, bw in ((1.0, 1e3), (0.5, 1e3), (1.0, 500.0)))
    assert 0.0 < share < 1.0
    assert busy / alone == pytest.approx(1.0 + share)
    assert 1.0 < narrow / alone < 2.0 - share


def test_runs_say_which_application_on_which_platform() -> None:
    of = predictor()
    of.application = of.cluster = ""
    of.fit(runs())
    assert (of.application, of.cluster) == ("app", "made")


def test_runs_correct_computation_and_communication() -> None:
    of = predictor().fit(runs())
    assert of.factors == pytest.approx([2.0, 3.0], rel=0.1)
    asked = Request(2000, 32, 1.0, 1000.0)
    computation, communication = of._parts(np.array([[2000, 32, 1.0, 1000.0]]))[0]
    assert of.predict(asked).execution_time == pytest.approx(2 * computation + 3 * communication, rel=0.05)
    learned = predictor()
    for run in runs(count=40):
        learned.learn(run)
    assert learned.factors == pytest.approx([2.0, 3.0], rel=0.1)


def test_loads_that_were_not_measured_slow_nothing() -> None:
    idle = [replace(run, min_avg_avail_cpu=1.0, min_avg_avail_bw=1e9) for run in runs()]
    unmeasured = [replace(run, min_avg_avail_cpu=math.nan, min_avg_avail_bw=math.nan) for run in idle]
    assert predictor().fit(unmeasured).factors == pytest.approx(predictor().fit(idle).factors)


def test_more_processes_than_slots_are_refused_and_infinite_among_many() -> None:
    of = predictor()
    with pytest.raises(InputError, match="34 processes of w are asked for, expected from 1 to its 33 slots"):
        of.predict(Request(1000, 34, 1.0, 1000.0))
    assert np.isinf(of.predict_many(1000, [33, 34], 1.0, 1000.0).execution_time).tolist() == [False, True]
    with pytest.raises(InputError, match="cannot be simulated with any of the numbers of processors 64"):
        of.fit([Run("app", "made", 1000.0, 64, 1.0, 1000.0, 3.0)])


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"label": "x"}, "label x has no code, expected one of w, m"),
        ({"size": "points"}, "points is not a variable of the application, expected n, rounds"),
        ({"processes": {}}, "the number of processes of m is not known"),
        ({"text": "n = 1\ndef w():\n    fly(3)\n\ndef m():\n    pass\n"}, "line 3: fly is no block"),
    ],
)
def test_what_does_not_fit_together_is_refused(changed: dict, expected: str) -> None:
    given = {"text": TEXT, "label": "w", "size": "n", "processes": {"m": 1}} | changed
    with pytest.raises(InputError, match=expected):
        SimulatedPredictor(SYSTEM, given.pop("text"), **given)


def test_a_document_answers_and_learns_as_before() -> None:
    of = predictor().fit(runs())
    again = documents.parse(documents.dump(of))
    asked = Request(1700, 16, 0.8, 700.0)
    assert again.predict(asked) == of.predict(asked)
    for each in (of, again):
        each.learn(runs(count=1)[0])
    assert again.predict(asked).execution_time == pytest.approx(of.predict(asked).execution_time, rel=1e-12)
    unrun = documents.parse(documents.dump(predictor()))
    assert unrun.predict(asked) == predictor().predict(asked)


def test_it_wins_a_tournament_of_few_runs_and_is_kept_with_it() -> None:
    tournament = Tournament([RobustPredictor(), predictor()]).fit(runs(count=8))
    assert tournament.chosen.name == "simulated"
    again = documents.parse(documents.dump(tournament))
    asked = Request(1700, 32, 0.8, 700.0)
    assert again.predict(asked).execution_time == pytest.approx(tournament.predict(asked).execution_time)
