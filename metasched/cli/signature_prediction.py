"""``metasched signature predict``: the time on more processes, by blocks of hardware or by replay."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.records import InputError
from metasched.signature.reporting import checked_count
from metasched.store.files.hardware import read_entry
from metasched.store.files.signatures import measured_in, read_application

if TYPE_CHECKING:
    from metasched.signature.prediction import Hardware, Prediction

#: Most numbers of processes at once.
MOST_COUNTS = 1_000

ProcessesOption = Annotated[str, typer.Option(help="Numbers of processes, separated by commas.")]
HardwareOption = Annotated[str | None, typer.Option(help="Entry of the hardware database, or a file (TOML).")]
NetworkOption = Annotated[str | None, typer.Option(help="Entry of the network; by default the hardware's own.")]
NodeOption = Annotated[int, typer.Option(min=1, help="Processes on each node.")]


def predict_verb(
    application: Annotated[Path, typer.Argument(help="Application written by metasched signature fit.")],
    processes: ProcessesOption,
    hardware: HardwareOption = None,
    network: NetworkOption = None,
    per_node: NodeOption = 1,
    platform: Annotated[Path | None, typer.Option(help="Platform of SimGrid (XML) to replay on.")] = None,
    hosts: Annotated[Path | None, typer.Option(help="Hosts of the platform, one a line.")] = None,
    relevant: Annotated[
        bool, typer.Option("--relevant", help="Replay a few turns of each loop, and multiply by the weights.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Predict execution times for numbers of processes that were not run."""
    from metasched.signature.prediction import by_blocks, predictions

    counts = counts_from(processes)
    known, document = read_application(application)
    measured = measured_in(document, application)
    for count in counts:
        checked_count(known, count)
    if (hardware is None) == (platform is None):
        raise InputError("give either --hardware or --platform")
    if hardware is not None:
        if hosts is not None or relevant:
            raise InputError("--hosts and --relevant belong to --platform")
        engine, name = by_blocks(known, hardware_from(hardware, network, per_node)), "blocks"
    else:
        from metasched.tracing.smpi import by_replay

        if platform is None or hosts is None:
            raise InputError("--platform needs --hosts, names of its hosts, one a line")
        engine, name = by_replay(known, platform, hosts, relevant), "replay"
    with output.working("predicting"):
        found = predictions(engine, name, counts, measured, corrected=name == "blocks")
    told = [*dict.fromkeys(line for each in found for line in each.warnings), *unruled(document)]
    if as_json:
        output.print_json({"predictions": [each.as_dict() for each in found], "warnings": told})
        return
    _show(found)
    for line in told:
        output.to_stderr(f"warning: {line}")


def counts_from(text: str) -> list[int]:
    """Numbers of processes that an option spells."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and 0 < int(word[:9]) < 10**7 for word in words):
        raise InputError(f"--processes is {text[:60]}, expected whole numbers above 0, such as 256,1024")
    if len(words) > MOST_COUNTS:
        raise InputError(f"--processes has {len(words)} numbers, expected at most {MOST_COUNTS}")
    return [int(word) for word in words]


def hardware_from(hardware: str, network: str | None, per_node: int) -> Hardware:
    """Device and network by the names of their entries."""
    from metasched.blocks.entry import Block
    from metasched.signature.prediction import Hardware

    device = read_entry(hardware)
    joined = device if network is None else read_entry(network)
    if "T_p2p" not in joined.values and Block.p2p not in joined.blocks and joined.get("bandwidth") is None:
        raise InputError(f"{joined.name} has neither bandwidth nor T_p2p and K_p2p: give --network")
    return Hardware(device, joined, per_node)


def unruled(document: dict[str, Any]) -> list[str]:
    """What follows no rule, in words."""
    without = document.get("without_rule")
    if not isinstance(without, dict):
        return []
    return [
        f"{name}, {100.0 * share:.2f} % of the actions, follows no rule: a regression is used"
        for name, share in without.items()
        if isinstance(share, int | float)
    ]


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
    output.out.print(table)
