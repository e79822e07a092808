"""Table 6 of the paper: models ported between the clusters of the testbed, before and while they learn there.

Each model is learned from all runs of the reference campaign, ported with the idle runs on one and two processors, and
then follows the target's runs. The last column is the paper's.
Run as ``python -m benchmarks.porting [--campaigns DIR]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.testbed.catalogue import JUDGED
from benchmarks.testbed.clusters import CLUSTERS
from metasched.predictors.judging.conditions import observed, predict
from metasched.predictors.judging.evaluation import Evaluation, Outcome, follow
from metasched.predictors.porting.link_sharing import LinkSharing
from metasched.predictors.porting.port import port
from metasched.predictors.porting.predictor import PortedPredictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Run
from metasched.store.files.campaigns import read_campaign
from metasched.store.files.runs import read_runs

#: Runs of the target after which the port is judged again.
LEARNED = 20
#: Level of the intervals.
LEVEL = 0.9
#: The paper's rows: application, reference and its loading, target and its loading, average PPE.
TABLE_6 = (
    ("eigen", "intel", "random", "ibm", "dedicated", 18.53),
    ("eigen", "amd", "grid", "ibm", "dedicated", 25.9),
    ("eigen", "intel", "random", "amd", "grid", 26.67),
    ("md", "intel", "grid", "ibm", "dedicated", 23.04),
    ("md", "amd", "grid", "ibm", "dedicated", 22.08),
    ("md", "intel", "grid", "amd", "random", 28.23),
    ("md", "amd", "grid", "intel", "grid", 18.68),
    ("ssor", "intel", "grid", "amd", "grid", 21.20),
    ("ssor", "amd", "grid", "intel", "grid", 22.55),
    ("is", "intel", "random", "ibm", "dedicated", 25.70),
    ("is", "intel", "random", "amd", "grid", 26.06),
    ("is", "amd", "grid", "intel", "grid", 27.08),
)


@dataclass(frozen=True)
class Row:
    """One port: the model as it was before it learned, all predictions before, and those after some runs."""

    title: str
    ported: PortedPredictor
    before: Evaluation
    after: Evaluation
    paper: float


def judge(
    campaigns: Path, application: str, reference: str, loading: str, target: str, target_loading: str, paper: float
) -> Row:
    """Port one model and let it follow the target's runs."""
    learned = read_campaign(campaigns / f"{application}-{reference}-{loading}").runs
    asked = [
        run
        for run in read_campaign(campaigns / f"{application}-{target}-{target_loading}").runs
        if run.phase == "predict"
    ]
    nodes = LinkSharing(CLUSTERS[reference].node_count, CLUSTERS[target].node_count)
    model = RobustPredictor(application, reference).fit(learned)
    ported = port(model, _idle(campaigns, application, reference), _idle(campaigns, application, target), nodes)
    before = Evaluation(tuple(Outcome(run, predict(ported, observed(run, ported, LEVEL), LEVEL)) for run in asked))
    after = Evaluation(tuple(follow(ported, asked, observed, LEVEL))[LEARNED:])
    return Row(f"{application}, {reference} ({loading}) to {target} ({target_loading})", ported, before, after, paper)


def _idle(campaigns: Path, application: str, cluster: str) -> tuple[Run, ...]:
    return read_runs(campaigns / "porting" / f"{application}-{cluster}.csv")


def main(campaigns: Annotated[Path, typer.Option(help="Folder of the testbed's campaigns.")] = JUDGED.folder) -> None:
    """Print the table."""
    table = Table(title=f"Porting: mean PPE (%) and 90 % intervals before any target run, and after {LEARNED}")
    for heading in ("port", "Rcpu", "Rbw", "before", "coverage", f"after {LEARNED}", "coverage", "paper"):
        table.add_column(heading, justify="left" if heading == "port" else "right")
    console = Console(stderr=True)
    rows = []
    for published in track(TABLE_6, "porting", console=console):
        try:
            rows.append(judge(campaigns, *published))
        except InputError as error:
            console.print(f"left out: {error}", highlight=False)
    if not rows:
        raise typer.Exit(1)
    for row in rows:
        before, after = row.before.summary(), row.after.summary()
        table.add_row(
            row.title,
            f"{row.ported.rcpu.value:.3f}",
            f"{row.ported.rbw.value:.2f}",
            f"{before['ppe_mean']:.1f}",
            f"{before['interval_coverage']:.0%}",
            f"{after['ppe_mean']:.1f}",
            f"{after['interval_coverage']:.0%}",
            f"{row.paper:.1f}",
        )
    means = [
        np.mean([evaluation.summary()[key] for evaluation in part])
        for part in ([row.before for row in rows], [row.after for row in rows])
        for key in ("ppe_mean", "interval_coverage")
    ]
    table.add_section()
    table.add_row(
        "mean", "", "", f"{means[0]:.1f}", f"{means[1]:.0%}", f"{means[2]:.1f}", f"{means[3]:.0%}",
        f"{np.mean([row.paper for row in rows]):.1f}",
    )  # fmt: skip
    Console(width=120).print(table)


if __name__ == "__main__":
    typer.run(main)
