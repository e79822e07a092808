"""Rankings as verbs ask for them and print them: shared options, objectives, and the table of placements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, NoReturn

import typer
from pydantic import ValidationError
from rich import box
from rich.table import Table

from metasched.cli import options, output
from metasched.node_names import fold
from metasched.placement.explaining.documents import RankingTable
from metasched.placement.ranking.objective import TERMS, Objective
from metasched.plain_numbers import number_of, plain, processes
from metasched.records import InputError, Placement, ResourceSet, Settings
from metasched.records.settings import parsed
from metasched.validation import Located, first_error

ApplicationOption = Annotated[str, typer.Option(help="Name of the application.")]
SizeOption = Annotated[float, typer.Option(help="Problem size N.")]
ProcessorsOption = Annotated[str | None, typer.Option(help="Numbers of processors allowed, such as 1,2,4-8.")]
EfficiencyOption = Annotated[
    float | None,
    typer.Option("--least-efficiency", help="Least parallel efficiency relative to the fewest processors, 0 for any."),
]


@dataclass(frozen=True, slots=True)
class LayoutOptions(options.SettingsOptions):
    """The options that describe the settings of a run, whose threads may be left to the ranking."""

    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of each process; by default the best of those it has run with.")
    ] = None


#: The least gap to the optimum that is not shown as 0.0 %: below it is rounding.
SHOWN_GAP = 0.0005


def objective(weights: Sequence[str] | None, saving: float) -> Objective:
    """The objective that ``TERM=WEIGHT`` options give."""
    given: dict[str, float] = {}
    for text in weights or ():
        name, _, value = text.partition("=")
        try:
            given[name] = parsed(value)
        except ValueError:
            raise InputError(f"--weight {text!r}, expected TERM=PRICE, such as core_hours=60") from None
        if name not in TERMS:
            raise InputError(f"--weight {text!r}: no term {name}, expected one of {', '.join(TERMS)}")
    return Objective(**({"time": 0.0} | given if given else {}), saving=saving)


class Policy(StrEnum):
    """Objectives that have a name, as ``--policy`` takes them."""

    min_time = "min-time"
    min_energy = "min-energy"


def weights_of(policy: Policy) -> list[str]:
    """The weights of a policy, as options spell them."""
    return ["energy=1"] if policy is Policy.min_energy else ["time=1"]


def clocks(text: str | None) -> tuple[float, ...]:
    """The clocks (MHz) that ``--frequencies`` lists, none without it; InputError where one is no number above 0."""
    listed = options.numbers("--frequencies", text)
    with Located("--frequencies"):
        return tuple(Settings(frequency=clock).frequency or 0.0 for clock in listed)


def count(chosen: ResourceSet) -> str:
    """The number of processors, with the layout of processes on nodes where there is a choice."""
    threads = f" x {chosen.threads} threads" if chosen.threads > 1 else ""
    return f"{chosen.processors}{threads}{_a_node(chosen)}"


def where(chosen: ResourceSet) -> str:
    """A set in words: its processors with their layout, its cluster, and its nodes."""
    taken = processes(chosen.processors, chosen.threads)
    return f"{taken}{_a_node(chosen)} on {chosen.cluster}: {fold(chosen.nodes)}"


def _a_node(chosen: ResourceSet) -> str:
    """How many processes are on a node at most; nothing where that makes no difference."""
    most = chosen.layout.get("processes_per_node")
    return "" if most is None else f", {most} a node"


def _energy(placement: Placement) -> tuple[float | None, ...]:
    """Clock (MHz), energy (J) and probability of completion of a placement; None where unknown."""
    return placement.resource_set.frequency, placement.energy, placement.success


def show(answer: RankingTable) -> None:
    """Print placements for people: a table, and below it the reason for each place."""
    placements = [each.record() for each in answer.placements]
    level = placements[0].prediction.interval.level
    compared = f"{number_of(answer.compared, 'resource set')} compared"
    title = f"{answer.application}, problem size {answer.problem_size:g}: {compared}"
    shown = Table(title=f"{title}; times in s", title_justify="left", box=box.SIMPLE, pad_edge=False, padding=(0, 1))
    shown.add_column("#", justify="right", no_wrap=True)
    shown.add_column("where", overflow="fold", min_width=12)
    known = [any(value is not None for value in given) for given in zip(*map(_energy, placements), strict=True)]
    for heading in ("P", "completion", "wait + run", f"{level:.0%} interval", "CPU", "Mbit/s"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for heading, given in zip(("MHz", "J", "chance"), known, strict=True):
        if given:
            shown.add_column(heading, justify="right", no_wrap=True)
    for number, placement in enumerate(placements, start=1):
        chosen, prediction, slowdown = placement.resource_set, placement.prediction, placement.slowdown
        shown.add_row(
            str(number),
            f"{chosen.cluster}: {fold(chosen.nodes)}",
            count(chosen),
            plain(placement.completion),
            f"{plain(placement.queue_wait)} + {plain(slowdown * prediction.execution_time)}",
            f"{plain(slowdown * prediction.interval.low)}-{plain(slowdown * prediction.interval.high)}",
            f"{chosen.available_cpu:.2f}",
            plain(chosen.available_bandwidth),
            *(
                "" if value is None else plain(value)
                for value, given in zip(_energy(placement), known, strict=True)
                if given
            ),
            style="bold" if number == 1 else None,
        )
    output.show(shown)
    for number, placement in enumerate(placements, start=1):
        output.say(f"{number:>3} {placement.reason}")
    if answer.gap is None or answer.gap >= SHOWN_GAP:
        gap = math.inf if answer.gap is None else answer.gap
        output.out.print(f"not proven optimal: at most {gap:.1%} above the optimum")


def read(answer: Any, *, where: str) -> RankingTable:
    """Read a ranking from its document.

    Raises
    ------
    InputError : when it is none.
    """
    try:
        if isinstance(answer, str):
            return RankingTable.model_validate_json(answer)
        return RankingTable.model_validate(answer)
    except ValidationError as error:
        raise InputError(f"is not an answer of metasched rank --json: {first_error(error)}", where=where) from None


def leave(lacking: RankingTable) -> NoReturn:
    """Say why a ranking is empty, and exit: with status 2 if the request can never fit, else 1."""
    output.to_stderr(lacking.why)
    raise typer.Exit(1 if lacking.for_now else 2)
