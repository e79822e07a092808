"""``metasched signature predict`` and ``plot``: times of more processes, by blocks, replay or synthetic signatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box

from metasched.cli import output
from metasched.cli.options import JsonOption, grouped, whole_numbers
from metasched.cli.written_files import WRITTEN
from metasched.records import InputError
from metasched.signature.rules.open_choices import open_rules, other_applications
from metasched.signature.rules.reporting import caveats, checked_count
from metasched.store.files.hardware import hardware_of
from metasched.store.files.signatures import measured_in, read_application

if TYPE_CHECKING:
    from metasched.signature.rules.application import Application
    from metasched.signature.times.prediction import Prediction
    from metasched.signature.times.timed import Engine

#: Most numbers of processes at once.
MOST_COUNTS = 1_000
#: Processes that a signature is expanded to at most.
MOST_PROCESSES = 9_999_999

ApplicationArgument = Annotated[Path, typer.Argument(help="Application written by metasched signature fit.")]
ProcessesOption = Annotated[str, typer.Option(help="Numbers of processes, separated by commas.")]


@dataclass(frozen=True)
class EngineOptions:
    """The options that name an engine: blocks of hardware, a replay, or results of synthetic signatures."""

    hardware: Annotated[str | None, typer.Option(help="Entry of the hardware database, or a file (TOML).")] = None
    network: Annotated[str | None, typer.Option(help="Entry of the network; by default the hardware's own.")] = None
    per_node: Annotated[int, typer.Option("--processes-per-node", min=1, help="Processes on each node.")] = 1
    platform: Annotated[Path | None, typer.Option(help="Platform of SimGrid (XML) to replay on.")] = None
    hosts: Annotated[Path | None, typer.Option(help="Hosts of the platform, one a line.")] = None
    relevant: Annotated[
        bool, typer.Option("--relevant", help="Replay a few iterations of each loop, and multiply by the weights.")
    ] = False
    synthetic: Annotated[
        list[Path] | None, typer.Option(help="Result of metasched signature run; once for each number of processes.")
    ] = None

    def of(self, known: Application, measured: Mapping[int, float]) -> tuple[str, Engine, dict[int, float]]:
        """The engine's name, the engine, and those of the measured times (s) that it can be tried on."""
        if self.synthetic:
            others = [self.hardware, self.platform, self.hosts, self.network, self.relevant or None]
            engine, answers = _measured_engine(known, self.synthetic, others)
            # No rehearsal on numbers that the synthetic signature was not run for.
            return "synthetic", engine, {count: seconds for count, seconds in measured.items() if count in answers}
        if (self.hardware is None) == (self.platform is None):
            raise InputError("give one of --hardware, --platform and --synthetic")
        if self.hardware is not None:
            from metasched.signature.times.by_blocks import by_blocks

            if self.hosts is not None or self.relevant:
                raise InputError("--hosts and --relevant belong to --platform")
            where = hardware_of(self.hardware, self.network, self.per_node)
            return "blocks", by_blocks(known, where), dict(measured)
        from metasched.tracing.smpi import by_replay

        if self.platform is None or self.hosts is None:
            raise InputError("--platform needs --hosts, names of its hosts, one a line")
        return "replay", by_replay(known, self.platform, self.hosts, self.relevant), dict(measured)


@grouped
def predict_verb(
    *, application: ApplicationArgument, processes: ProcessesOption, engine: EngineOptions, as_json: JsonOption = False
) -> None:
    """Predict execution times for numbers of processes that were not run."""
    known, document = read_application(application)
    chosen = engine.of(known, measured_in(document, application))
    found = _answered(known, document, engine, chosen, counts_from(processes))
    warnings = _warnings(known, document, found)
    if as_json:
        output.print_json({"predictions": [each.as_dict() for each in found], "warnings": warnings})
        return
    _show(found)
    output.warn(warnings)


