"""Do several models beat one?  ``python -m benchmarks.several_models`` on the committed campaigns, observed loads.

The claim of Sanjay & Vadhiyar 2008 (section 4.2, Tables 3 and 4): a sorted list that is refitted and reordered after
every run predicts better than the best model after training. Beside the mean PPE of both stands that of both without
the one run that lay farthest, in seconds, from what the list had predicted, then neither learned nor predicted: the
standard error is a sum of squared seconds, so that one long run with an unusual load can reorder the whole list.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.tables.paper import MEAN_PPE
from benchmarks.testbed.catalogue import DESIGN
from metasched.predictors.formulas.published import Models, PublishedPredictor
from metasched.predictors.judging.conditions import observed
from metasched.predictors.judging.evaluation import Outcome, follow
from metasched.predictors.judging.groups import groups
from metasched.records import Run
from metasched.store.files.campaigns import read_campaign

#: Points of the mean PPE within which several models count as close to one.
CLOSE = 0.3


def outcomes(training: Sequence[Run], rest: Sequence[Run], models: Models = "multiple") -> list[Outcome]:
    """Predictions of the runs in their order, each learned after it was predicted."""
    return list(follow(PublishedPredictor(models=models).fit(training), rest, observed))


def mean_ppe(found: Sequence[Outcome]) -> float:
    """Mean percentage prediction error (%)."""
    return float(np.mean([outcome.ppe for outcome in found]))


def compared(training: Sequence[Run], rest: Sequence[Run]) -> tuple[Outcome, list[float]]:
    """The run farthest from what the list predicted; mean PPE (%) of one and several models with and without it."""
    single, several = outcomes(training, rest, "single"), outcomes(training, rest)
    farthest = max(several, key=lambda outcome: abs(outcome.prediction.execution_time - outcome.run.execution_time))
    others = [run for run in rest if run is not farthest.run]
    every = (single, several, outcomes(training, others, "single"), outcomes(training, others))
    return farthest, [mean_ppe(each) for each in every]


def main() -> None:
    """Print the table, its means, and on how many rows the claim fails, here and in the paper."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=Path, default=DESIGN.folder, help="folder with the campaigns")
    folder = parser.parse_args().campaigns
    print("| row | paper single / multiple | single | multiple | both without it | farthest run: measured, predicted |")
    print("|---|---:|---:|---:|---:|---:|")
    judged = []
    for row, (paper_single, paper_multiple) in MEAN_PPE.items():
        (group,) = groups(read_campaign(folder / "-".join(row)).runs)
        farthest, figures = compared(group.training, group.rest)
        judged.append((paper_single, paper_multiple, *figures))
        print(
            f"| {' '.join(row)} | {paper_single:g} / {paper_multiple:g} | {figures[0]:.2f} | {figures[1]:.2f} "
            f"| {figures[2]:.2f} / {figures[3]:.2f} "
            f"| {farthest.run.execution_time:.0f} s, {farthest.prediction.execution_time:.0f} s |",
            flush=True,
        )
    table = np.array(judged)
    mean = table.mean(axis=0)
    without = f"{mean[4]:.2f} / {mean[5]:.2f}"
    print(f"| **mean** | {mean[0]:.2f} / {mean[1]:.2f} | {mean[2]:.2f} | {mean[3]:.2f} | {without} | |")
    behind = (table[:, 1::2].round(2) - table[:, ::2].round(2)).round(2)
    worse = (behind > 0).sum(axis=0)
    here = behind[behind[:, 1] > 0, 2]
    print(
        f"\nseveral models are worse than one on {worse[0]} of {len(table)} rows in the paper, on {worse[1]} here, "
        f"on {worse[2]} here without the farthest run"
    )
    print(
        f"of the {len(here)} rows here the list is within {CLOSE:g} points of the single model, or better, on "
        f"{(here <= CLOSE).sum()} without the farthest run"
    )


if __name__ == "__main__":
    main()
