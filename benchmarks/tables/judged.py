"""One row of the tables: every contender on one campaign, with observed and with forecast loads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.testbed import oracle
from benchmarks.testbed.clusters import CLUSTERS
from metasched.predictors.contract import Predictor
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.judging import peers
from metasched.predictors.judging.conditions import Forecast, observed
from metasched.predictors.judging.evaluation import Evaluation, follow_under
from metasched.predictors.judging.groups import groups
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run
from metasched.store.files.campaigns import read_campaign

Row = tuple[str, str, str]

#: What is judged, and which of it are peers.
CONTENDERS: dict[str, Callable[[], Predictor]] = {
    "single": lambda: PublishedPredictor(models="single"),
    "multiple": PublishedPredictor,
    "robust": RobustPredictor,
    **{kind.name.replace("_", " "): kind for kind in peers.PEERS},
}
PEERS = tuple(kind.name.replace("_", " ") for kind in peers.PEERS)
LOADS = ("observed", "forecast")


@dataclass(frozen=True)
class TrueForm:
    """Mean PPE and scheduling losses (%) of the program's own terms, see ``benchmarks.testbed.oracle``."""

    ppe: float
    losses: tuple[float, ...]


@dataclass(frozen=True)
class Judged:
    """What one campaign says of every contender.

    Parameters
    ----------
    row : application, cluster and loading.
    summaries : by loads and contender, see ``Evaluation.summary``.
    ppe : PPE (%) in the order of time, by contender, observed loads.
    losses : scheduling losses (%) by group of problem sizes, robust, by loads.
    true_form : what a model does that knows the application's terms, observed loads.
    held : how many intervals of the robust method contain the time, and how many there are, by loads.
    training : training runs, and seconds from these to a robust model.
    """

    row: Row
    summaries: dict[str, dict[str, dict[str, float]]]
    ppe: dict[str, list[float]]
    losses: dict[str, tuple[float, ...]]
    true_form: TrueForm
    held: dict[str, tuple[int, int]]
    training: tuple[int, float]


def judge(row: Row, folder: Path) -> Judged:
    """Evaluate every contender on the campaign of a row."""
    with threadpool_limits(limits=1):
        return _judge(row, folder)


def _judge(row: Row, folder: Path) -> Judged:
    recorded = read_campaign(folder)
    (group,) = groups(recorded.runs)
    training, rest = group.training, group.rest
    assert recorded.loads is not None
    times, cpu, bandwidth = recorded.loads.grid()
    conditions = observed, Forecast(times, recorded.loads.nodes, cpu, bandwidth)
    found = {}
    for name, make in CONTENDERS.items():
        predictor = make()
        predictor.fit(training)
        for loads, outcomes in zip(LOADS, zip(*follow_under(predictor, rest, conditions), strict=True), strict=True):
            found[loads, name] = Evaluation(outcomes)
    begin = time.perf_counter()
    RobustPredictor().fit(training)
    return Judged(
        row,
        {loads: {name: found[loads, name].summary() for name in CONTENDERS} for loads in LOADS},
        {name: [outcome.ppe for outcome in found["observed", name].outcomes] for name in CONTENDERS},
        {
            loads: scheduling_losses(rest, [one.prediction.execution_time for one in found[loads, "robust"].outcomes])
            for loads in LOADS
        },
        TrueForm(
            float(oracle.errors(row[0], CLUSTERS[row[1]], recorded.runs).mean()),
            scheduling_losses(rest, oracle.predicted(row[0], CLUSTERS[row[1]], recorded.runs).tolist()),
        ),
        {
            loads: (sum(o.held for o in found[loads, "robust"].outcomes), len(found[loads, "robust"].outcomes))
            for loads in LOADS
        },
        (len(training), time.perf_counter() - begin),
    )


def scheduling_losses(runs: Sequence[Run], predicted: Sequence[float], parts: int = 10) -> tuple[float, ...]:
    """Loss (%) of a scheduler that trusts the predictions, for groups of neighbouring problem sizes (Table 5).

    Of each group the run with the least predicted time is chosen; the loss is how much longer it really took than the
    shortest of the group.
    """
    by_size = sorted(range(len(runs)), key=lambda position: runs[position].problem_size)
    losses = []
    for group in np.array_split(np.array(by_size), parts):
        chosen = runs[min(group, key=lambda position: predicted[position])].execution_time
        best = min(runs[position].execution_time for position in group)
        losses.append(100.0 * (chosen / best - 1.0))
    return tuple(losses)
