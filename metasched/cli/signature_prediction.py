"""``metasched signature predict`` and ``plot``: times of more processes, by blocks, replay or synthetic signatures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.records import InputError
from metasched.signature.reporting import checked_count, unruled
from metasched.store.files.hardware import hardware_of
from metasched.store.files.signatures import measured_in, read_application

if TYPE_CHECKING:
    from metasched.signature.application import Application
    from metasched.signature.prediction import Engine, Prediction

#: Most numbers of processes at once.
MOST_COUNTS = 1_000
#: Processes that a signature is expanded to at most.
MOST_PROCESSES = 9_999_999

ApplicationArgument = Annotated[Path, typer.Argument(help="Application written by metasched signature fit.")]
ProcessesOption = Annotated[str, typer.Option(help="Numbers of processes, separated by commas.")]
HardwareOption = Annotated[str | None, typer.Option(help="Entry of the hardware database, or a file (TOML).")]
NetworkOption = Annotated[str | None, typer.Option(help="Entry of the network; by default the hardware's own.")]
NodeOption = Annotated[int, typer.Option("--processes-per-node", min=1, help="Processes on each node.")]
PlatformOption = Annotated[Path | None, typer.Option(help="Platform of SimGrid (XML) to replay on.")]
HostsOption = Annotated[Path | None, typer.Option(help="Hosts of the platform, one a line.")]
RelevantOption = Annotated[
    bool, typer.Option("--relevant", help="Replay a few iterations of each loop, and multiply by the weights.")
]
SyntheticOption = Annotated[
    list[Path] | None, typer.Option(help="Result of metasched signature run; once for each number of processes.")
]


def predict_verb(
    application: ApplicationArgument,
    processes: ProcessesOption,
    hardware: HardwareOption = None,
    network: NetworkOption = None,
    per_node: NodeOption = 1,
    platform: PlatformOption = None,
    hosts: HostsOption = None,
    relevant: RelevantOption = False,
    synthetic: SyntheticOption = None,
    as_json: JsonOption = False,
) -> None:
    """Predict execution times for numbers of processes that were not run."""
    known, document = read_application(application)
    measured = measured_in(document, application)
    if synthetic:
        engine, answers = measured_engine(known, synthetic, [hardware, platform, hosts, network, relevant or None])
        # No rehearsal on numbers that the synthetic signature was not run for.
        measured = {count: seconds for count, seconds in measured.items() if count in answers}
    else:
        engine = engine_from(known, hardware, network, per_node, platform, hosts, relevant)
    found = answered(known, engine, counts_from(processes), measured)
    warnings = [*dict.fromkeys(line for each in found for line in each.warnings), *unruled(document)]
    if as_json:
        output.print_json({"predictions": [each.as_dict() for each in found], "warnings": warnings})
        return
    _show(found)
    for line in warnings:
        output.to_stderr(f"warning: {line}")


def plot_verb(
    application: ApplicationArgument,
    processes: ProcessesOption,
    picture: Annotated[Path, typer.Option("-o", "--output", help="PNG to write.")],
    hardware: HardwareOption = None,
    network: NetworkOption = None,
    per_node: NodeOption = 1,
    platform: PlatformOption = None,
    hosts: HostsOption = None,
    relevant: RelevantOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw speedup (measured, predicted, ideal) with the knee, and efficiency phase by phase."""
    import numpy as np

    from metasched.cli import figures
    from metasched.cli.signature_figures import phase_efficiencies, speedup_and_efficiency
    from metasched.predictors.analytic.cloud.scaling import Scaling

    known, document = read_application(application)
    measured = dict(sorted(measured_in(document, application).items()))
    counts = sorted({*measured, *counts_from(processes)})
    if len(counts) < 2:
        raise InputError(f"--processes is {processes}, expected at least two numbers for a curve")
    engine = engine_from(known, hardware, network, per_node, platform, hosts, relevant)
    found = answered(known, engine, counts, measured)
    times = np.array([each.execution_time for each in found])
    # Speedup is relative to the smallest count, which is taken to scale ideally up to there.
    scaling = Scaling(np.array(counts), times, counts[0] * measured.get(counts[0], float(times[0])))
    figures.save(speedup_and_efficiency(found, measured, scaling, application.stem), picture)
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
            }
        )
        return
    if scaling.pays_until == counts[-1]:
        output.say(f"more processes are worthwhile up to the largest number requested, {scaling.pays_until}")
    else:
        output.say(f"more than {scaling.pays_until} processes are not worthwhile; {scaling.fastest} are the fastest")
    output.say(f"picture written to {picture}")


def engine_from(
    known: Application,
    hardware: str | None,
    network: str | None,
    per_node: int,
    platform: Path | None,
    hosts: Path | None,
    relevant: bool,
) -> tuple[str, Engine]:
    """The engine that options ask for, with its name."""
    if (hardware is None) == (platform is None):
        raise InputError("give one of --hardware, --platform and --synthetic")
    if hardware is not None:
        from metasched.signature.prediction import by_blocks

        if hosts is not None or relevant:
            raise InputError("--hosts and --relevant belong to --platform")
        return "blocks", by_blocks(known, hardware_of(hardware, network, per_node))
    from metasched.tracing.smpi import by_replay

    if platform is None or hosts is None:
        raise InputError("--platform needs --hosts, names of its hosts, one a line")
    return "replay", by_replay(known, platform, hosts, relevant)


def measured_engine(
    known: Application, paths: list[Path], others: list[object]
) -> tuple[tuple[str, Engine], frozenset[int]]:
    """The engine of results of synthetic signatures, and the numbers of processes that they are for."""
    from metasched.signature.synthetic.result import by_synthetic
    from metasched.store.files.signatures import read_synthetic

    if any(each is not None for each in others):
        raise InputError("give one of --hardware, --platform and --synthetic")
    results = {str(path): read_synthetic(path) for path in paths}
    return ("synthetic", by_synthetic(known, results)), frozenset(each.processes for each in results.values())


def answered(
    known: Application, engine: tuple[str, Engine], counts: list[int], measured: dict[int, float]
) -> list[Prediction]:
    """Predictions for numbers of processes for which the rules are valid."""
    from metasched.signature.prediction import predictions

    for count in counts:
        checked_count(known, count)
    with output.working("predicting"):
        return predictions(engine[1], engine[0], counts, measured, corrected=engine[0] == "blocks")


def counts_from(text: str) -> list[int]:
    """The numbers of processes of an option."""
    words = [word.strip() for word in text.split(",")]
    most = len(str(MOST_PROCESSES))
    if not all(word.isascii() and word.isdigit() and 0 < len(word.lstrip("0")) <= most for word in words):
        raise InputError(
            f"--processes is {text[:60]}, expected whole numbers from 1 to {MOST_PROCESSES}, such as 256,1024"
        )
    if len(words) > MOST_COUNTS:
        raise InputError(f"--processes has {len(words)} numbers, expected at most {MOST_COUNTS}")
    return [int(word) for word in words]


def _show(found: list[Prediction]) -> None:
    table = Table(box=box.SIMPLE)
    for heading in ("processes", "time s", "from", "to", "computation", "communication"):
        table.add_column(heading, justify="right")
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
