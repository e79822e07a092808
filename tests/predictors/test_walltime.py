"""Time limits: the stated chance is the share of runs that they would have killed."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import call, refusal
from hypothesis import given
from hypothesis import strategies as st

from metasched.predictors.contract import Predictions
from metasched.predictors.walltime import (
    LEVELS,
    ExecutionTimes,
    Limit,
    Question,
    loads_to_expect,
    of_placement,
    suggestions,
)
from metasched.records import (
    IDLE_BANDWIDTH,
    IDLE_CPU,
    InputError,
    Interval,
    Placement,
    Prediction,
    ResourceSet,
    Run,
    Settings,
)
from metasched.store.database.store import Store
from tests.service.daemons import learned_database


class LogNormal:
    """Predicts N/(P cpu) with log-normal errors of a known spread."""

    name = "lognormal"

    def __init__(self, spread: float) -> None:
        self.spread = spread

    def predict_many(self, n: object, p: object, cpu: object, bw: object, level: float = 0.9) -> Predictions:
        time, _ = np.broadcast_arrays(np.asarray(n) / (np.asarray(p) * np.asarray(cpu)), np.asarray(bw))
        from scipy.special import ndtri

        factor = np.exp(self.spread * ndtri(0.5 + level / 2))
        return Predictions(time, time / factor, time * factor, level)


@given(st.floats(0.01, 0.5), st.floats(0.001, 0.4))
def test_with_one_load_the_limit_is_the_quantile(spread: float, chance: float) -> None:
    from scipy.special import ndtri

    times = ExecutionTimes(LogNormal(spread), 100.0, 2, np.array([0.5]), np.array([90.0]))  # type: ignore[arg-type]
    limit = times.limit(chance)
    assert limit.seconds == pytest.approx(100.0 * math.exp(spread * float(ndtri(1 - chance))), rel=1e-6)
    assert times.chance(limit.seconds) == pytest.approx(chance, rel=1e-6)


class Stepped:
    """Predicts ends of intervals that grow with the level as no normal distribution's do."""

    def predict_many(self, n: object, p: object, cpu: object, bw: object, level: float = 0.9) -> Predictions:
        time = np.full(np.asarray(cpu).shape, 100.0)
        wide = 1.0 + level**3
        return Predictions(time, time / wide, time * wide, level)


def test_between_the_ends_of_intervals_the_normal_quantile_is_linear_in_the_logarithm_of_time() -> None:
    from scipy.special import ndtr, ndtri

    times = ExecutionTimes(Stepped(), 1.0, 1, np.array([0.5]), np.array([90.0]))  # type: ignore[arg-type]
    ends = [(100.0 * (1.0 + level**3), float(ndtri(0.5 + level / 2))) for level in LEVELS]
    for (first, low), (second, high) in pairwise(ends):
        for part in (0.0, 0.25, 0.75, 1.0):
            seconds, normal = first * (second / first) ** part, low + part * (high - low)
            assert times.chance(seconds) == pytest.approx(float(ndtr(-normal)))
    # Beyond the last one it goes on as from the first of them.
    (first, low), (last, high) = ends[0], ends[-1]
    slope = (high - low) / math.log(last / first)
    assert times.chance(2.0 * last) == pytest.approx(float(ndtr(-high - slope * math.log(2.0))), rel=1e-6)


def test_loads_that_may_be_met_are_mixed_and_the_chance_holds_for_fresh_runs() -> None:
    draw = random.Random(5)
    cpu = np.array([draw.uniform(0.2, 1.0) for _ in range(300)])
    times = ExecutionTimes(LogNormal(0.1), 100.0, 1, cpu, np.full(300, 90.0))  # type: ignore[arg-type]
    fresh = np.array([100.0 / draw.uniform(0.2, 1.0) * math.exp(draw.gauss(0.0, 0.1)) for _ in range(20_000)])
    for chance in (0.2, 0.1, 0.05, 0.01):
        assert np.mean(fresh > times.limit(chance).seconds) == pytest.approx(chance, abs=0.025)


@given(st.lists(st.floats(0.05, 1.0), min_size=1, max_size=20), st.floats(0.005, 0.3), st.floats(0.005, 0.3))
def test_less_risk_never_asks_for_less_time(cpu: list[float], one: float, other: float) -> None:
    times = ExecutionTimes(LogNormal(0.2), 10.0, 1, np.array(cpu), np.ones(len(cpu)))  # type: ignore[arg-type]
    low, high = sorted((one, other))
    assert times.limit(low).seconds >= times.limit(high).seconds * (1 - 1e-9)


