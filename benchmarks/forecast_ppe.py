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

from benchmarks.testbed.catalogue import DESIGN
from metasched.predictors.contract import Predictor
from metasched.predictors.judging.conditions import Conditions, Forecast, observed
from metasched.predictors.judging.evaluation import follow_under
from metasched.predictors.judging.groups import groups
from metasched.predictors.load_doubt import Expected
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Request, Run
from metasched.store.files.campaigns import read_campaign
from metasched.store.files.loads import Loads

Floats = NDArray[np.float64]

#: The least that is expected of a processor (part) and of a link (Mbit/s): models divide by both.
LEAST_CPU, LEAST_BANDWIDTH = 0.01, 0.001
LEVEL = 0.9
KINDS = ("observed", "forecast", "last value", "running mean")


def simple(loads: Loads, value: Callable[[Floats], float]) -> Conditions:
    """Expect of every node what ``value`` makes of its samples so far."""
    each = {node: loads.of(node) for node in loads.nodes}

    def expected(run: Run, _: Predictor, __: float) -> Expected:
        assert run.start_time is not None, "runs of a campaign have their start"
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
    group = groups(campaign.runs)[0]
    if not group.training:
        return None
    time, cpu, bandwidth = campaign.loads.grid()
    conditions: tuple[Conditions, ...] = (
        observed,
        Forecast(time, campaign.loads.nodes, cpu, bandwidth),
        simple(campaign.loads, lambda past: float(past[-1])),
        simple(campaign.loads, lambda past: float(past.mean())),
    )
    predictor, ppe = RobustPredictor().fit(group.training), []
    for outcomes in follow_under(predictor, group.rest, conditions, LEVEL):
        ppe.append([outcome.ppe for outcome in outcomes])
    return np.mean(ppe, axis=0).tolist(), len(group.rest)


def main() -> int:
    committed = sorted(path.parent for path in DESIGN.folder.glob("*/loads.csv.gz"))
    folders = [Path(name) for name in sys.argv[1:]] or committed
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
