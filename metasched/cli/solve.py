"""``metasched solve``: throughput, times, utilization and queue lengths of closed queueing networks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import psutil
import typer
from rich.table import Table

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.queueing.document import LONGEST, parse
from metasched.queueing.solution import PrecisionError, Solution
from metasched.queueing.solver import solve
from metasched.store.files.whole_files import read_text


def solve_verb(
    network: Annotated[Path, typer.Argument(help="JSON file with one network, or a list of networks.")],
    method: Annotated[
        Literal["auto", "exact", "approximate"],
        typer.Option(help="Exact, approximate with bounds, or exact if that takes a few seconds at most."),
    ] = "auto",
    as_json: JsonOption = False,
) -> int:
    """Solve closed queueing networks exactly, or approximately with bounds."""
    many, networks = parse(read_text(network, LONGEST), where=str(network))
    memory = psutil.virtual_memory().available // 2
    try:
        solutions = [solve(entry, method, memory=memory) for entry in networks]
    except PrecisionError as error:
        output.to_stderr(str(error))
        return 1
    if as_json:
        answers = [solution.as_dict() for solution in solutions]
        output.print_json(answers if many else answers[0])
    else:
        for solution in solutions:
            output.show(_table(solution))
    return 0


def _table(solution: Solution) -> Table:
    title = ": ".join(part for part in (solution.network.name, solution.method) if part)
    table = output.table(
        *("class, station", "throughput (1/s)", "residence (s)", "response (s)", "queue length", "utilization"),
        left=("class, station",),
        title=title,
        title_justify="left",
    )
    for column, job_class in enumerate(solution.network.classes):
        bounds = solution.bounds
        within = f" [{bounds.lower[column]:.6g}, {bounds.upper[column]:.6g}]" if bounds is not None else ""
        throughput = f"{solution.throughput[column]:.6g}{within}"
        table.add_row(job_class.name, throughput, f"{solution.cycle_time[column]:.6g}", "", "", "")
        for row, station in enumerate(solution.network.stations):
            cells = (solution.residence_time, solution.response_time, solution.queue_length, solution.utilization)
            table.add_row(f"  {station.name}", "", *(f"{values[row, column]:.6g}" for values in cells))
    return table
