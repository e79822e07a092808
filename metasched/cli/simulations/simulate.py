"""``metasched simulate``: simulate an application on a hypothetical system."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.cli.written_files import WRITTEN
from metasched.records import InputError
from metasched.records.settings import parsed
from metasched.simulation.application import Application
from metasched.simulation.outcome import Outcome, simulate
from metasched.simulation.system import System
from metasched.store.files.simulation import checked, read_application, read_system
from metasched.store.files.whole_files import read_text

#: Most runs of a sweep.
MOST_RUNS = 1_000


def simulate_verb(
    system: Annotated[Path, typer.Argument(help="System model (TOML): networks, nodes, slots of labels.")],
    application: Annotated[Path, typer.Argument(help="Application: a function for each label.")],
    processes: Annotated[list[str] | None, typer.Option(help="LABEL=N processes; repeat a label for a sweep.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="NAME=V of a variable; repeat a name for a sweep.")
    ] = None,
    picture: Annotated[
        Path | None, WRITTEN, typer.Option("-o", "--output", help="PNG of activity and power over time.")
    ] = None,
    model: Annotated[
        Path | None,
        WRITTEN,
        typer.Option(help="Model file to write, for predict, rank and whatif before any run; with --size."),
    ] = None,
    size: Annotated[str | None, typer.Option(help="Variable that is the problem size N of --model.")] = None,
    label: Annotated[
        str | None, typer.Option(help="Label whose processes are P of --model; by default the only one.")
    ] = None,
    other_files: Annotated[bool, typer.Option(hidden=True, help="Read entries from files, too.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Simulate an application on a system: time, energy, and the probability that no node fails."""
    where, text = read_system(system, other_files=other_files), read_application(application)
    if model is None and (size, label) != (None, None):
        raise InputError("--size and --label are of --model, expected --model too")
    counts = _swept("--processes", processes, whole=True)
    values = _swept("--set", settings, whole=False)
    for name in values:
        if name not in text.used:
            raise InputError(f"--set {name}: {application.name} has no variable {name}")
    runs = [
        (dict(zip(counts, some, strict=True)), dict(zip(values, others, strict=True)))
        for some in itertools.product(*counts.values())
        for others in itertools.product(*values.values())
    ]
    if len(runs) > MOST_RUNS:
        raise InputError(f"the sweep has {len(runs)} runs, expected at most {MOST_RUNS}")
    if picture is not None and len(runs) > 1:
        raise InputError(f"-o draws one run, not the {len(runs)} of a sweep")
    if model is not None:
        if len(runs) > 1:
            raise InputError(f"--model takes one run, not the {len(runs)} of a sweep")
        _write_model(model, where, text, application, *runs[0], size, label)
    outcomes = []
    for some, others in output.progress(runs, len(runs), what="simulating"):
        outcomes.append(simulate(where, text, checked(where, text, some), others))
    front = _front(outcomes)
    if picture is not None:
        from metasched.cli import figures
        from metasched.cli.simulations.figures import gantt_and_power

        figures.save(gantt_and_power(outcomes[0], f"{application.stem} on {where.name}"), picture)
    if as_json:
        documents = [_document(each) for each in outcomes]
        if len(outcomes) == 1:
            output.print_json(documents[0] | {"picture": picture and str(picture)})
        else:
            pairs = zip(runs, documents, strict=True)
            asked = [{"processes": some, "variables": others} | each for (some, others), each in pairs]
            output.print_json({"runs": asked, "pareto": front})
    elif len(outcomes) == 1:
        _show(outcomes[0])
        if picture is not None:
            output.say(f"picture written to {picture}")
    else:
        _show_sweep(runs, outcomes, front)


