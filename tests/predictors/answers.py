"""Answers of each method, which :mod:`tests.predictors.test_whole_answers` compares with those written down.

``make answers`` writes them down anew; read the difference before it is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from metered_runs import made

from metasched.predictors.abilities import energy_predictor, under
from metasched.predictors.analytic.cloud.predictor import CloudPredictor
from metasched.predictors.analytic.signature import SignaturePredictor
from metasched.predictors.analytic.spmd.predictor import SpmdPredictor
from metasched.predictors.contract import Predictor
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.judging.energy_peers import MeanPower
from metasched.predictors.judging.peers import Amdahl, GaussianProcess, PowerLaw, RidgeQuadratic
from metasched.predictors.phases.predictor import PhasedPredictor
from metasched.predictors.porting.platforms import PlatformsPredictor
from metasched.predictors.porting.port import port
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.tournament import Tournament
from metasched.records import Request, Run, Settings
from metasched.signature.rules.fitting import fit
from tests.predictors.analytic import test_signature as signature
from tests.predictors.analytic import test_simulated as simulated
from tests.predictors.analytic.cloud.test_cloud import CLUSTER, RING
from tests.predictors.laid_out import laid_out
from tests.predictors.made import runs
from tests.predictors.phases.two_phases import campaign as phased
from tests.predictors.porting.platforms import FAST, SLOW, campaign, idle

#: Requests: N, P, CPU and bandwidth, inside what is learned and outside.
ASKED = np.array([
    [300.0, 1, 1.0, 90.0], [300.0, 4, 0.5, 30.0], [1000.0, 2, 0.9, 90.0], [1000.0, 8, 0.4, 60.0],
    [2500.0, 4, 0.7, 80.0], [2500.0, 16, 1.0, 90.0], [8000.0, 8, 0.6, 20.0], [40_000.0, 32, 0.3, 500.0],
])  # fmt: skip

#: What methods that know settings are asked about besides.
SETTINGS = {
    "robust, settings": Settings.of(2, 2, {"steps": 200.0, "solver": "cg"}),
    "metered": Settings(frequency=1500.0),
}


def predictors() -> Iterator[tuple[str, Predictor, Sequence[Run]]]:
    """Each method by a name, fitted, with runs that it learns next."""
    training, later = runs(60, noise=0.1), runs(15, seed=3, noise=0.1)
    for name, made_of in (("few runs", runs(7, noise=0.1)), ("one size", runs(8, noise=0.1, largest=200.1))):
        yield f"robust, {name}", RobustPredictor("made", "c8").fit(made_of), later[:2]
        yield f"published, {name}", PublishedPredictor("made", "c8").fit(made_of), later[:2]
    yield "robust", RobustPredictor("made", "c8").fit(training), later
    yield "robust, settings", RobustPredictor("cg", "c8").fit(laid_out(80)), laid_out(10, seed=1)
    yield "published", PublishedPredictor("made", "c8").fit(training), later
    yield "published, single", PublishedPredictor("made", "c8", models="single").fit(training), later
    for peer in (PowerLaw(), RidgeQuadratic(), GaussianProcess(), Amdahl()):
        yield peer.name, peer.fit(training), later
    yield "tournament", Tournament([RobustPredictor(), RidgeQuadratic()]).fit(training), later
    yield "phased", PhasedPredictor("two", "c8").fit(phased(40, 1000, 3000)), phased(5, 1000, 3000, seed=4)
    metered = MeteredPredictor("a", "c").fit(made(40, seed=1))
    yield "metered", metered, made(8, seed=5)
    energy = energy_predictor(MeteredPredictor("a", "c").fit(made(40, seed=1)))
    assert energy is not None
    yield "energy", energy, ()
    yield "energy by the mean power", MeanPower().fit(made(40, seed=1)), made(8, seed=5)
    for reference in (RobustPredictor, PublishedPredictor):
        known = reference("made", SLOW.name).fit(campaign(SLOW, 60))
        yield f"ported {known.name}", port(known, idle(SLOW), idle(FAST, seed=1)), campaign(FAST, 8, seed=2)
    yield "spmd", SpmdPredictor().fit(training), later
    yield "spmd, two disks", SpmdPredictor(disks=2).fit(training), later[:3]
    yield "simulated", simulated.predictor().fit(simulated.runs()), simulated.runs(count=16)[12:]
    rules, machine = fit([signature.ring(n) for n in signature.LEARNED]).application, signature.machine()
    ran = signature.runs_on(rules, machine, noise=0.05)
    yield "signature", SignaturePredictor(rules, machine, problem_size=signature.SIZE).fit(ran[:-2]), ran[-2:]
    for method in ("synchronous", "published"):
        yield (
            f"cloud, {method}",
            CloudPredictor(RING, CLUSTER, problem_size=signature.SIZE, method=method).fit(ran),
            ran[:2],
        )
    both = [*campaign(SLOW, 40), *campaign(FAST, 24)]
    yield "platforms", PlatformsPredictor("made").fit(both), campaign(FAST, 6, seed=2)


def told(predictor: Predictor) -> list[list[float]]:
    """Times with the ends of their intervals at two levels, for all requests."""
    found = []
    for level in (0.9, 0.5):
        n, p, cpu, bandwidth = ASKED.T
        many = predictor.predict_many(n, p, cpu, bandwidth, level)
        found += [many.execution_time.tolist(), many.low.tolist(), many.high.tolist()]
    return found


def parts(predictor: Predictor) -> list[list[float]]:
    """The parts of the times that some of the requests are predicted to take."""
    asked = [Request(n, int(p), cpu, bandwidth) for n, p, cpu, bandwidth in ASKED[[1, 3, 5]].tolist()]
    return [[term.seconds for term in predictor.breakdown(each)] for each in asked]


def answers() -> dict[str, Any]:
    """What each method answers before and after it learned more, and under settings, by name."""
    found: dict[str, Any] = {}
    for name, predictor, later in predictors():
        found[name] = told(predictor)
        for run in later:
            predictor.learn(run)
            if hasattr(predictor, "settle"):  # Searches that end at another moment would find others' results.
                predictor.settle()
        if later:
            found[f"{name}, after more runs"] = told(predictor)
        if hasattr(predictor, "breakdown"):
            found[f"{name}, its parts"] = parts(predictor)
        if name in SETTINGS:
            found[f"{name}, under some"] = told(under(predictor, SETTINGS[name]))
    return found


if __name__ == "__main__":
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in answers().items())
    print("{\n" + ",\n".join(lines) + "\n}")
