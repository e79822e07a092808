"""SPMD, cloud and tournament predictors as documents: what was learned comes back whole, and nothing unsound does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from changed_document import refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from metasched.predictors.analytic.cloud.hardware import Hardware, Server
from metasched.predictors.analytic.cloud.predictor import CloudPredictor
from metasched.predictors.analytic.cloud.profile import Profile
from metasched.predictors.analytic.spmd.application import Phase
from metasched.predictors.analytic.spmd.predictor import SpmdPredictor
from metasched.predictors.contract import Saved
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.judging.peers import RidgeQuadratic
from metasched.predictors.porting.platforms import PlatformsPredictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.tournament import Tournament
from metasched.records import InputError, Request, Run
from metasched.store.documents import dump, parse
from metasched.store.documents.parts import SettingPart, runs_of
from metasched.store.documents.platforms import PlatformsDocument
from tests.predictors.made import runs

REQUESTS = [Request(1000, 4, 0.5, 50.0), Request(300, 1, 1.0, 0.5), Request(9000, 32, 0.2, 900.0)]
PROFILES = [Profile(n, 100.0, 1e5, 0.02, 16.0 / n + 0.12, mean_distance=1.0, exchanges=50.0) for n in (2, 4, 8)]


def cloud() -> CloudPredictor:
    return CloudPredictor(PROFILES, Hardware((Server("a", 32),), 8e-9), problem_size=1000)


def tournament() -> Tournament:
    return Tournament([SpmdPredictor(), cloud(), PublishedPredictor(), RobustPredictor()])


def same(predictor: Saved, again: Saved) -> None:
    assert type(again) is type(predictor)
    assert (again.application, again.cluster) == (predictor.application, predictor.cluster)
    for request in REQUESTS:
        assert again.predict(request) == predictor.predict(request)
    assert dump(again) == dump(predictor)


@pytest.mark.parametrize("make", [SpmdPredictor, cloud, tournament])
def test_a_model_answers_and_learns_the_same_after_it_was_saved_and_loaded(make: Any) -> None:
    predictor = make().fit(runs(24))
    for run in runs(6, seed=3):
        predictor.learn(run)
        predictor.settle()
    again = parse(dump(predictor))
    assert (again.application, again.cluster) == ("made", "c8")
    same(predictor, again)
    for run in runs(6, seed=4):
        for one in (predictor, again):
            one.learn(run)
            one.settle()
    expected = predictor.predict(REQUESTS[0]).execution_time
    assert again.predict(REQUESTS[0]).execution_time == pytest.approx(expected, rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_phase_any_servers_and_any_profile_come_back(data: st.DataObject) -> None:
    positive = st.floats(1e-3, 1e3)
    phase = Phase(
        data.draw(positive),
        communication_transfer=data.draw(positive),
        contention=data.draw(st.floats(0, 1)),
        synchronization=data.draw(st.sampled_from([1, 2, None])),
        computation_bursts=data.draw(st.floats(1, 50)),
        dimensions=data.draw(st.sampled_from([1.2, 2.0, float("inf")])),
        startup_exponent=data.draw(st.floats(0, 1)),
        io=data.draw(st.sampled_from(["synchronous", "bus"])),
        spread=data.draw(st.sampled_from(["exponential", "uniform"])),
    )
    learned = [
        Run("a", "c", n, p, cpu, 90.0, data.draw(positive))
        for n, p, cpu in [(100.0, 1, 1.0), (200.0, 2, 0.5), (400.0, 4, 0.9), (100.0, 4, 1.0), (300.0, 1, 0.7)] * 2
    ]
    same(found := SpmdPredictor(phase, disks=data.draw(st.integers(1, 3))).fit(learned), parse(dump(found)))

    servers = st.builds(Server, st.text(max_size=5), st.integers(1, 64), positive)
    profile = st.builds(
        Profile,
        st.just(2),
        positive,
        positive,
        st.floats(0, 1e-4),
        positive,
        mean_distance=st.sampled_from([None, 1.0]),
        exchanges=st.none() | positive,
        dimensions=st.sampled_from([None, 1, 3]),
    )
    profiles = [data.draw(profile)]
    profiles += [
        Profile(n, 100.0, 1e3, 0.0, 1.0, profiles[0].mean_distance, profiles[0].exchanges, profiles[0].dimensions)
        for n in (4, 8)
    ]
    own = Server("own", 64)
    hardware = Hardware((own, *data.draw(st.lists(servers, max_size=2))), data.draw(st.floats(0, 1e-6)))
    network = data.draw(st.sampled_from(["synchronous", "published"]))
    size = data.draw(positive)
    made = CloudPredictor(profiles, hardware, problem_size=size, method=network, application="a", cluster="c")
    again = parse(dump(made))
    assert isinstance(again, CloudPredictor)
    assert (again.profiles, again.hardware, again.problem_size) == (made.profiles, made.hardware, made.problem_size)
    request = Request(size, 16, 0.5, 100.0)
    assert again.predict(request) == made.predict(request)


def test_an_entrant_that_sits_out_comes_back_and_joins_later() -> None:
    started = Tournament([RobustPredictor(), SpmdPredictor(Phase(2.0, io="bus", computation_bursts=3.0))])
    started.fit(runs(6))
    assert "spmd" in started.absent
    again = parse(dump(started))
    assert isinstance(again, Tournament)
    assert again.reason == started.reason
    for run in runs(8, seed=5):
        for one in (started, again):
            one.learn(run)
    assert not again.absent
    template = again.entrants[1]
    assert isinstance(template, SpmdPredictor)
    assert template.template.computation_bursts == 3.0


def test_errors_without_end_are_kept() -> None:
    started = tournament().fit(runs(24))
    started.errors["spmd"].append(float("inf"))
    again = parse(dump(started))
    assert isinstance(again, Tournament)
    assert again.errors == started.errors


def test_the_settings_of_the_runs_in_a_tournament_are_kept() -> None:
    learned = [replace(run, extra={"threads": str(1 + number % 2)}) for number, run in enumerate(runs(24))]
    again = parse(dump(tournament().fit(learned)))
    assert isinstance(again, Tournament)
    assert [run.settings for run in again.window] == [run.settings for run in learned]


@pytest.mark.parametrize(
    ("make", "path", "value", "says"),
    [
        (SpmdPredictor, "template.contention", 1.5, "template.contention"),
        (SpmdPredictor, "template.parallel_computation", 0.0, "expected some computation"),
        (SpmdPredictor, "template.io", "tape", "template.io"),
        (SpmdPredictor, "fit.values", [1.0] * 8, "fit.values"),
        (SpmdPredictor, "fit.values.0", -1.0, "fit.values[0]"),
        (SpmdPredictor, "fit", None, "has learned nothing"),
        (SpmdPredictor, "disks", 0, "disks"),
        (SpmdPredictor, "version", 2, "version 2 of the model format"),
        (cloud, "profiles", [], "profiles"),
        (cloud, "profiles.0.waiting_time", 1e9, "waiting_time is 1000000000.0, expected from 0 to below"),
        (cloud, "profiles.1.processes", 2, "numbers of processes"),
        (cloud, "hardware.servers", [], "hardware.servers"),
        (cloud, "hardware.servers.0.speed", 0, "hardware.servers[0].speed"),
        (cloud, "network", "guess", "network"),
        (cloud, "growth", "x", "growth"),
        (tournament, "entrants", [], "entrants"),
        (tournament, "entrants.0.name", "magic", "entrant magic has a document of method spmd"),
        (tournament, "entrants.0.document.method", "magic", "entrants[0].document"),
        (tournament, "entrants.1.name", "spmd", "entrant spmd has a document of method cloud"),
        (tournament, "entrants.2.document", None, "entrant published has learned nothing"),
        (tournament, "entrants.0.errors", [-1.0], "entrants[0].errors"),
        (tournament, "window", [], "window"),
    ],
)
def test_an_unsound_document_is_refused_with_its_place(make: Any, path: str, value: Any, says: str) -> None:
    assert says in refusal(make().fit(runs(16)), path, value)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: SpmdPredictor(), "has learned nothing yet"),
        (lambda: tournament(), "has learned nothing yet"),
        (lambda: Tournament([RidgeQuadratic()]).fit(runs(16)), "a tournament with a ridge predictor cannot be saved"),
    ],
)
def test_what_cannot_be_saved_gets_a_line(make: Any, line: str) -> None:
    with pytest.raises(InputError, match=line):
        dump(make())


def test_numbers_survive_as_they_are() -> None:
    predictor = SpmdPredictor().fit(runs(24))
    again = parse(dump(predictor))
    assert isinstance(again, SpmdPredictor)
    assert again.fitted is not None
    assert predictor.fitted is not None
    np.testing.assert_array_equal(again.fitted.values, predictor.fitted.values)


def test_settings_are_those_of_all_runs_and_platforms_are_named_once() -> None:
    rows = [(100, 4, None, None, 2.0), (200, 4, 0.5, 90.0, 3.0)]
    assert [each.min_avg_avail_cpu for each in runs_of(rows, "a", "c")][1] == 0.5
    with pytest.raises(InputError, match=r"^there are settings of 1 runs, expected those of 2$"):
        runs_of(rows, "a", "c", [SettingPart()])
    model = RobustPredictor("a", "c").fit(runs(24))
    twice = PlatformsDocument.of(PlatformsPredictor("a", {"c": model}))
    with pytest.raises(InputError, match=r"^models names a platform twice, expected each once$"):
        twice.model_copy(update={"models": [*twice.models, *twice.models]}).build()
