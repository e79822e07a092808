"""Energy and clocks: ``python -m benchmarks.energy`` with ``--data FILE``, ``--judged``, ``--parts`` or ``--stream``.

The data are three factorizations on a dual Xeon 5218R (mdpiekarz/time-energy-correlation-article), a file that is not
part of the project: 1.4, 1.8 and 2.0 GHz are learned, the other clocks predicted, beside times that go as 1 / f from
the highest clock learned and energies that do not change from there. The campaigns are those of the testbed.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.energy_causes import causes_of
from benchmarks.energy_parts import parts_of
from benchmarks.energy_stream import COUNT, DESIGNED, stream_tables
from benchmarks.energy_stream import JUDGED as JUDGED_STREAMS
from benchmarks.testbed import oracle
from benchmarks.testbed.catalogue import DESIGN, JUDGED
from benchmarks.testbed.metered import CLOCKS, LEARNED, PROCESSORS, scenarios
from metasched.arrays import Floats
from metasched.predictors.contract import Predictor
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.predictors.judging.conditions import Forecast, observed
from metasched.predictors.judging.energy_peers import ENERGY_PEERS
from metasched.predictors.judging.evaluation import Evaluation, Outcome, Quantity, follow
from metasched.records import InputError, Run
from metasched.store.files.campaigns import read_campaign

#: Clocks that are learned, and from which one on nothing is judged (MHz).
LEARNED_CLOCKS, BOOSTED = (1400.0, 1800.0, 2000.0), 2100.0
#: Parts that runs are split into, each predicted by a model of the others.
FOLDS = 6
app = typer.Typer(add_completion=False)


def read(path: Path) -> dict[str, list[Run]]:
    """The runs of each factorization: threads are processors, package and memory joules the energy."""
    found: dict[str, list[Run]] = defaultdict(list)
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            joules = float(row["package_energy_j"]) + float(row["dram_energy_j"])
            fields = {"frequency": row["frequency_mhz"], "energy": repr(joules), "energy_covers": "package+memory"}
            name, size, threads = row["algorithm"], float(row["n"]), int(row["threads"])
            time = float(row["execution_time"])
            found[name].append(Run(name, "xeon5218r", size, threads, 1.0, 1000.0, time, extra=fields))
    return dict(found)


def _clock(run: Run) -> float:
    return run.settings.frequency or 0.0


def errors(runs: Sequence[Run]) -> list[tuple[float, float, float, float, float]]:
    """Of each run at a clock not learned: the clock, and errors of time, energy, time as 1 / f, same energy (%)."""
    known = [run for run in runs if _clock(run) in LEARNED_CLOCKS]
    predictor = MeteredPredictor().fit(known)
    energy = predictor.energy_predictor()
    if energy is None:
        raise InputError("no run tells its energy")
    found = []
    for run in runs:
        if _clock(run) in LEARNED_CLOCKS:
            continue
        alike = [each for each in known if each.processors == run.processors]
        highest = max(map(_clock, alike))
        near = [each for each in alike if _clock(each) == highest]
        by_clock = float(np.mean([each.execution_time * _clock(each) for each in near])) / _clock(run)
        same = float(np.mean([each.energy or 0.0 for each in near]))
        time, joules = (each.predict(run.request).execution_time for each in (predictor, energy))
        measured = (run.execution_time, run.energy or 1.0)
        fields = ((time, measured[0]), (joules, measured[1]), (by_clock, measured[0]), (same, measured[1]))
        found.append((_clock(run), *(100.0 * abs(one / other - 1.0) for one, other in fields)))
    return found


def data_table(path: Path) -> Table:
    """Mean errors over all runs at clocks that were not learned."""
    rows = np.array([row for runs in read(path).values() for row in errors(runs)])
    table = Table(title="1.4, 1.8 and 2.0 GHz learned: mean errors (%)")
    for heading in ("clock MHz", "runs", "time", "energy", "time as 1/f", "energy unchanged"):
        table.add_column(heading, justify="right")
    below = rows[rows[:, 0] < BOOSTED]
    parts = [(f"{clock:g}", rows[rows[:, 0] == clock]) for clock in np.unique(rows[:, 0])]
    for name, part in [("all below 2100", below), *parts]:
        table.add_row(name, str(len(part)), *(f"{value:.2f}" for value in part[:, 1:].mean(axis=0)))
    return table


def campaign_table(folder: Path, only: str = "") -> Table:
    """Energies of the metered campaigns, observed and forecast loads, beside the peers; and clocks never learned.

    The last column is the error of time there of a model that knows the application's true form, see
    ``benchmarks.testbed.oracle``.
    """
    table = Table(title=f"energy, {folder.parent.name}: mean errors (%), coverage of 90 % intervals")
    present = [scenario for scenario, _ in scenarios(JUDGED) if (folder / scenario.name).is_dir()]
    if not present:
        raise InputError("holds none of the metered campaigns", where=str(folder))
    for heading in (
        "campaign",
        "observed",
        "coverage",
        "forecast",
        "coverage",
        *_names(),
        "unseen clocks: time",
        "energy",
        "true form",
    ):
        table.add_column(heading, justify="left" if heading == "campaign" else "right")
    sums: list[list[float]] = []
    for scenario in present:
        if only not in scenario.name:
            continue
        recorded = read_campaign(folder / scenario.name)
        if recorded.loads is None:
            raise InputError("holds no loads", where=str(folder / scenario.name))
        time, cpu, bandwidth = recorded.loads.grid()
        forecast = Forecast(time, recorded.loads.nodes, cpu, bandwidth)
        train = [run for run in recorded.runs if run.phase == "train"]
        rest = [run for run in recorded.runs if run.phase != "train"]
        cells: list[float] = []
        for conditions in (observed, forecast):
            answer = Evaluation(
                tuple(follow(MeteredPredictor().fit(train), rest, conditions, quantity="energy"))
            ).summary()
            cells += [answer["ppe_mean"], 100.0 * answer["interval_coverage"]]
        for peer in ENERGY_PEERS:
            made = peer()
            made.fit(train)
            cells.append(Evaluation(tuple(follow(made, rest, observed, quantity="energy"))).summary()["ppe_mean"])
        megahertz = PROCESSORS[scenario.cluster.name].megahertz
        cells += unseen(train, rest, megahertz)
        alone = [run for run in rest if not is_learned(run, megahertz)]
        cells.append(float(oracle.errors(scenario.application.name, scenario.cluster, [*train, *alone]).mean()))
        sums.append(cells)
        table.add_row(scenario.name, *(f"{cell:.2f}" for cell in cells))
    table.add_row("mean", *(f"{cell:.2f}" for cell in np.mean(sums, axis=0)))
    return table


def parts_table(folder: Path) -> Table:
    """Where the errors of energy come from: time and power, observed loads; and what is left when all others are known.

    The last columns are of runs each predicted by a model of all runs but a sixth, those to predict included: what they
    leave is due to what the two minima do not tell, and to noise, not to few runs.
    """
    table = Table(title=f"energy, {folder.name}: mean errors (%), by runs before, and by all others")
    for heading in ("campaign", "time", "power", "energy", "of all others: time", "power", "energy"):
        table.add_column(heading, justify="left" if heading == "campaign" else "right")
    sums: list[Floats] = []
    for scenario, _ in scenarios(DESIGN):
        runs = read_campaign(folder / scenario.name).runs
        train, rest = ([run for run in runs if (run.phase == "train") is wanted] for wanted in (True, False))
        predictor, found = MeteredPredictor().fit(train), []
        for run in rest:
            found.append(_parts(predictor, run))
            predictor.learn(run)
            predictor.settle()
        folded = []
        for fold in range(FOLDS):
            predictor = MeteredPredictor().fit([*train, *(run for k, run in enumerate(rest) if k % FOLDS != fold)])
            folded += [_parts(predictor, run) for run in rest[fold::FOLDS]]
        sums.append(np.concatenate([np.mean(found, axis=0), np.mean(folded, axis=0)]))
        table.add_row(scenario.name, *(f"{cell:.2f}" for cell in sums[-1]))
    table.add_row("mean", *(f"{cell:.2f}" for cell in np.mean(sums, axis=0)))
    return table


def _parts(predictor: MeteredPredictor, run: Run) -> tuple[float, float, float]:
    """Errors (%) of time, of power and of energy."""
    energy = predictor.energy_predictor()
    if energy is None or run.energy is None:
        raise InputError("a run does not tell its energy")
    time, joules = (each.predict(run.request).execution_time for each in (predictor, energy))
    by_time, by_power, by_energy = (
        100.0 * abs(each - 1.0)
        for each in (time / run.execution_time, joules * run.execution_time / (time * run.energy), joules / run.energy)
    )
    return by_time, by_power, by_energy


def _names() -> list[str]:
    return [peer().name for peer in ENERGY_PEERS]


def is_learned(run: Run, megahertz: float) -> bool:
    """Whether a run of a campaign had a clock that training runs had, the highest of its processor being known."""
    return any(math.isclose(_clock(run), CLOCKS[place] * megahertz, rel_tol=1e-6) for place in LEARNED)


def unseen(train: Sequence[Run], rest: Sequence[Run], megahertz: float) -> list[float]:
    """Mean errors (%) of time and energy at the clocks that no learned run had; those at the others are learned."""
    predictor, found = MeteredPredictor().fit(train), []
    for run in rest:
        if is_learned(run, megahertz):
            predictor.learn(run)
            continue
        energy = predictor.energy_predictor()
        pairs: list[tuple[Predictor | None, Quantity]] = [(predictor, "time"), (energy, "energy")]
        found.append([Outcome(run, each.predict(run.request), of).ppe for each, of in pairs if each is not None])
    return [float(value) for value in np.mean(found, axis=0)]


@app.command()
def main(
    data: Annotated[Path | None, typer.Option(help="xeon5218r_runs.csv.")] = None,
    campaigns: Annotated[bool, typer.Option("--campaigns", help="The testbed's campaigns of the design.")] = False,
    judged: Annotated[bool, typer.Option("--judged", help="Those that only judge, instead.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Campaigns of another seed, instead.")] = None,
    parts: Annotated[bool, typer.Option("--parts", help="Where the errors on those of the design come from.")] = False,
    stream: Annotated[bool, typer.Option("--stream", help="A stream of jobs; with --judged other seeds.")] = False,
    split: Annotated[bool, typer.Option("--split", help="What keeps the stream from its oracle, in parts.")] = False,
    causes: Annotated[bool, typer.Option("--causes", help="The same, each choice by itself.")] = False,
    count: Annotated[int, typer.Option("--jobs", help="Jobs of which --causes tells.")] = COUNT,
    seed: Annotated[list[int] | None, typer.Option(help="Seeds of the stream, instead.")] = None,
    only: Annotated[str, typer.Option(help="Only campaigns, or loads, whose name holds this.")] = "",
) -> None:
    """Judge learned energy."""
    console = Console(width=160)
    if data is not None:
        console.print(data_table(data))
    if parts:
        console.print(parts_table(DESIGN.folder / "metered"))
    seeds = tuple(seed or (JUDGED_STREAMS if judged else DESIGNED[:1]))
    if split:
        console.print(parts_of(seeds))
    if causes:
        console.print(causes_of(seeds, count))
    if stream:
        for table in stream_tables(seeds, only):
            console.print(table)
    elif not (split or causes) and (campaigns or judged or folder is not None):
        console.print(campaign_table(folder or (JUDGED if judged else DESIGN).folder / "metered", only))


if __name__ == "__main__":
    app()