def test_whole_minutes_are_never_less_than_the_limit() -> None:
    assert [Limit(seconds, 0.1).minutes for seconds in (0.5, 60.0, 60.1, 3600.0)] == [1, 1, 2, 60]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="no past run"):
        loads_to_expect([], None, None)
    times = ExecutionTimes(LogNormal(0.1), 10.0, 1, np.ones(1), np.ones(1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="chance is 1,"):
        times.limit(1.0)


@pytest.mark.parametrize("limit", [math.nan, math.inf, -math.inf, -1.0, 0.0])
def test_a_limit_that_is_no_time_is_refused(limit: float) -> None:
    placed = Placement(ResourceSet("c", ("n1",), 2, 1.0, 100.0), Prediction(10.0, Interval(8.0, 14.0, 0.9), "m"))
    for ask in (
        lambda: of_placement(placed, limits=[60.0, limit]),
        lambda: Question("cg", 10.0, 1, limits=[60.0, limit]),
    ):
        with pytest.raises(InputError, match=f"^the time limit is {limit:g} s, expected one above 0 and finite$"):
            ask()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"problem_size": math.nan}, "problem_size is nan"), ({"processors": 0}, "processors is 0"),
        ({"available_cpu": 5.0}, "available_cpu is 5"), ({"available_cpu": math.nan}, "available_cpu is nan"),
        ({"available_bandwidth": math.inf}, "available_bandwidth is inf"),
        ({"available_bandwidth": 0.0}, "available_bandwidth is 0"),
    ],
)  # fmt: skip
def test_a_question_about_what_cannot_be_says_what_is_wrong(wrong: dict[str, float], why: str) -> None:
    with pytest.raises(InputError, match=f"^{why}"):
        Question(**{"application": "cg", "problem_size": 10.0, "processors": 1} | wrong)  # type: ignore[arg-type]


def suggested(runs: dict[str, list[Run]], **asked: Any) -> list[str]:
    models: Any = {platform: LogNormal(0.1) for platform in ("east", "west")}
    found = suggestions(Question("cg", 100.0, 2, **asked), models, lambda platform: runs.get(platform, []))
    return [each["cluster"] for each in found["clusters"]]


def test_limits_are_for_platforms_whose_loads_are_known_or_said() -> None:
    runs = [Run("cg", "east", 100.0, 2, 0.5, 90.0, 100.0)]
    assert suggested({"east": runs, "west": runs}) == ["east", "west"]
    assert suggested({"east": runs}) == ["east"]
    assert suggested({}, available_cpu=0.5, available_bandwidth=90.0) == ["east", "west"]
    assert suggested({"east": runs}, available_cpu=0.5, available_bandwidth=90.0) == ["east", "west"]
    with pytest.raises(InputError):
        suggested({})


def test_settings_that_a_model_does_not_depend_on_are_refused() -> None:
    with pytest.raises(InputError, match=r"^steps 5 is given, but lognormal models do not depend on it$"):
        suggested({}, available_cpu=0.5, available_bandwidth=90.0, settings=Settings.of(parameters={"steps": 5}))


def test_the_verb_suggests_limits_around_what_runs_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.db"
    path.write_bytes(learned_database())

    def run(*words: str) -> tuple[int, str, str]:
        return call(capsys, "walltime", "--db", str(path), *words)

    asked = ("--application", "cg", "--problem-size", "1000", "--processors", "2")
    status, out, _ = run(*asked, "--cluster", "east", "--json", "--limit", "1000", "--chance", "0.05")
    (east,) = json.loads(out)["clusters"]
    short, long = east["limits"]
    assert (status, short["chance"], long["seconds"]) == (0, 0.05, 1000)
    with Store.open(path) as store:
        runs: tuple[Run, ...] = store.runs.learnable(platform="east")
    least = min(run.min_avg_avail_cpu for run in runs)
    assert 1e-3 * 1000**1.5 / 2 + 1.0 < short["seconds"] < 2 * (1e-3 * 1000**1.5 / (2 * least) + 1.0)
    assert long["chance"] < 0.01
    assert run(*asked)[1].count("-t 1") == 8
    assert "no model of none" in refusal(run("--application", "none", *asked[2:]))


@pytest.mark.parametrize(
    ("cpu", "bandwidth", "expected"),
    [
        (None, None, ([0.5], [80.0])),
        (0.7, None, ([0.7], [80.0])),
        (None, 40.0, ([0.5, 0.9], [40.0, 40.0])),
        (0.7, 40.0, ([0.7], [40.0])),
    ],
)
def test_what_is_said_of_loads_takes_the_place_of_what_runs_met(
    cpu: float | None, bandwidth: float | None, expected: tuple[list[float], list[float]]
) -> None:
    runs = [Run("cg", "c", 500, 2, 0.5, 80.0, 5.0), Run("cg", "c", 500, 2, 0.9, math.nan, 5.0)]
    assert tuple(each.tolist() for each in loads_to_expect(runs, cpu, bandwidth)) == expected
    if cpu is not None and bandwidth is not None:
        assert tuple(each.tolist() for each in loads_to_expect([], cpu, bandwidth)) == expected
    else:
        with pytest.raises(InputError, match="there are no past runs with loads"):
            loads_to_expect([], cpu, bandwidth)


@pytest.mark.parametrize(
    ("loads", "expected"),
    [
        ([(0.4, math.nan), (0.6, 80.0), (math.nan, 90.0)], ([0.6], [80.0])),
        ([(0.4, math.nan), (0.6, math.nan), (math.nan, 90.0)], ([0.4, 0.6, 0.5], [90.0, 90.0, 90.0])),
        ([(math.nan, math.nan)], ([IDLE_CPU], [IDLE_BANDWIDTH])),
    ],
)
def test_loads_that_were_not_measured_are_not_taken_for_those_of_idle_nodes(
    loads: list[tuple[float, float]], expected: tuple[list[float], list[float]]
) -> None:
    found = loads_to_expect([Run("cg", "c", 500, 2, cpu, bandwidth, 5.0) for cpu, bandwidth in loads], None, None)
    assert tuple(each.tolist() for each in found) == expected
