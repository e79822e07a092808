"""``metasched hardware``: the hardware database, and time, power and probability of success of application blocks."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box

from metasched.blocks.entry import Block, Entry, Kind, Quantity
from metasched.blocks.formulas import NEEDS, answer
from metasched.blocks.terms import Term
from metasched.cli import output
from metasched.cli.options import JsonOption, whole_numbers
from metasched.cli.written_files import WRITTEN
from metasched.plain_numbers import number_of
from metasched.records import InputError
from metasched.store.files import hardware as entries
from metasched.store.files.measurements import read_measurements
from metasched.store.files.whole_files import check_writable, write_text_atomically
from metasched.validation import Located

hardware = typer.Typer(
    help="Hardware: list, show and detect it, and predict blocks of an application on it.", no_args_is_help=True
)
EntryArgument = Annotated[str, typer.Argument(help="Name of an entry, or a file that ends in .toml.")]
OutputOption = Annotated[Path | None, WRITTEN, typer.Option("-o", "--output", help="File to write, ending in .toml.")]


@hardware.command("list")
def list_verb(
    kind: Annotated[Kind | None, typer.Option(help="Only entries of this kind.")] = None, as_json: JsonOption = False
) -> None:
    """List the entries of the database."""
    found = [entry for entry in map(entries.read_entry, entries.names()) if kind in (None, entry.kind)]
    if as_json:
        output.print_json([{"name": each.name, "kind": each.kind, "title": each.title} for each in found])
        return
    table = output.table("name", "kind", "", left=("name", "kind", ""), box=box.SIMPLE)
    for each in sorted(found, key=lambda entry: ([*Kind].index(entry.kind), entry.name)):
        table.add_row(each.name, each.kind, each.title)
    output.show(table)


@hardware.command("show")
def show_verb(entry: EntryArgument, as_json: JsonOption = False) -> None:
    """Show an entry: every value with its unit and source, and the unknown values."""
    found = entries.read_entry(entry)
    if as_json:
        output.print_json(_document(found))
        return
    sources = [each.source for each in found.values.values()]
    common = max(sources, key=sources.count, default="")
    output.say("\n".join(filter(None, (f"{found.name}: {found.title}", common))))
    table = output.table(
        "value", "", "unit", "another source", left=("value", "unit", "another source"), box=box.SIMPLE
    )
    for name, each in found.values.items():
        doubt = f" ± {each.uncertainty:.2g}" if each.uncertainty is not None else ""
        table.add_row(
            name, f"{each.value:g}{doubt}", "" if each.unit == "1" else each.unit, each.source * (each.source != common)
        )
    if found.values:
        output.show(table)
    for block, terms in found.blocks.items():
        output.say(f"{block}: {_terms(terms)}")
    if missing := found.not_known:
        output.say(f"not known: {', '.join(missing)}")
    for note in found.notes:
        output.say(note)


@hardware.command("detect")
def detect_verb(to: OutputOption = None, as_json: JsonOption = False) -> None:
    """Write an entry for this host: processors, clocks, power limits, and the speed of its links."""
    from monitors.sensors.hardware import detect

    title, found = detect()
    values = {each.name: Quantity(each.value, each.unit, each.source) for each in found}
    entry = Entry("this-host" if to is None else to.stem, Kind.cpu, title, values)
    if to is not None:
        entries.write_entry(to, entry)
    if as_json:
        output.print_json(_document(entry))
    elif to is None:
        output.say(entries.entry_text(entry).rstrip())
    else:
        output.say(f"{len(values)} values written to {to}")


@hardware.command("clocks")
def clocks_verb(
    asked: Annotated[list[float] | None, typer.Argument(metavar="MHZ", help="Clocks to check.")] = None,
    as_json: JsonOption = False,
) -> None:
    """The clocks at which this host's processors can be held, and the clocks that Slurm would use for others."""
    from monitors.sensors.clocks import read_clocks

    clocks = read_clocks()
    if clocks is None:
        output.to_stderr("this host sets no clocks: its kernel has no cpufreq")
        raise typer.Exit(1)
    held = {each: clocks.held(each) for each in asked or ()}
    if as_json:
        output.print_json(asdict(clocks) | {"holding": clocks.holding, "held": [[*each] for each in held.items()]})
        return
    output.say(f"{clocks.driver or 'unknown driver'}, governors {' '.join(clocks.governors) or 'unknown'}")
    output.say(f"clocks that hold: {', '.join(f'{each:g}' for each in clocks.holding)} MHz")
    for each, clock in held.items():
        made = "is not held" if clock is None else "is held" if clock == each else f"becomes {clock:g} MHz"
        output.say(f"{each:g} MHz {made}")


