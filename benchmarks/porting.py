"""Table 6 of the paper: models ported between the clusters of the testbed, before and while they learn there.

Each model is learned from all runs of the reference campaign, ported with the idle runs on one and two processors, and
then follows the target's runs. Beside it stands the same port without the numbers of nodes. The last column is the
paper's.
Run as ``python -m benchmarks.porting [--campaigns DIR]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from metasched.predictors.judging.conditions import observed
from metasched.predictors.judging.evaluation import Evaluation, Outcome, follow
from metasched.predictors.load_doubt import predict_expected
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
    """One port: the model, all predictions before it learned, without the numbers of nodes too, and after some runs."""

    title: str
    ported: PortedPredictor
    without_nodes: Evaluation
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
    idle_there, idle_here = (_idle(campaigns, application, cluster) for cluster in (reference, target))
    without, ported = (port(model, idle_there, idle_here, sharing) for sharing in (None, nodes))
    before = [
        Evaluation(tuple(Outcome(run, predict_expected(each, observed(run, each, LEVEL), LEVEL)) for run in asked))
        for each in (without, ported)
    ]
    after = Evaluation(tuple(follow(ported, asked, observed, LEVEL))[LEARNED:])
    title = f"{application}, {reference} ({loading}) to {target} ({target_loading})"
    return Row(title, ported, before[0], before[1], after, paper)


def _idle(campaigns: Path, application: str, cluster: str) -> tuple[Run, ...]:
    return read_runs(campaigns / "porting" / f"{application}-{cluster}.csv")


def main(campaigns: Annotated[Path, typer.Option(help="Folder of the testbed's campaigns.")] = JUDGED.folder) -> None:
    """Print the table."""
    table = Table(title=f"Porting: mean PPE (%) and 90 % intervals before any target run, and after {LEARNED}")
    headings = "port", "Rcpu", "Rbw", "without nodes", "before", "coverage", f"after {LEARNED}", "coverage", "paper"
    for heading in headings:
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
        table.add_row(
            row.title, f"{row.ported.rcpu.value:.3f}", f"{row.ported.rbw.value:.2f}", *_cells([row]),
            f"{row.paper:.1f}",
        )  # fmt: skip
    table.add_section()
    table.add_row("mean", "", "", *_cells(rows), f"{np.mean([row.paper for row in rows]):.1f}")
    Console(width=120).print(table)


def _cells(rows: Sequence[Row]) -> Iterator[str]:
    """Mean errors without the numbers of nodes, before and after learning; of the last two the coverage as well."""
    for evaluations in zip(*((row.without_nodes, row.before, row.after) for row in rows), strict=True):
        error, held = (
            np.mean([each.summary()[key] for each in evaluations]) for key in ("ppe_mean", "interval_coverage")
        )
        yield f"{error:.1f}"
        if evaluations[0] is not rows[0].without_nodes:
            yield f"{held:.0%}"


if __name__ == "__main__":
    typer.run(main)