@grouped
def plot_verb(
    *,
    application: ApplicationArgument,
    processes: ProcessesOption,
    picture: Annotated[Path, WRITTEN, typer.Option("-o", "--output", help="PNG to write.")],
    engine: EngineOptions,
    as_json: JsonOption = False,
) -> None:
    """Draw speedup (measured, predicted, ideal) with the knee, and efficiency phase by phase."""
    import numpy as np

    from metasched.cli import figures
    from metasched.cli.signatures.figures import phase_efficiencies, speedup_and_efficiency
    from metasched.predictors.analytic.cloud.scaling import Scaling

    known, document = read_application(application)
    measured = dict(sorted(measured_in(document, application).items()))
    chosen = engine.of(known, measured)
    counts = sorted({*chosen[2], *counts_from(processes)})
    if len(counts) < 2:
        raise InputError(f"--processes is {processes}, expected at least two numbers for a curve")
    found = _answered(known, document, engine, chosen, counts)
    times = np.array([each.execution_time for each in found])
    # Speedup is relative to the smallest count, which is taken to scale ideally up to there.
    known_times = dict(zip(counts, times.tolist(), strict=True)) | measured
    first = min(known_times)
    scaling = Scaling(np.array(counts), times, first * known_times[first])
    figures.save(speedup_and_efficiency(found, measured, scaling, application.stem), picture)
    warnings = _warnings(known, document, found)
    if as_json:
        output.print_json(
            {
                "processes": counts,
                "execution_time": times.tolist(),
                "speedup": scaling.speedup.tolist(),
                "efficiency": scaling.efficiency.tolist(),
                "phases": {str(phase): each for phase, each in phase_efficiencies(found).items()},
                "pays_until": scaling.pays_until,
                "fastest": scaling.fastest,
                "picture": str(picture),
                "warnings": warnings,
            }
        )
        return
    output.say(scaling.verdict)
    output.say(f"picture written to {picture}")
    output.warn(warnings)


def _measured_engine(
    known: Application, paths: Sequence[Path], others: Sequence[object]
) -> tuple[Engine, frozenset[int]]:
    """The engine of results of synthetic signatures, and the numbers of processes that they are for."""
    from metasched.signature.synthetic.result import by_synthetic
    from metasched.store.files.signatures import read_synthetic

    if any(each is not None for each in others):
        raise InputError("give one of --hardware, --platform and --synthetic")
    results = {str(path): read_synthetic(path) for path in paths}
    return by_synthetic(known, results), frozenset(each.processes for each in results.values())


def _answered(
    known: Application,
    document: dict[str, Any],
    options: EngineOptions,
    chosen: tuple[str, Engine, dict[int, float]],
    counts: list[int],
) -> list[Prediction]:
    """Predictions for numbers of processes for which the rules are valid."""
    from metasched.signature.times.prediction import predictions

    for count in counts:
        checked_count(known, count)
    name, engine, measured = chosen
    with output.working("predicting"):
        # The results of synthetic signatures are of the rules that were taken.
        applications = [] if options.synthetic else other_applications(known, counts)
        others = [options.of(each, {})[1] for each in applications]
        ruled = not document.get("without_rule")
        return predictions(engine, name, counts, measured, corrected=name == "blocks", ruled=ruled, others=others)


def _warnings(known: Application, document: dict[str, Any], found: Sequence[Prediction]) -> list[str]:
    """What to know before one relies on predictions, each line once."""
    counts = [each.processes for each in found]
    of_engine = dict.fromkeys(line for each in found for line in each.warnings)
    return [*of_engine, *caveats(document), *open_rules(known, counts)]


def counts_from(text: str) -> list[int]:
    """The numbers of processes of an option."""
    found = whole_numbers("--processes", text, most=MOST_PROCESSES)
    if len(found) > MOST_COUNTS:
        raise InputError(f"--processes has {len(found)} numbers, expected at most {MOST_COUNTS}")
    return found


def _show(found: list[Prediction]) -> None:
    table = output.table("processes", "time s", "from", "to", "computation", "communication", box=box.SIMPLE)
    for each in found:
        waited = sum(phase.weight * phase.communication for phase in each.phases)
        share = waited / each.execution_time if each.execution_time else 0.0
        low, high = each.interval
        table.add_row(
            str(each.processes),
            f"{each.execution_time:.6g}",
            f"{low:.6g}",
            f"{high:.6g}",
            f"{100.0 * (1.0 - share):.1f} %",
            f"{100.0 * share:.1f} %",
        )
    output.show(table)
