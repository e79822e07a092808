"""A signature as a predictor of the common contract."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.predictors.abilities import computing_share
from metasched.predictors.analytic.signature import SignaturePredictor
from metasched.predictors.contract import Predictor
from metasched.predictors.log_regression import LogRegression
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.tournament import Tournament
from metasched.records import InputError, Request, Run
from metasched.signature.rules.application import Application
from metasched.signature.rules.fitting import fit
from metasched.signature.times.by_blocks import apart, by_blocks
from metasched.signature.times.hardware import Hardware, assumed
from metasched.signature.traces.trace import Trace, trace_of
from metasched.store import documents

LEARNED = (4, 8, 16)
WORK, TURNS, BYTES, SIZE = 1.6e9, 20, 100_000, 500.0


Actions = list[tuple[str, tuple[float, ...]]]


def ring(n: int) -> Trace:
    """Work, and 100 kB to the next process, twenty times."""

    def actions(rank: int) -> Actions:
        to, of = (rank + 1) % n, (rank - 1) % n
        turn: Actions = [("compute", (WORK / n / TURNS,)), ("sendRecv", (BYTES, to, BYTES, of, 1, 1)), ("barrier", ())]
        return [("init", ()), *(turn * TURNS), ("finalize", ())]

    return trace_of({rank: actions(rank) for rank in range(n)})


def pipeline(n: int) -> Trace:
    """Each process works when the one before it has: the last has waited for all."""

    def actions(rank: int) -> Actions:
        before: Actions = [("recv", (rank - 1, 0, 8, 1))] if rank else []
        behind: Actions = [("send", (rank + 1, 0, 8, 1))] if rank < n - 1 else []
        return [("init", ()), *before, ("compute", (1e8,)), *behind, ("finalize", ())]

    return trace_of({rank: actions(rank) for rank in range(n)})


@pytest.fixture(scope="module")
def rules() -> Application:
    return fit([ring(n) for n in LEARNED]).application


def machine(speed: float = 1.0, bandwidth: float = 125.0) -> Hardware:
    values = {
        "speed": Quantity(speed, "Gflop/s", "x"),
        "bandwidth": Quantity(bandwidth, "MB/s", "x"),
        "latency": Quantity(50.0, "us", "x"),
    }
    entry = Entry("x", Kind.cluster, "", values)
    return Hardware(entry, entry)


def true_time(rules: Application, on: Hardware, n: int, cpu: float = 1.0, bandwidth: float = 1e9) -> float:
    """What blocks of the loaded machine say: its processors and links are slower."""
    speed, link = on.device["speed"] / 1e9 * cpu, min(on.device["bandwidth"] / 1e6, bandwidth / 8.0)
    return sum(each.weight * each.time for each in by_blocks(rules, machine(speed, link))(n).phases)


def runs_on(rules: Application, on: Hardware, noise: float = 0.0, seed: int = 5) -> list[Run]:
    draw = np.random.default_rng(seed)
    found = []
    for n in (*LEARNED, *LEARNED):
        cpu, bandwidth = float(draw.uniform(0.5, 1.0)), float(draw.uniform(300.0, 1000.0))
        time = true_time(rules, on, n, cpu, bandwidth) * float(np.exp(noise * draw.standard_normal()))
        found.append(Run("ring", "c", SIZE, n, cpu, bandwidth, time))
    return found


def test_it_keeps_the_contract(rules: Application) -> None:
    predictor = SignaturePredictor(rules, assumed(), problem_size=SIZE).fit(runs_on(rules, machine()))
    assert isinstance(predictor, Predictor)
    one = predictor.predict(Request(SIZE, 64, 0.8, 500.0), level=0.8)
    many = predictor.predict_many(SIZE, [64, 128], 0.8, 500.0, level=0.8)
    assert many.execution_time[0] == pytest.approx(one.execution_time)
    assert one.interval.low < one.execution_time < one.interval.high
    assert predictor.predict_many([], [], [], []).execution_time.shape == (0,)
    terms = predictor.breakdown(Request(SIZE, 64, 0.8, 500.0))
    assert sum(term.seconds for term in terms) == pytest.approx(one.execution_time)
    share = computing_share(predictor, SIZE, 64, 0.8, 500.0)
    computing = sum(term.seconds for term in terms if term.name.startswith("computation"))
    assert share[0] == pytest.approx(computing / one.execution_time)


@pytest.mark.parametrize(("cpu", "bandwidth"), [(1.0, 1000.0), (0.5, 1000.0), (1.0, 250.0), (0.6, 400.0)])
def test_loads_slow_what_they_are_of(rules: Application, cpu: float, bandwidth: float) -> None:
    predictor = SignaturePredictor(rules, assumed(), problem_size=SIZE)
    predicted = predictor.predict(Request(SIZE, 64, cpu, bandwidth)).execution_time
    assert predicted == pytest.approx(true_time(rules, assumed(), 64, cpu, bandwidth), rel=0.01)


def test_waiting_for_the_computation_of_others_is_computation() -> None:
    rules = fit([pipeline(n) for n in LEARNED]).application
    work, latencies, bytes_ = apart(rules, assumed(), 32).sum(axis=0)
    assert work == pytest.approx(32 * 0.1, rel=1e-6)
    assert latencies == pytest.approx(31 * 50e-6, rel=0.01)
    assert bytes_ < 1e-4


def test_runs_on_another_cluster_tell_its_speeds(rules: Application) -> None:
    there = machine(speed=2.5)
    predictor = SignaturePredictor(rules, assumed(), problem_size=SIZE).fit(runs_on(rules, there))
    for n in (64, 128):
        predicted = predictor.predict(Request(SIZE, n, 1.0, 1000.0)).execution_time
        assert predicted == pytest.approx(true_time(rules, there, n), rel=0.05)


def test_the_terms_of_phases_are_corrected_as_their_sum_is(rules: Application) -> None:
    """Computation that takes half as long again as the rules say, and communication four times as long."""
    slower = [
        replace(run, execution_time=time)
        for run in runs_on(rules, machine())
        for computation, latencies, bytes_ in [apart(rules, machine(), run.processors).sum(axis=0)]
        for time in [
            1.5 * computation / run.min_avg_avail_cpu
            + 4.0 * (latencies + bytes_ * 1000.0 / run.request.available_bandwidth)
        ]
    ]
    predictor = SignaturePredictor(rules, machine(), problem_size=SIZE).fit(slower)
    asked = Request(SIZE, 32, 0.8, 500.0)
    terms = predictor.breakdown(asked)
    assert predictor.factors[1] > 2.0 * predictor.factors[0]
    assert sum(term.seconds for term in terms) == pytest.approx(predictor.predict(asked).execution_time)


def test_traced_runs_stand_in_for_runs_and_rehearse(rules: Application) -> None:
    timed = {n: true_time(rules, machine(), n) for n in LEARNED}
    predictor = SignaturePredictor(rules, assumed(), problem_size=SIZE, timed=timed)
    assert predictor.calibration.rehearsed == len(predictor.calibration.scores) == 1
    near, far = (predictor.predict(Request(SIZE, n, 1.0, 1000.0)).interval for n in (16, 256))
    assert far.high / far.low > near.high / near.low
    skewed = SignaturePredictor(rules, assumed(), problem_size=SIZE, timed=timed | {16: 1.3 * timed[16]})
    wide = skewed.predict(Request(SIZE, 16, 1.0, 1000.0)).interval
    assert wide.high / wide.low > near.high / near.low


def test_intervals_hold_what_they_promise(rules: Application) -> None:
    held = []
    for seed in range(4):
        known = runs_on(rules, machine(), noise=0.05, seed=seed)
        predictor = SignaturePredictor(rules, assumed(), problem_size=SIZE).fit(known)
        for run in [run for more in range(10) for run in runs_on(rules, machine(), 0.05, 100 * seed + more + 50)]:
            interval = predictor.predict(run.request).interval
            held.append(interval.low <= run.execution_time <= interval.high)
            predictor.learn(run)
    assert 0.85 <= np.mean(held) <= 0.97


def test_the_growth_with_the_problem_size_is_learned(rules: Application) -> None:
    base = true_time(rules, machine(), 16)
    sizes = (500.0, 1000.0, 2000.0)
    known = [Run("ring", "c", size, 16, 1.0, 1000.0, base * (size / SIZE) ** 2) for size in sizes]
    predictor = SignaturePredictor(rules, assumed(), problem_size=SIZE).fit(known)
    predicted = predictor.predict(Request(1500.0, 32, 1.0, 1000.0)).execution_time
    assert predicted == pytest.approx(9.0 * true_time(rules, machine(), 32), rel=0.05)
    alone = SignaturePredictor(rules, assumed(), problem_size=SIZE).predict(Request(1000.0, 32, 1.0, 1000.0))
    assert "only problem_size 500 was learned" in alone.warnings[0]


def test_a_document_answers_as_its_predictor(rules: Application) -> None:
    predictor = SignaturePredictor(rules, assumed(), problem_size=SIZE, notes=["n"]).fit(runs_on(rules, machine()))
    request = Request(SIZE, 64, 0.8, 500.0)
    before = predictor.predict(request)
    after = documents.parse(documents.dump(predictor)).predict(request)
    assert after == before
    assert after.warnings[-1] == "n"


def test_counts_that_the_rules_do_not_hold_for_are_infinite_or_refused() -> None:
    def butterfly(n: int) -> Trace:
        turns = [
            {rank: ("sendRecv", (100, rank ^ 1 << bit, 100, rank ^ 1 << bit, 1, 1)) for rank in range(n)}
            for bit in range(n.bit_length() - 1)
        ]
        return trace_of({r: [("init", ()), *(turn[r] for turn in turns), ("finalize", ())] for r in range(n)})

    rules = fit([butterfly(n) for n in (8, 16, 32)]).application
    predictor = SignaturePredictor(rules, assumed(), problem_size=SIZE)
    assert np.isinf(predictor.expect_many(SIZE, [48, 64], 1.0, 1000.0)).tolist() == [True, False]
    with pytest.raises(InputError, match=r"not valid for 48 processes .*, try 32 or 64"):
        predictor.predict(Request(SIZE, 48, 1.0, 1000.0))
    with pytest.raises(InputError, match="none of the numbers of processors 5, 6"):
        predictor.fit([Run("a", "c", SIZE, n, 1.0, 1000.0, 1.0) for n in (5, 6)])


class Line(LogRegression):
    """A straight line of log time in log P: what the small runs show alone."""

    name = "line"

    def _fit_log_time(self, points: np.ndarray, log_time: np.ndarray) -> None:
        self.line = np.polyfit(points[:, 1], log_time, 1)

    def _log_time(self, points: np.ndarray) -> np.ndarray:
        return np.asarray(np.polyval(self.line, points[:, 1]))


def test_it_wins_a_tournament_where_communication_takes_over(rules: Application) -> None:
    on = machine()
    known = [Run("ring", "c", SIZE, n, 1.0, 1000.0, true_time(rules, on, n)) for n in (4, 8, 16, 32, 64, 128)]
    tournament = Tournament([Line(), SignaturePredictor(rules, assumed(), problem_size=SIZE)]).fit(known)
    assert tournament.chosen.name == "signature"
    assert tournament.predict(Request(SIZE, 256, 1.0, 1000.0)).execution_time == pytest.approx(
        true_time(rules, on, 256), rel=0.02
    )


def test_a_tournament_is_kept_with_its_signature(rules: Application) -> None:
    entrants = [RobustPredictor(), SignaturePredictor(rules, assumed(), problem_size=SIZE)]
    tournament = Tournament(entrants).fit(runs_on(rules, machine()) * 3)
    request = Request(SIZE, 64, 0.8, 500.0)
    assert documents.parse(documents.dump(tournament)).predict(request) == tournament.predict(request)
