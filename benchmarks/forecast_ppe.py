"""What forecasting the loads over a run is worth to a prediction: PPE with it, and with simpler expectations.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.forecast_ppe [CAMPAIGN ...]

Every campaign is evaluated as ``metasched evaluate`` does it, robust method, with the loads that each run really met,
the forecast over the predicted duration (``--loads forecast``), each node's last value when the run started, and
each node's running mean until then. Prints mean PPE (%).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from metasched.predictors.conditions import Conditions, Expected, Forecast, observed, predict
from metasched.predictors.contract import Predictor
from metasched.predictors.evaluation import Outcome, split
from metasched.predictors.robust import RobustPredictor
from metasched.records import Request, Run
from metasched.store.campaigns import Loads, read_campaign
from monitors.forecasters.loads import LEAST_BANDWIDTH, LEAST_CPU

Floats = NDArray[np.float64]

CAMPAIGNS = Path(__file__).parent / "testbed" / "campaigns"
LEVEL = 0.9
KINDS = ("observed", "forecast", "last value", "running mean")


def simple(loads: Loads, value: Callable[[Floats], float]) -> Conditions:
    """Expect of every node what ``value`` makes of its samples so far."""
    each = {node: loads.of(node) for node in loads.nodes}

    def expected(run: Run, _: Predictor, __: float) -> Expected:
        cpu, bandwidth = [], []
        for node in dict.fromkeys(run.nodes):
            past = slice(0, int(np.searchsorted(each[node].time, run.start_time, side="right")))
            cpu.append(value(each[node].available_cpu[past]))
            bandwidth.append(value(each[node].available_bandwidth[past]))
        least = max(min(cpu), LEAST_CPU), max(min(bandwidth), LEAST_BANDWIDTH)
        return Expected(Request(run.problem_size, run.processors, *least))

    return expected


def judge(folder: Path) -> tuple[list[float], int] | None:
    """Mean PPE (%) by kind, and how many runs were predicted; None where there is nothing to train on."""
    campaign = read_campaign(folder)
    assert campaign.loads is not None
    training, rest = split(campaign.runs)
    if not training:
        return None
    time, cpu, bandwidth = campaign.loads.grid()
    conditions: tuple[Conditions, ...] = (
        observed,
        Forecast(time, campaign.loads.nodes, cpu, bandwidth),
        simple(campaign.loads, lambda past: float(past[-1])),
        simple(campaign.loads, lambda past: float(past.mean())),
    )
    predictor, ppe = RobustPredictor().fit(training), []
    for run in rest:
        # What is learned from a run does not depend on what was expected of it: one model serves all kinds.
        expected = [each(run, predictor, LEVEL) for each in conditions]
        ppe.append([Outcome(run, predict(predictor, each, LEVEL)).ppe for each in expected])
        predictor.learn(run)
        predictor.settle()
    return np.mean(ppe, axis=0).tolist(), len(rest)


def main() -> int:
    folders = [Path(name) for name in sys.argv[1:]] or sorted(path.parent for path in CAMPAIGNS.glob("*/loads.csv.gz"))
    print(f"{'campaign':<28}{'runs':>5}" + "".join(f"{kind:>14}" for kind in KINDS))
    table = []
    for folder in folders:
        with threadpool_limits(limits=1):
            found = judge(folder)
        if found is None:
            print(f"{folder.name:<28} has no runs to train on")
            continue
        ppe, runs = found
        table.append(ppe)
        print(f"{folder.name:<28}{runs:>5}" + "".join(f"{each:>14.2f}" for each in ppe), flush=True)
    means = np.mean(table, axis=0)
    print(f"{'mean of campaigns':<33}" + "".join(f"{each:>14.2f}" for each in means))
    for kind, mean in zip(KINDS[2:], means[2:], strict=True):
        better = sum(row[1] < row[KINDS.index(kind)] for row in table)
        fall = 1 - (means[1] - means[0]) / (mean - means[0])
        print(
            f"against {kind}: PPE falls by {1 - means[1] / mean:.0%}, the part that loads add by {fall:.0%};"
            f" lower on {better} of {len(table)} campaigns"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
