"""Results of synthetic signatures: what was measured makes the time; hostile ones are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.signature.applications import APPLICATIONS
from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import sampled
from metasched.signature.rules.fitting import fit
from metasched.signature.synthetic.collective_times import Collective
from metasched.signature.synthetic.message_kinds import kinds_of
from metasched.signature.synthetic.result import MeasuredCosts, Result, by_synthetic, digest, timed
from metasched.signature.times.timed import Timed
from metasched.signature.traces.exchanges import exchanges

BY_NAME = {each.name: each for each in APPLICATIONS}


@pytest.fixture(scope="module")
def application() -> Application:
    return fit([BY_NAME["2-D halo, borders"].trace(n) for n in (16, 32, 64)]).application


def result_of(application: Application, message: float, instruction: float, collective: float = 1e-5) -> Result:
    sample = sampled(application, 64, 0)
    kinds, _ = kinds_of(sample, exchanges(sample.trace), 1)
    names = ("allreduce", "reduce", "bcast", "barrier")
    measured = {Collective(name, 0.0): {2: collective, 4: collective} for name in names}
    return Result(digest(application), 64, 32, 1, instruction, dict.fromkeys(kinds, message), measured)


def total(told: Timed) -> float:
    return sum(each.weight * each.time for each in told.phases)


def test_slower_messages_and_instructions_take_longer(application: Application) -> None:
    base = total(timed(application, result_of(application, 1e-5, 1e-9)))
    assert total(timed(application, result_of(application, 1e-2, 1e-9))) > base
    assert total(timed(application, result_of(application, 1e-5, 2e-9))) > base


def test_time_grows_as_all_its_parts_do(application: Application) -> None:
    base = total(timed(application, result_of(application, 1e-4, 1e-9, 1e-5)))
    assert total(timed(application, result_of(application, 2e-4, 2e-9, 2e-5))) == pytest.approx(2 * base)


@pytest.mark.parametrize(("three", "shared"), [({3: 18e-6}, 8e-6), ({3: 40e-6}, 9e-6), ({3: 9e-6}, 0.0), ({}, 9e-6)])
def test_a_second_message_tells_how_long_one_occupies_its_senders_link(
    application: Application, three: dict[int, float], shared: float
) -> None:
    result = result_of(application, 1e-5, 1e-9)
    trees = {Collective("bcast", 1.0): {2: 1e-6}, Collective("bcast", 1000.0): {2: 10e-6} | three}
    costs = MeasuredCosts(replace(result, collectives=trees), sampled(application, 64, 3))
    assert costs.shared(1000.0) == pytest.approx(shared)
    assert costs.branch("bcast", 1000.0) == pytest.approx(10e-6)


def test_kinds_do_not_depend_on_how_much_was_sampled(application: Application) -> None:
    few, many = (sampled(application, 64, turns) for turns in (3, 0))
    some, every = (set(kinds_of(each, exchanges(each.trace), 1)[0]) for each in (few, many))
    assert some == every


def test_a_result_comes_back_as_it_was_written(application: Application) -> None:
    result = result_of(application, 1e-5, 1e-9)
    again = Result.of(result.as_dict())
    assert again.messages == result.messages
    assert again.collectives == result.collectives


@pytest.mark.parametrize(
    "change",
    [
        {"messages": [[0, 0, 8.0, 0, float("nan")]]},
        {"messages": [[0, 0, 8.0, 0]]},
        {"messages": 3},
        {"collectives": [["nothing", 8.0, 2, 1e-5]]},
        {"collectives": [["bcast", 8.0, 1, 1e-5]]},
        {"processes": 0},
        {"processes": True},
        {"instruction_time": "1"},
    ],
)
def test_documents_of_another_form_are_refused(application: Application, change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="is of another form"):
        Result.of(result_of(application, 1e-5, 1e-9).as_dict() | change)


def test_only_what_was_run_is_answered(application: Application) -> None:
    engine = by_synthetic(application, {"r.json": result_of(application, 1e-5, 1e-9)})
    assert np.isfinite(total(engine(64)))
    with pytest.raises(InputError, match="was run for 64 processes, not for 128"):
        engine(128)
    other = fit([BY_NAME["ring"].trace(n) for n in (16, 32, 64)]).application
    with pytest.raises(InputError, match=r"r\.json: was measured for another application"):
        by_synthetic(other, {"r.json": result_of(application, 1e-5, 1e-9)})