def _write_model(
    model: Path,
    system: System,
    code: Application,
    application: Path,
    processes: dict[str, float],
    variables: dict[str, float],
    size: str | None,
    label: str | None,
) -> None:
    """Write the application as a model whose N is a variable and whose P are the processes of a label."""
    from metasched.predictors.analytic.simulated import SimulatedPredictor
    from metasched.store.files.models import write_model

    if size is None:
        raise InputError("--model needs --size, the variable that is the problem size N")
    if label is None and len(code.code) > 1:
        raise InputError(f"--model needs --label, whose processes are P: one of {', '.join(code.code)}")
    chosen = label or next(iter(code.code))
    counts = checked(system, code, processes)
    predictor = SimulatedPredictor(
        system,
        read_text(application),
        label=chosen,
        size=size,
        processes={name: count for name, count in counts.items() if name != chosen},
        variables={name: value for name, value in variables.items() if name != size},
        application=application.stem,
        cluster=system.name,
    )
    write_model(model, predictor)


def _swept(option: str, given: Sequence[str] | None, whole: bool) -> dict[str, list[float]]:
    """The values of each name, in order."""
    found: dict[str, list[float]] = {}
    for text in given or []:
        name, _, value = text.partition("=")
        try:
            number = parsed(value)
        except ValueError:
            number = math.nan
        if not (name.strip().isidentifier() and math.isfinite(number) and (not whole or number.is_integer())):
            expected = "LABEL=N with a whole number N" if whole else "NAME=V with a number V"
            raise InputError(f"{option} is {text!r}, expected {expected}")
        # A variable that is a whole number counts rounds of loops.
        found.setdefault(name.strip(), []).append(int(number) if number == number // 1 else number)
    return found


def _front(outcomes: Sequence[Outcome]) -> list[int]:
    """The runs that no other beats in both time and energy, by their places."""

    def beats(one: Outcome, other: Outcome) -> bool:
        here, there = (one.execution_time, one.energy), (other.execution_time, other.energy)
        return here != there and all(a <= b for a, b in zip(here, there, strict=True))

    return [place for place, each in enumerate(outcomes) if not any(beats(other, each) for other in outcomes)]


def _document(outcome: Outcome) -> dict[str, Any]:
    return {
        "execution_time": outcome.execution_time,
        "energy": outcome.energy,
        "power": {"mean": outcome.mean_power, "peak": outcome.peak_power},
        "success": outcome.success,
        "expected_completion": outcome.expected_completion,
        "labels": {label: asdict(each) for label, each in outcome.labels.items()},
        "warnings": list(outcome.warnings),
    }


def _fixed(value: float, places: int) -> str:
    return f"{value:.{places}f}" if abs(value) < 1e9 else f"{value:.9g}"


def _energy(joules: float) -> str:
    return "-" if math.isnan(joules) else f"{_fixed(joules / 3600, 3)} Wh"


def _show(outcome: Outcome) -> None:
    table = output.table("label", "processes", "finished at s", "energy", left=("label",), box=box.SIMPLE)
    for label, each in outcome.labels.items():
        table.add_row(label, str(each.processes), _fixed(each.finished, 6), _energy(each.energy))
    output.show(table)
    output.say(f"execution time {_fixed(outcome.execution_time, 6)} s")
    if not math.isnan(outcome.energy):
        mean = "" if math.isnan(outcome.mean_power) else f"{outcome.mean_power:.6g} W on average, "
        output.say(f"energy {_energy(outcome.energy)}, power {mean}{outcome.peak_power:.6g} W at most")
    if not math.isnan(outcome.success):
        chance = f"probability that no node fails during the run {outcome.success:.6g}"
        ends = "never" if math.isinf(outcome.expected_completion) else f"{outcome.expected_completion:.6g} s"
        output.say(f"{chance}, expected completion with restarts {ends}")
    output.warn(outcome.warnings)


def _show_sweep(
    runs: Sequence[tuple[dict[str, float], dict[str, float]]], outcomes: Sequence[Outcome], front: list[int]
) -> None:
    table = output.table(*runs[0][0], *runs[0][1], "time s", "energy", "chance", "", box=box.SIMPLE)
    for place, ((some, others), each) in enumerate(zip(runs, outcomes, strict=True)):
        asked = [f"{value:g}" for value in (*some.values(), *others.values())]
        chance = "-" if math.isnan(each.success) else f"{each.success:.4g}"
        mark = "front" if place in front else ""
        table.add_row(*asked, f"{each.execution_time:.6g}", _energy(each.energy), chance, mark)
    output.show(table)
    output.warn(dict.fromkeys(line for each in outcomes for line in each.warnings))
