"""Energy, power, clocks and the chance to finish in rankings: policies, caps, and what placements tell."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import scipy
from command_line import call, refusal
from hypothesis import given
from hypothesis import strategies as st
from known_model import Known
from metered_runs import made

from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.blocks.failures import FailureRate
from metasched.blocks.power import drawn, of_processors
from metasched.placement.clusters.constraints import Constraints
from metasched.placement.clusters.power_draw import COMMON
from metasched.placement.clusters.running_jobs import RunningJob, StartedJob, terms_left
from metasched.placement.clusters.state import ClusterState, SetMinima
from metasched.placement.loads.counted import Loads
from metasched.placement.loads.recent_placements import RecentPlacement, as_running
from metasched.placement.ranking.contention import Shared
from metasched.placement.ranking.layouts import layouts
from metasched.placement.ranking.objective import Objective
from metasched.placement.ranking.query import InfeasibleError, Question
from metasched.placement.ranking.ranker import rank
from metasched.placement.ranking.reasons import Cause
from metasched.placement.ranking.rendering import rendered
from metasched.placement.ranking.slowdown import LEVEL, Latest, latest
from metasched.placement.search.joined_clusters import lay_out
from metasched.predictors.abilities import clock_spread, energy_predictor, under
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.records import InputError, Interval, Request, Settings
from metasched.store import documents
from metasched.store.files.descriptions import read_description
from metasched.store.files.hardware import read_entry

FREQUENCIES = (1200.0, 1500.0, 1800.0, 2000.0)
CLOCKED = tuple(Settings(frequency=each) for each in FREQUENCIES)
ENERGY = Objective(time=0.0, energy=1.0)


@pytest.fixture(scope="module")
def learned() -> MeteredPredictor:
    return MeteredPredictor("a", "c").fit(made(40, seed=1))


@pytest.fixture
def state() -> ClusterState:
    return ClusterState.make("c", [f"n{k}" for k in range(8)], available_cpu=0.9, available_bandwidth=90.0)


def every(learned: MeteredPredictor) -> list[tuple[float, float, int, float]]:
    """Joules, seconds, processors and clock of all that could be chosen."""
    found = []
    for p, f in itertools.product(range(1, 9), FREQUENCIES):
        view = under(learned, Settings(frequency=f))
        energy, asked = energy_predictor(view), Request(900, p, 0.9, 90.0)
        assert energy is not None
        found.append((energy.predict(asked).execution_time, view.predict(asked).execution_time, p, f))
    return found


def in_doubt(learned: MeteredPredictor, f: float, beside: float, p: int, cpu: float) -> float:
    """What is kept, on the logarithm of the time, for the doubt about a clock beside another."""
    known = clock_spread(under(learned, Settings(frequency=f)), beside, 900, p, cpu, 90.0)
    return float(scipy.special.ndtri(0.5 + 0.5 * LEVEL) * known[0])


def test_least_energy_within_a_slowdown_is_that_of_all_that_could_be_chosen(
    learned: MeteredPredictor, state: ClusterState
) -> None:
    asked = Question(900, objective=ENERGY, settings=CLOCKED, max_slowdown=0.3)
    best = rank([state], {"c": learned}, asked).placements[0]
    choices = every(learned)
    _, soonest, most, clock = min(choices, key=lambda each: each[1])
    limits = {f: soonest * 1.3 * math.exp(-in_doubt(learned, f, clock, most, 0.9)) for f in FREQUENCIES}
    joules, _, p, f = min(each for each in choices if each[1] <= limits[each[3]])
    assert (best.resource_set.processors, best.resource_set.frequency, best.resource_set.cluster) == (p, f, "c")
    assert best.energy == pytest.approx(joules, rel=1e-3)
    assert best.power == pytest.approx(joules / best.prediction.execution_time, rel=1e-3)
    fastest = rank([state], {"c": learned}, replace(asked, objective=Objective(), max_slowdown=None)).placements[0]
    assert best.completion <= 1.3 * fastest.completion
    assert fastest.energy is not None
    assert best.energy is not None
    assert best.energy < fastest.energy


def test_reasons_name_the_clock(learned: MeteredPredictor, state: ClusterState) -> None:
    asked = Question(900, Constraints(processors=(8,)), settings=CLOCKED)
    best = rank([state], {"c": learned}, asked).placements[0]
    slower = replace(
        best,
        resource_set=replace(best.resource_set, frequency=1800.0),
        prediction=replace(best.prediction, execution_time=1.1 * best.prediction.execution_time),
    )
    cause = Cause(lambda place, *_: best.prediction.execution_time * (1.1 if place[-1] == 1800.0 else 1.0))
    assert cause.of(best, slower) == "1800 MHz instead of 2000 MHz"


def test_no_placement_draws_more_than_the_cap(learned: MeteredPredictor, state: ClusterState) -> None:
    asked = Question(900, settings=CLOCKED, power_cap=150.0, top=50)
    placements = rank([state], {"c": learned}, asked).placements
    assert placements
    assert all(each.power is not None and each.power <= 150.0 * 1.01 for each in placements)
    fastest = min(seconds for joules, seconds, *_ in every(learned) if joules / seconds <= 150.0)
    assert placements[0].prediction.execution_time == pytest.approx(fastest, rel=1e-2)
    with pytest.raises(InfeasibleError, match="draws more than the power cap of 5 W"):
        rank([state], {"c": learned}, replace(asked, power_cap=5.0))


def test_what_counts_under_a_cap_grows_with_the_doubt_about_the_loads_to_come(
    learned: MeteredPredictor, state: ClusterState
) -> None:
    def limit(cpu: float, ends: tuple[float, float]) -> float:
        every = np.ones(8)
        minima = SetMinima(every, every, np.outer(ends, every), np.ones((2, 8)))
        known = replace(state, available_cpu=np.full(8, cpu), minima=minima)
        found = rank([known], learned, Question(900, Constraints(processors=(4,)))).placements[0].power_limit
        assert found is not None
        return found

    assert limit(0.5, (0.5, 2.0)) > 1.01 * limit(0.5, (1.0, 1.0))
    assert limit(1.0, (0.5, 2.0)) == pytest.approx(limit(1.0, (1.0, 1.0)))


def test_what_counts_under_a_cap_is_told_at_what_most_runs_get(learned: MeteredPredictor, state: ClusterState) -> None:
    every, ends = np.ones(8), np.outer((0.5, 1.4), np.ones(8))

    def limit(middle: float, cpu: float = 0.6) -> float:
        minima = SetMinima(every, every, ends, np.ones((2, 8)), middle * every, every)
        known = replace(state, available_cpu=np.full(8, cpu), minima=minima)
        found = rank([known], learned, Question(900, Constraints(processors=(4,)))).placements[0].power_limit
        assert found is not None
        return found

    assert limit(1.2) > 1.01 * limit(1.0)
    assert limit(1.2, 1.0) == pytest.approx(limit(1.0, 1.0))  # no processor has more than itself


def test_a_slowdown_holds_with_the_loads_that_will_come(learned: MeteredPredictor, state: ClusterState) -> None:
    cpu = np.array([0.9, 0.9, 0.89, 0.88, 0.88, 0.87, 0.87, 0.86])
    every, share, p = np.ones(8), 0.2, 4

    def chosen(low: float) -> tuple[float, float, float | None, float | None]:
        minima = SetMinima(every, every, np.outer((low, 1.0), every), np.ones((2, 8)))
        known = replace(state, available_cpu=cpu, minima=minima)
        asked = Question(900, Constraints(processors=(p,)), ENERGY, settings=CLOCKED, max_slowdown=share)
        best = rank([known], learned, asked).placements[0]
        assert best.energy is not None
        return best.resource_set.available_cpu, best.prediction.execution_time, best.resource_set.frequency, best.energy

    def told(least: float, f: float) -> tuple[float, float]:
        view = under(learned, Settings(frequency=f))
        energy, asked = energy_predictor(view), Request(900, p, least, 90.0)
        assert energy is not None
        return view.predict(asked).execution_time, energy.predict(asked).execution_time

    for low in (1.0, 0.9, 0.2):
        # Levels are carried as normal quantiles are.
        part = low ** (scipy.special.ndtri(0.5 + 0.5 * LEVEL) / scipy.special.ndtri(0.95))
        fastest = min(told(0.88, f)[0] for f in FREQUENCIES)
        fast = max(FREQUENCIES, key=lambda f: -told(0.88, f)[0])
        reach = math.log(told(0.88 * part, fast)[0] / fastest)
        extra = math.log((1.0 + share) / (1.0 + share * math.exp(-reach)))
        able = []
        for least, f in itertools.product((0.88, 0.87, 0.86), FREQUENCIES):
            seconds, joules = told(least, f)
            by_loads = extra if least == 0.88 else math.sqrt(2.0) * reach
            kept = math.hypot(by_loads, in_doubt(learned, f, fast, p, 0.88))
            if seconds <= fastest * max((1.0 + share) * math.exp(-kept), 1.0):
                able.append((joules, least, f))
        joules, least, f = min(able)
        assert chosen(low)[0] == pytest.approx(least)
        assert chosen(low)[2:] == (f, pytest.approx(joules, rel=1e-3))
    assert chosen(0.2)[1] < chosen(1.0)[1]


@given(share=st.floats(0.0, 0.5), doubts=st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 5.0)), low=st.floats(0.3, 1.0))
def test_the_less_is_known_of_a_clock_the_sooner_it_must_complete(
    share: float, doubts: tuple[float, float], low: float, learned: MeteredPredictor
) -> None:
    names = [f"n{k}" for k in range(8)]
    minima = SetMinima(np.ones(8), np.ones(8), np.outer((low, 1.0), np.ones(8)), np.ones((2, 8)))
    state = replace(ClusterState.make("c", names, available_cpu=0.9, available_bandwidth=90.0), minima=minima)
    fastest = rank([state], learned, Question(900, settings=CLOCKED)).placements[0]
    clock = learned.state.clock
    assert clock is not None

    def limits(times: float) -> Latest:
        doubted = learned.under(Settings())
        doubted.state = replace(learned.state, clock=replace(clock, doubt=tuple(times * np.array(clock.doubt))))
        layout, _ = lay_out([state], doubted, Constraints(), avoid_shared=False, settings=CLOCKED)
        return latest(layout, fastest, share, 900)

    less, more = map(limits, sorted(doubts))
    place = FREQUENCIES.index(fastest.resource_set.frequency or 0.0)
    for known in (less, more):
        assert np.all((fastest.completion <= known.other) & (known.other <= known.own * (1.0 + 1e-12)))
        assert known.own.argmax() == place or known.own[place] == pytest.approx(known.own.max())
    assert np.all((more.own <= less.own) & (more.other <= less.other))
    assert more.own[place] == less.own[place] <= (1.0 + share) * fastest.completion * (1.0 + 1e-12)


@given(st.integers(0, 100_000))
def test_where_nothing_may_be_slower_the_fastest_is_left(seed: int) -> None:
    draw = np.random.default_rng(seed)
    state = ClusterState.make(
        "c", [f"n{k}" for k in range(5)], available_cpu=draw.uniform(0.2, 1.0, 5),
        available_bandwidth=draw.uniform(10, 1000, 5), hardware=of_processors(50.0),
    )  # fmt: skip
    model, asked = Known(traffic=float(draw.uniform(10, 3000))), Question(1.0, objective=ENERGY, max_slowdown=0.0)
    fastest = rank([state], model, replace(asked, objective=Objective(), max_slowdown=None)).placements[0]
    assert rank([state], model, asked).placements[0].completion == pytest.approx(fastest.completion)


@dataclass(frozen=True)
class HalfAsFast:
    """Jobs that take more than some seconds alone, or are on a node with another, are half as fast."""

    from_seconds: float = math.inf

    def effects(self, cluster, predictor, shares, execution_time):
        met = np.array([cluster.jobs[share.nodes].max() > 0 for share in shares])
        return Shared(1.0 + (met | (execution_time > self.from_seconds)), np.zeros(len(shares)))


def test_what_other_jobs_make_too_late_is_not_taken_for_its_energy() -> None:
    state = ClusterState.make(
        "c", ["n0", "n1", "n2"], available_cpu=[1.0, 0.7, 0.7], jobs=[1, 0, 0], hardware=of_processors(50.0)
    )
    asked = Question(1.0, objective=ENERGY, contention=HalfAsFast(), max_slowdown=0.3, top=9)
    # Alone n0 would take 100 s, both of the others 93 s, each of them 143 s, with twice the joules of one.
    found = rank([state], Known(traffic=11000.0), asked).placements
    assert [each.resource_set.nodes for each in found] == [("n1", "n2")]
    assert found[0].slowdown == 1.0


def test_of_the_same_nodes_the_clock_counts_that_is_best_beside_other_jobs(
    learned: MeteredPredictor, state: ClusterState
) -> None:
    def stretched(seconds: float, limit: float) -> float:
        return 2.0 if seconds > limit else 1.0

    choices = [each for each in every(learned) if each[2] == 8]
    alone = min(choices)
    asked = Question(900, Constraints(processors=(8,)), ENERGY, HalfAsFast(0.99 * alone[1]), settings=CLOCKED)
    best = rank([state], learned, asked).placements
    joules, clock = min((stretched(seconds, 0.99 * alone[1]) * energy, f) for energy, seconds, _, f in choices)
    assert clock != alone[-1]
    assert [each.resource_set.frequency for each in best] == [clock]
    assert best[0].energy == pytest.approx(joules, rel=1e-3)


def test_a_slowdown_is_of_the_loads_over_the_run_and_not_over_the_first_minute(
    learned: MeteredPredictor, state: ClusterState
) -> None:
    def forecast(cluster: ClusterState, seconds: float) -> ClusterState:
        return replace(cluster, available_cpu=np.full(8, 0.3 if seconds < 61.0 else 0.9))

    asked = Question(90_000, settings=CLOCKED, max_slowdown=0.05, loads=Loads(forecast))
    fastest = rank([state], learned, replace(asked, max_slowdown=None)).placements[0]
    best = rank([state], learned, replace(asked, objective=ENERGY)).placements[0]
    assert fastest.completion > 61.0
    assert best.completion <= 1.05 * fastest.completion


def test_without_measured_runs_the_hardware_tells_energy_and_the_chance_to_finish(state: ClusterState) -> None:
    entry = read_entry("galera-plus")
    best = rank([replace(state, hardware=entry)], Known(), Question(1.0)).placements[0]
    time, p = best.prediction.execution_time, best.resource_set.processors
    assert best.energy == pytest.approx(82.84 * p * time)  # of each node its one processor
    assert best.success == pytest.approx(math.exp(-entry["lambda"] * len(best.resource_set.nodes) * time))
    answer = best.as_dict()
    assert (answer["energy"], answer["power"]) == (best.energy, best.power)
    plain = rank([state], Known(), Question(1.0)).placements[0]
    assert (plain.energy, plain.power, plain.success) == (None, None, None)
    assert "energy" not in plain.as_dict()


def test_records_of_failures_tell_the_chance_to_finish_rather_than_the_hardware(state: ClusterState) -> None:
    failures = FailureRate.observed(2, 1e5)
    recorded = replace(state, hardware=read_entry("galera-plus"), failures=failures)
    for asked in (recorded, replace(recorded, hardware=None)):
        best = rank([asked], Known(), Question(1.0, level=0.8)).placements[0]
        time, nodes = best.prediction.execution_time, len(best.resource_set.nodes)
        assert best.success == pytest.approx(failures.success(time, nodes))
        assert best.success_interval == Interval(*failures.success_between(time, nodes, 0.8), 0.8)
        assert best.success_interval.low < best.success < best.success_interval.high < 1.0
        assert best.as_dict()["success_interval"] == best.success_interval.as_dict()
    place = best.resource_set.place
    (slowed,), _ = rendered([replace(best, slowdown=2.0)], {place: asked}, {place: Known()}, 1.0, 0.8, 1)
    assert slowed.success == pytest.approx(failures.success(2.0 * time, nodes))


def test_nodes_that_are_not_full_draw_what_their_threads_do() -> None:
    entry = read_entry("galera-plus")
    assert drawn(entry, [0, 1, 12, 13]).tolist() == pytest.approx([0.0, 82.84, 136.08, 136.08 + 82.84])
    assert drawn(entry, [8, 24, 25], 24).tolist() == pytest.approx([116.72, 154.6, 154.6 + 82.84])
    bare = replace(entry, values={"cores": Quantity(4, "1", "made")})
    with pytest.raises(InputError, match="galera-plus gives no power"):
        drawn(bare, [1])


def test_clocks_keep_to_the_clusters_that_may_be_used(learned: MeteredPredictor, state: ClusterState) -> None:
    other = replace(state, name="d")
    asked = Question(900, Constraints(clusters=("d",)), settings=(Settings(frequency=1500.0),), top=3)
    found = rank([state, other], {"c": learned, "d": learned}, asked)
    assert {each.resource_set.cluster for each in found.placements} == {"d"}
    assert set(found.clusters) == {"c", "d"}
    assert layouts([state], learned, Settings(), frequencies=(1500.0,)) == (Settings(frequency=1500.0),)
    assert layouts([state], learned, Settings()) == ()
    with pytest.raises(InputError, match="does not depend on the clock"):
        layouts([state], Known(), Settings(), frequencies=(1500.0,))
    both = {"c": Known(), "d": learned}
    clocked = layouts([state, other], both, Settings(), Constraints(clusters=("d",)), frequencies=(1500.0,))
    assert clocked == (Settings(frequency=1500.0),)


def test_a_description_names_hardware_or_watts(tmp_path: Path) -> None:
    text = '[[cluster]]\nname = "c"\nnodes = [{ names = "n[1-2]" }]\n'
    (tmp_path / "clusters.toml").write_text(text + 'hardware = "galera-plus"\n')
    assert read_description(tmp_path / "clusters.toml").clusters[0].hardware == read_entry("galera-plus")
    (tmp_path / "clusters.toml").write_text(text + "watts = 95\n")
    assert read_description(tmp_path / "clusters.toml").clusters[0].hardware == of_processors(95.0)
    for more, answer in (
        ('hardware = "gallera"\n', "there is no hardware 'gallera'"),
        ('watts = 9\nhardware = "kask"\n', "both"),
    ):
        (tmp_path / "clusters.toml").write_text(text + more)
        with pytest.raises(InputError, match=answer):
            read_description(tmp_path / "clusters.toml")


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return call(capsys, "rank", "--application", "a", "--problem-size", "900", *arguments)


def test_the_command_line_asks_for_least_energy(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, learned: MeteredPredictor
) -> None:
    (tmp_path / "a.json").write_text(documents.dump(learned))
    (tmp_path / "clusters.toml").write_text(
        '[[cluster]]\nname = "c"\nnodes = [{ names = "n[0-7]", available_cpu = 0.9, available_bandwidth = 90.0 }]\n'
    )
    common = ("--clusters", str(tmp_path / "clusters.toml"), "--model", str(tmp_path / "a.json"))
    asked = (*common, "--frequencies", "1200,2000", "--policy", "min-energy", "--max-slowdown", "0.1")
    best = json.loads(answered(capsys, *asked, "--json")[1])["placements"][0]
    assert best["frequency"] in (1200.0, 2000.0)
    assert best["power"] == pytest.approx(best["energy"] / best["execution_time"])
    shown = answered(capsys, *asked)[1]
    assert "MHz" in shown
    usual = "no clock is requested: times on c are those at"
    assert usual not in answered(capsys, *asked)[2]
    assert f"{usual} {learned.usual_clock:g} MHz, the usual clock of its runs" in answered(capsys, *common)[2]
    one = ("predict", str(tmp_path / "a.json"), "--problem-size", "900", "--processors", "4")
    assert f"at {learned.usual_clock:g} MHz, the usual clock of the runs" in call(capsys, *one)[1]
    assert json.loads(call(capsys, *one, "--json")[1])["frequency"] == learned.usual_clock
    at_one = (*one, "--frequency", "1200")
    assert "usual clock" not in call(capsys, *at_one)[1]
    assert "frequency" not in json.loads(call(capsys, *at_one, "--json")[1])
    for wrong, answer in (
        (("--frequencies", "fast"), "--frequencies is 'fast'"),
        (("--frequencies", "2.4"), "--frequencies: frequency is 2.4, expected MHz"),
        (("--policy", "min-energy", "--weight", "time=1"), "both --policy and --weight"),
        (("--power-cap", "-3"), "power_cap is -3"),
        (("--max-slowdown", "-1"), "max_slowdown is -1"),
    ):
        assert answer in refusal(answered(capsys, *common, *wrong))


def test_a_clock_that_the_hardware_cannot_hold_is_not_chosen(learned: MeteredPredictor, state: ClusterState) -> None:
    fast = max(FREQUENCIES)
    held = {"clock_held_max": Quantity(fast - 100.0, "MHz", "detected")}
    bound = replace(state, hardware=Entry("n", Kind.cpu, "", held))
    asked = Question(900, settings=CLOCKED, top=50)
    best = rank([bound], {"c": learned}, asked).placements[0]
    assert best.resource_set.frequency == max(each for each in FREQUENCIES if each < fast)
    assert rank([state], {"c": learned}, asked).placements[0].resource_set.frequency == fast
    with pytest.raises(InfeasibleError, match=rf"8 ruled out \({fast:g} MHz, at which its processors cannot be held\)"):
        rank([bound], {"c": learned}, replace(asked, settings=(Settings(frequency=fast),)))


def test_idle_nodes_and_jobs_that_run_count_under_the_cap(learned: MeteredPredictor, state: ClusterState) -> None:
    idle = of_processors(0.0)
    idle = replace(idle, values={"idle_power": Quantity(10.0, "W", "stated")})
    busy = replace(state, hardware=idle, jobs=np.array([1, 1, 0, 0, 0, 0, 0, 0]))
    free = Constraints(exclude=frozenset({"n0", "n1"}))
    there = {"c": (RunningJob(("n0", "n1"), (1, 1), 100.0, 0.0, power=70.0),)}
    asked = Question(900, free, settings=CLOCKED, power_cap=250.0, top=50, running=there)
    placements = rank([busy], {"c": learned}, asked).placements
    assert placements
    for each in placements:
        assert each.power is not None
        assert each.power + 70.0 + 10.0 * (6 - len(each.resource_set.nodes)) <= 250.0 * 1.01
    alone = rank([busy], {"c": learned}, replace(asked, running={})).placements
    assert alone[0].prediction.execution_time < placements[0].prediction.execution_time
    with pytest.raises(InfeasibleError, match="100 W is below what c draws without the job: 70 W by jobs that run"):
        rank([busy], {"c": learned}, replace(asked, power_cap=100.0))


def test_doubts_of_many_jobs_count_under_the_cap_as_independent_but_for_a_common_part(
    learned: MeteredPredictor, state: ClusterState
) -> None:
    busy = replace(state, jobs=np.array([1, 1, 1, 1, 1, 1, 0, 0]))
    there = tuple(RunningJob((f"n{k}",), (1,), 100.0, 0.0, power=50.0, power_doubt=10.0) for k in range(6))
    free = Constraints(processors=(1,), exclude=frozenset({f"n{k}" for k in range(6)}))
    asked = Question(900, free, settings=CLOCKED[:1], running={"c": there})
    best = rank([busy], {"c": learned}, asked).placements[0]
    assert best.power_limit is not None
    middle, doubt = best.power_middle, best.power_doubt
    assert middle is not None
    assert 0.0 < doubt == pytest.approx(best.power_limit - middle)
    squares, doubts = 6 * 10.0**2 + doubt**2, 6 * 10.0 + doubt
    most = 300.0 + middle + math.sqrt((1.0 - COMMON) * squares + COMMON * doubts**2)
    assert 300.0 + middle + 1.5 * math.sqrt(squares) > most > 300.0 + middle + math.sqrt(squares)
    assert rank([busy], {"c": learned}, replace(asked, power_cap=most + 0.01)).placements
    with pytest.raises(InfeasibleError, match="power cap"):
        rank([busy], {"c": learned}, replace(asked, power_cap=most - 0.01))


def test_a_job_that_runs_counts_with_the_power_and_the_doubt_that_its_placement_had(
    learned: MeteredPredictor, state: ClusterState
) -> None:
    asked = Question(900, Constraints(processors=(2,)), settings=(Settings(frequency=1500.0),))
    best = rank([state], learned, asked).placements[0]
    nodes = best.resource_set.nodes
    started = StartedJob(nodes, (1,) * len(nodes), 1.0, "a", 900.0, settings=Settings(frequency=1500.0))
    placed = RecentPlacement(
        "c", nodes, (1,) * len(nodes), 0.0, 99.0, power=best.power_middle, power_doubt=best.power_doubt
    )
    (by_model,), _ = terms_left([started], state, lambda name: learned)
    (by_placement,) = as_running([placed], state)
    for job in (by_model, by_placement):
        assert (job.power, job.power_doubt) == (pytest.approx(best.power_middle), pytest.approx(best.power_doubt))


def test_the_load_of_a_job_that_runs_is_none_on_itself(learned: MeteredPredictor) -> None:
    started = StartedJob(("n0", "n1"), (2, 2), 600.0, "a", 9000.0, settings=Settings(frequency=1500.0))
    seen = {1.0: ("alone before", 4), 4 / 5: ("its own processes", 0), 2 / 5: ("as many others", 0)}
    found = {}
    for cpu, (whose, free) in seen.items():
        state = ClusterState.make("c", ["n0", "n1"], processors=free, available_cpu=cpu, available_bandwidth=90.0)
        (found[whose],), _ = terms_left([started], state, lambda name: learned)
    assert found["its own processes"] == found["alone before"]
    others, alone = found["as many others"], found["alone before"]
    assert others.computation > alone.computation
    assert others.power is not None
    assert alone.power is not None
    assert others.power < alone.power
    # What was measured before its processes ran is the load of others.
    before = ClusterState.make("c", ["n0", "n1"], processors=0, available_cpu=0.8, available_bandwidth=90.0, age=600.0)
    (unseen,), _ = terms_left([started], before, lambda name: learned)
    assert unseen.power is not None
    assert unseen.power < alone.power


def test_a_cap_below_idle_power_is_said_on_the_command_line(
    tmp_path: Path, learned: MeteredPredictor, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.json").write_text(documents.dump(learned))
    (tmp_path / "c.toml").write_text(
        '[[cluster]]\nname = "c"\nidle_watts = 40\nnodes = [{ names = "n[0-7]", available_bandwidth = 90.0 }]\n'
        'running = [{ nodes = "n[0-1]", application = "a", problem_size = 900.0, running_for = 1.0 }]\n'
    )
    common = ("--clusters", str(tmp_path / "c.toml"), "--model", str(tmp_path / "m.json"))
    status, _, answer = answered(capsys, *common, "--power-cap", "300")
    assert status == 1
    assert "the power cap of 300 W is below what c draws without the job" in answer
    assert "240 W by 6 idle nodes" in answer
