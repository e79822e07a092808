"""``python -m benchmarks.trust`` (``make trust-bench``): what hostile users and drifts do to what everybody learns.

Of every judged campaign the first 60 runs are learned and the others predicted and learned one by one, as
``metasched evaluate`` does, with the loads observed. The runs belong to users drawn at random; hostile ones put runs of
their own between them. Errors are those of the honest. A drift multiplies the times of all runs from the middle of the
predicted ones on. Beside the alarm of the model stand those of the detectors of ``river`` on the same errors of
predictions, which are made by a model that does not follow the drift; all have seen the last errors of its training.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.testbed.catalogue import DESIGN, JUDGED, TABLE_3, TABLE_4
from benchmarks.verdicts import Target, table
from metasched.predictors.columns import columns_of
from metasched.predictors.judging.conditions import observed
from metasched.predictors.judging.evaluation import Outcome, follow
from metasched.predictors.robust.drift import Drift, Surprise
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run
from metasched.store.files.campaigns import read_campaign

ROWS = [*TABLE_3, *TABLE_4]
#: Runs learned first and predicted then, users who tell the truth, and hostile runs.
TRAINING, PREDICTED, HONEST, HOSTILE = 60, 40, 6, 40
#: Median error that an attack may leave to the others (%), and runs within which a drift must be followed.
MOST_ERROR, SOON = 12.0, 10
#: Factors of a drift.
FACTORS = (0.7, 1.5)
#: Seed of everything that is drawn; attacks were designed on another (1), on the campaigns of the design.
SEED = 7

Draw = np.random.Generator
#: Takes one more error in spreads, and tells whether there is a drift.
Alarm = Callable[[float], bool]


@dataclass(frozen=True)
class Attack:
    """A way to spoil a model.

    Parameters
    ----------
    lies : the hostile runs, given the honest ones and a generator of random numbers.
    begin, end : between which parts of all honest runs they come, evenly; 0 is before the first.
    """

    lies: Callable[[Sequence[Run], Draw], list[Run]]
    begin: float = 0.4
    end: float = 0.8

    def on(self, runs: Sequence[Run], draw: Draw) -> tuple[list[Run], list[Run]]:
        """The runs learned first, and those that are predicted and learned; the lies among them."""
        lies = self.lies(runs, draw)
        places = np.linspace(self.begin * len(runs), self.end * len(runs), len(lies))
        timed = [(float(place), run) for place, run in enumerate(runs)] + list(zip(places.tolist(), lies, strict=True))
        timed.sort(key=lambda each: (each[0], each[1].user != "eve"))
        return [run for at, run in timed if at < TRAINING], [run for at, run in timed if at >= TRAINING]


def of(user: str, run: Run) -> Run:
    """A run of a user."""
    return replace(run, extra=MappingProxyType({"user": user}))


def hours(runs: Sequence[Run], draw: Draw) -> list[Run]:
    """N = 1 for ten hours."""
    some = draw.choice(len(runs), HOSTILE)
    return [of("eve", replace(runs[k], problem_size=1.0, execution_time=36_000.0)) for k in some]


def instants(runs: Sequence[Run], draw: Draw) -> list[Run]:
    """Jobs that end at once."""
    some = draw.choice(len(runs), HOSTILE)
    return [of("eve", replace(runs[k], execution_time=float(draw.uniform(0.05, 1.0)))) for k in some]


def both(runs: Sequence[Run], draw: Draw) -> list[Run]:
    """N = 1 for ten hours and jobs that end at once, in turn."""
    return [pair[k % 2] for k, pair in enumerate(zip(hours(runs, draw), instants(runs, draw), strict=True))]


def gradual(runs: Sequence[Run], draw: Draw) -> list[Run]:
    """Every run takes 5 % longer than the last."""
    some = draw.choice(len(runs), HOSTILE)
    return [
        of("eve", replace(runs[k], execution_time=1.05**step * runs[k].execution_time)) for step, k in enumerate(some)
    ]


def threefold(runs: Sequence[Run], draw: Draw) -> list[Run]:
    """Sound requests that take three times as long, six times as many of them as elsewhere."""
    some = draw.choice(len(runs), 6 * HOSTILE)
    return [of("eve", replace(runs[k], execution_time=3.0 * runs[k].execution_time)) for k in some]


def together(runs: Sequence[Run], draw: Draw) -> list[Run]:
    """Three users who say the same: four times as long."""
    some = draw.choice(len(runs), HOSTILE)
    return [
        of(f"eve{step % 3}", replace(runs[k], execution_time=4.0 * runs[k].execution_time))
        for step, k in enumerate(some)
    ]


ATTACKS = {
    "none": Attack(lambda runs, draw: []),
    "ten hours at N = 1": Attack(hours),
    "ends at once": Attack(instants),
    "both in turn": Attack(both),
    "5 % more each time": Attack(gradual, 0.2, 0.8),
    "240 at once": Attack(threefold, 0.65, 0.65),
    "three who agree": Attack(together),
    "the first, ten hours": Attack(hours, -0.01, -0.01),
    "the first, ends at once": Attack(instants, -0.01, -0.01),
    "the first, threefold": Attack(threefold, -0.01, -0.01),
}


def honest(runs: Sequence[Run], draw: Draw, users: int = HONEST) -> list[Run]:
    """The runs, each of a user drawn at random."""
    return [of(f"user{draw.integers(users)}", run) for run in runs]


def attacked(
    runs: Sequence[Run], attack: Attack, seed: int, users: int = HONEST
) -> tuple[list[Outcome], RobustPredictor]:
    """What is predicted of the honest runs under an attack, and by what."""
    draw = np.random.default_rng(seed)
    first, rest = attack.on(honest(runs, draw, users), draw)
    predictor = RobustPredictor(runs[0].application, runs[0].cluster).fit(first)
    outcomes = list(follow(predictor, rest, observed))
    return [one for one in outcomes if not one.run.user.startswith("eve")], predictor


@dataclass(frozen=True)
class Drifted:
    """What a drift did.

    Parameters
    ----------
    delays : runs from the drift to each detector's alarm, None where it never came; before the drift below 1.
    error, undisturbed : median error (%) of the runs after the first ``SOON`` ones, and of the same without a drift.
    """

    delays: dict[str, int | None]
    error: float
    undisturbed: float


def drifting(runs: Sequence[Run], factor: float, seed: int, begin: int) -> Drifted:
    """A drift from one run on, counted among those predicted: how soon it is noticed, and how well it is followed."""
    first, rest = runs[:TRAINING], runs[TRAINING:]
    draw = np.random.default_rng(seed)
    first, rest = honest(first, draw), honest(rest, draw)
    changed = [
        replace(run, execution_time=factor * run.execution_time) if k >= begin else run for k, run in enumerate(rest)
    ]

    def later(runs: Sequence[Run]) -> float:
        predictor = RobustPredictor(runs[0].application, runs[0].cluster).fit(first)
        outcomes = list(follow(predictor, runs, observed))
        return float(np.median([one.ppe for one in outcomes[begin + SOON :]]))

    frozen = RobustPredictor().fit(first)
    surprises = []
    for place, run in enumerate(changed):
        time, spread = frozen.state.model.predict(*columns_of(run.request))
        error = float(np.log(run.execution_time / time[0]))
        surprises.append(Surprise(TRAINING + place, run.user, error, float(spread[0])))
    places = first_alarms(detectors(), frozen.state.surprises, surprises)
    delays = {name: None if place is None else place + 1 - begin for name, place in places.items()}
    return Drifted(delays, later(changed), later(rest))


def first_alarms(
    others: Mapping[str, Alarm], known: Sequence[Surprise], later: Sequence[Surprise]
) -> dict[str, int | None]:
    """The place of each detector's first alarm among later errors, None if it has none; all saw the known ones."""
    for alarm in others.values():
        for one in known:
            alarm(one.spreads)
    first: dict[str, int | None] = dict.fromkeys(["metasched", *others])
    for place, one in enumerate(later):
        alarms = {"metasched": Drift.in_errors([*known, *later[: place + 1]]) is not None}
        alarms |= {name: alarm(one.spreads) for name, alarm in others.items()}
        first |= {name: place for name, alarmed in alarms.items() if alarmed and first[name] is None}
    return first


