"""``metasched plan``: which runs to make next, so that the intervals of placements to come narrow most."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich import box

from metasched.arrays import Floats
from metasched.cli import options, output
from metasched.plain_numbers import number_of
from metasched.records import IDLE_CPU, InputError, Request, Run, check_above_zero, check_level

if TYPE_CHECKING:
    from metasched.predictors.abilities import Plan

#: Sizes that runs may have besides those asked for, and placements and possible runs compared, at most.
SIZES, MOST = 6, 2000


@options.grouped
def plan_verb(
    *,
    model: Annotated[Path, typer.Argument(help="Model file of method robust.")],
    budget: Annotated[float, typer.Option(help="Total seconds of the runs.")],
    problem_size: Annotated[
        list[float] | None,
        typer.Option(help="N of the placements to predict; repeatable; by default the largest learned."),
    ] = None,
    processors: Annotated[
        str | None,
        typer.Option(
            help="Numbers of processors of the placements to predict, such as 8,16; by default those learned."
        ),
    ] = None,
    runs_on: Annotated[
        str | None,
        typer.Option("--runs-on", help="Processors to run on; by default powers of two and those of --processors."),
    ] = None,
    cpu: Annotated[float, typer.Option(help="Smallest available CPU to expect, fraction of one processor.")] = IDLE_CPU,
    bandwidth: Annotated[
        float | None, typer.Option(help="Smallest available bandwidth to expect, Mbit/s; by default the usual value.")
    ] = None,
    stated: options.LearnedSettingsOptions,
    platform: options.PlatformOption = None,
    level: options.LevelOption = 0.9,
    as_json: options.JsonOption = False,
) -> None:
    """Suggest the runs that narrow the intervals of some placements most within a budget of seconds."""
    from metasched.predictors.abilities import planner, under
    from metasched.store.files.models import read_model

    check_level("--level", level)
    if not (0.0 < budget < float("inf")):
        raise InputError(f"--budget is {budget:g}, expected a number of seconds above 0")
    read = options.on_one_platform(read_model(model), platform)
    known = planner(under(read, stated.settings_of(read)))
    if known is None:
        raise InputError(f"is a {read.name} model, expected a robust one", where=str(model))
    _, links, _ = options.loads_to_expect(known, cpu, bandwidth, level)
    asked, possible = (
        [Request(n, p, cpu, links) for n, p in pairs]
        for pairs in _choices(getattr(known, "window", ()), problem_size, processors, runs_on, where=str(model))
    )
    found = known.plan(asked, possible, budget)
    widths = tuple(known.widths(spread, level) for spread in (found.before, found.after))
    if as_json:
        output.print_json(_document(found, asked, widths, level))
    elif found.runs:
        _show(found, asked, widths, level)
    else:
        output.say(f"every possible run takes at least {budget:g} s")


def _choices(
    learned: Sequence[Run], problem_size: list[float] | None, processors: str | None, runs_on: str | None, *, where: str
) -> tuple[list[tuple[float, int]], list[tuple[float, int]]]:
    """N and P of the placements to predict, and of the runs that can be made."""
    counts = options.counts("--processors", processors) or sorted({run.processors for run in learned})
    asked = problem_size or sorted(run.problem_size for run in learned)[-1:]
    for size in asked:
        check_above_zero("--problem-size", size)
    if not counts or not asked:
        raise InputError("has learned no runs, expected --problem-size and --processors", where=where)
    smallest = min((run.problem_size for run in learned), default=min(asked))
    # Sizes in between are round numbers; others stay as they are, since not every application takes those near them.
    ends = {*asked, smallest}
    between = np.geomspace(smallest, max(asked), SIZES)[1:-1] if len(ends) > 1 else ()
    sizes = sorted({*ends, *(float(f"{n:.3g}") for n in between)})
    powers = (2**step for step in range(max(counts).bit_length()))
    on = sorted(options.counts("--runs-on", runs_on) or {*counts, *powers})
    if max(len(sizes) * len(on), len(asked) * len(counts)) > MOST:
        raise InputError(f"there are more than {MOST} combinations of sizes and processors, expected fewer")
    return [*product(asked, counts)], [*product(sizes, on)]


def _document(found: Plan, asked: Sequence[Request], widths: tuple[Floats, ...], level: float) -> dict[str, Any]:
    return {
        "runs": [
            {"problem_size": one.problem_size, "processors": one.processors, "execution_time": float(seconds)}
            for one, seconds in zip(found.runs, found.seconds, strict=True)
        ],
        "seconds": float(found.seconds.sum()),
        "level": level,
        "asked": [
            {
                "problem_size": one.problem_size,
                "processors": one.processors,
                "width_now": float(now),
                "width_then": float(then),
            }
            for one, now, then in zip(asked, *widths, strict=True)
        ],
    }


def _show(found: Plan, asked: Sequence[Request], widths: tuple[Floats, ...], level: float) -> None:
    title = f"{number_of(len(found.runs), 'run')}, {found.seconds.sum():.4g} s"
    shown = output.table("N", "P", "runs", "each s", title=title, title_justify="left", box=box.SIMPLE)
    for one in dict.fromkeys(found.runs):
        seconds = found.seconds[found.runs.index(one)]
        shown.add_row(f"{one.problem_size:g}", str(one.processors), str(found.runs.count(one)), f"{seconds:.4g}")
    output.show(shown)
    for one, now, then in zip(asked, *widths, strict=True):
        place = f"N = {one.problem_size:g}, P = {one.processors}"
        ends = f"{now:.3g} times its lower end now, {then:.3g} times after these runs"
        output.say(f"{place}: upper end of the {level:.0%} interval {ends}")