@hardware.command("block")
def block_verb(
    entry: EntryArgument,
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"One of {', '.join(Block)}.")],
    instructions: Annotated[float | None, typer.Option(help="Instructions of each thread.")] = None,
    threads: Annotated[int | None, typer.Option(help="Active threads on a node.")] = None,
    data_size: Annotated[float | None, typer.Option(help="Bytes.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Number of participating nodes.")] = None,
    duration: Annotated[float | None, typer.Option(help="Seconds.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Time (s), power (W) or probability of success of one block."""
    found = entries.read_entry(entry)
    if kind not in [*Block]:
        raise InputError(f"there is no block {kind!r}, expected one of {', '.join(Block)}")
    asked = {
        "instructions": instructions, "threads": threads, "data_size": data_size, "nodes": nodes, "duration": duration,
    }  # fmt: skip
    needs = NEEDS[Block(kind)]
    if others := [name for name, value in asked.items() if value is not None and name not in needs]:
        raise InputError(f"{kind} takes no {_options(others, ' and no ')}, expected {_options(needs, ' and ')}")
    result = answer(found, Block(kind), **asked)
    if as_json:
        output.print_json(result.as_dict())
        return
    unit = {"time": " s", "power": " W"}.get(result.quantity, "")
    output.say(f"{result.quantity} {result.value:.7g}{unit}")
    output.warn(result.warnings)


def _options(names: Sequence[str], between: str) -> str:
    return between.join(f"--{name.replace('_', '-')}" for name in names)


class Method(StrEnum):
    """The forms that can be fitted: those of Table 1, or those with the smallest held-out error."""

    published = "published"
    robust = "robust"


@hardware.command("calibrate")
def calibrate_verb(
    measurements: Annotated[
        Path, typer.Argument(help="CSV: block, value (s or W), data_size, nodes, threads, instructions.")
    ],
    to: Annotated[Path, WRITTEN, typer.Option("-o", "--output", help="Entry to write, ending in .toml.")],
    method: Annotated[
        Method, typer.Option(help="Table 1's forms, or forms chosen by the held-out error.")
    ] = Method.robust,
    as_json: JsonOption = False,
) -> None:
    """Fit the parameters of blocks to measurements and write them as an entry."""
    from metasched.blocks.calibration import published, robust
    from metasched.blocks.calibration.measurements import Quality

    measured = read_measurements(measurements)
    title = f"calibrated with {measurements.name}, {method}"
    with Located(str(measurements)), output.working("fitting"):
        if method == Method.published:
            entry = published.entry_of(to.stem, published.fit(measured), title)
        else:
            entry = robust.fit(measured, to.stem, title)
    entries.write_entry(to, entry)
    quality = {
        block: Quality.of(each.value, robust.fitted_values(entry, block, each)) for block, each in measured.items()
    }
    if as_json:
        document = _document(entry)
        output.print_json(
            {
                "entry": str(to),
                "method": method,
                "parameters": {
                    name: {key: each[key] for key in ("value", "unit", "uncertainty")}
                    for name, each in document["values"].items()
                },
                "blocks": {
                    block: {
                        "form": "terms" if block in entry.blocks else "published",
                        "measurements": len(measured[block]),
                        **asdict(each),
                        **({"terms": document["blocks"][block]} if block in entry.blocks else {}),
                    }
                    for block, each in quality.items()
                },
            }
        )
        return
    table = output.table("block", "measured", "form", "R^2", "mean error", left=("block", "form"), box=box.SIMPLE)
    for block, result in quality.items():
        form = _terms(entry.blocks[block]) if block in entry.blocks else "Table 1"
        mean = f"{result.mean_percentage_error:.2f} %"
        table.add_row(block, str(len(measured[block])), form, f"{result.r_squared:.4f}", mean)
    output.show(table)
    output.say(f"entry written to {to}")


def _terms(terms: Sequence[Term]) -> str:
    return number_of(len(terms), "term")


def _words(option: str, text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words:
        raise InputError(f"{option} is {text!r}, expected a command with its options, quoted as in a shell")
    return words


@hardware.command("measure")
def measure_verb(
    to: Annotated[Path, WRITTEN, typer.Option("-o", "--output", help="CSV to write.")],
    processes: Annotated[str, typer.Option(help="Numbers of processes, one on each node.")] = "2,3,4,6,8",
    sizes: Annotated[
        str, typer.Option(show_default=False, help="Message sizes in bytes; by default 1 to 4 MiB in powers of two.")
    ] = ",".join(str(2**power) for power in range(23)),
    repetitions: Annotated[
        int, typer.Option(min=1, max=1000, help="Repetitions of each block; their median is written.")
    ] = 7,
    file: Annotated[str, typer.Option(help="File to write and read on the disk to measure; removed afterwards.")] = "",
    compiler: Annotated[str, typer.Option(help="mpicc, or smpicc of SimGrid.")] = "mpicc",
    launcher: Annotated[str, typer.Option(help="Command that starts MPI programs, with its options.")] = "mpirun",
) -> None:
    """Measure the blocks of this cluster with a small MPI program, as input of `hardware calibrate`."""
    from metasched.tracing.compiled import compiled
    from metasched.tracing.launchers import check_installed
    from monitors.sensors.blocks import LARGEST_MESSAGE, OPTIONS, SOURCE, measure

    counts, bytes_ = whole_numbers("--processes", processes), whole_numbers("--sizes", sizes, most=LARGEST_MESSAGE)
    words = _words("--launcher", launcher)
    check_writable(to)
    check_installed(words)
    try:
        with output.working("measuring"):
            program = compiled(SOURCE, compiler, OPTIONS)
            text = measure(words, program, counts, bytes_, repetitions, file, warn=lambda line: output.warn([line]))
    except ValueError as error:
        raise InputError(str(error)) from None
    write_text_atomically(to, text)
    output.say(f"{len(text.splitlines()) - 1} measurements written to {to}")


@hardware.command("export")
def export_verb(
    system: Annotated[Path, typer.Argument(help="System model (TOML), as for simulate.")],
    simgrid: Annotated[Path, WRITTEN, typer.Option(help="Platform file of SimGrid to write (XML).")],
) -> None:
    """Write a system model as a platform of SimGrid, with powers for its plugin host_energy."""
    from metasched.simulation.simgrid import platform_xml
    from metasched.store.files.simulation import read_system

    model = read_system(system)
    with Located(str(system)):
        text = platform_xml(model)
    write_text_atomically(simgrid, text)
    output.say(f"{sum(nodes.count for nodes in model.nodes)} hosts written to {simgrid}")


def _document(entry: Entry) -> dict[str, Any]:
    found = asdict(entry) | {"not_known": entry.not_known}
    order = ("name", "kind", "title", "log_base", "published", "values", "blocks", "not_known", "notes")
    return {name: found[name] for name in order}