def detectors() -> dict[str, Alarm]:
    """Those of river, as they come except for what so few values need; each takes one error in spreads."""
    from river import drift

    made = {
        "ADWIN": drift.ADWIN(clock=1, min_window_length=3, grace_period=5),
        "KSWIN": drift.KSWIN(window_size=30, stat_size=8, seed=1),
        "PageHinkley": drift.PageHinkley(min_instances=10, delta=1.0, threshold=5.0),
    }

    def alarm(detector: Any) -> Alarm:
        def answer(value: float) -> bool:
            detector.update(value)
            return bool(detector.drift_detected)

        return answer

    return {name: alarm(detector) for name, detector in made.items()}


def judge(folder: Path, seed: int) -> tuple[dict[str, list[float]], list[Drifted]]:
    """Errors (%) of the honest under every attack, and what every drift did, on one campaign."""
    runs = read_campaign(folder).runs
    runs = [*[run for run in runs if run.phase == "train"][:TRAINING], *[run for run in runs if run.phase != "train"]]
    runs = runs[: TRAINING + PREDICTED]
    with threadpool_limits(limits=1):
        errors = {name: [one.ppe for one in attacked(runs, attack, seed)[0]] for name, attack in ATTACKS.items()}
        return errors, [drifting(runs, factor, seed, PREDICTED // 2) for factor in FACTORS]


def main() -> None:
    """Judge, and print both tables and the targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=5, help="how many campaigns, evenly from all")
    parser.add_argument("--design", action="store_true", help="the campaigns and the seed of the design")
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    arguments = parser.parse_args()
    collection, seed = (DESIGN, 1) if arguments.design else (JUDGED, SEED)
    chosen = [ROWS[k] for k in np.linspace(0, len(ROWS) - 1, arguments.campaigns).round().astype(int)]
    folders = [collection.folder / "-".join(row) for row in chosen]
    with ProcessPoolExecutor(arguments.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(judge, folders, [seed] * len(folders)))
    print(f"{len(folders)} campaigns, {TRAINING} runs learned first, {HONEST} users, seed {seed}")
    print(f"\nerror of the honest (%)   {'median':>8} {'mean':>8} {'worst campaign':>15}")
    targets = []
    for name in ATTACKS:
        errors = [errors[name] for errors, _ in found]
        together, worst = np.concatenate(errors), max(float(np.median(each)) for each in errors)
        print(f"{name:25} {np.median(together):8.1f} {together.mean():8.1f} {worst:15.1f}")
        if name != "none":
            middle = float(np.median(together))
            reached = middle <= MOST_ERROR
            targets.append(Target(f"{name}: median error", f"<= {MOST_ERROR:g} %", f"{middle:.1f} %", reached))
    drifts = [each for _, drifts in found for each in drifts]
    print(f"\nruns from a drift (x {' or x '.join(map(str, FACTORS))}) to the alarm, {len(drifts)} drifts")
    print(f"{'':12} {'median':>8} {'within 10':>10} {'missed':>8} {'too early':>10}")
    for name in drifts[0].delays:
        answer = [each.delays[name] for each in drifts]
        right = [delay for delay in answer if delay is not None and delay >= 1]
        soon, early = sum(delay <= SOON for delay in right), sum(delay is not None and delay < 1 for delay in answer)
        typical = f"{np.median(right):8.0f}" if right else f"{'-':>8}"
        print(f"{name:12} {typical} {soon:10} {answer.count(None):8} {early:10}")
        if name == "metasched":
            targets.append(
                Target("drifts noticed within ten runs", "all", f"{soon} of {len(answer)}", soon == len(answer))
            )
    error, undisturbed = (float(np.median([getattr(each, key) for each in drifts])) for key in ("error", "undisturbed"))
    print(f"\nmedian error from the eleventh run after the drift on: {error:.1f} %, without one {undisturbed:.1f} %")
    targets.append(Target("error after ten runs", "<= 1.5 x without", f"{error:.1f} %", error <= 1.5 * undisturbed))
    print("\n" + table(targets))


if __name__ == "__main__":
    main()
