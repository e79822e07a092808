"""``metasched port``: transfer a model to other platforms."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from metasched.cli import output
from metasched.cli.options import JsonOption, LevelOption
from metasched.cli.written_files import WRITTEN
from metasched.plain_numbers import number_of, plain
from metasched.predictors.porting.port import as_reference, port_to_each
from metasched.predictors.porting.predictor import PortedPredictor
from metasched.predictors.porting.trust import Trust, trust
from metasched.records import InputError, Run, check_level
from metasched.store.files.models import read_model, write_model
from metasched.store.files.runs import read_runs
from metasched.validation import Located

#: Placeholder of the target in the name of the output.
PLACE = "{cluster}"
MOST_NODES = 1_000_000


def port_verb(
    model: Annotated[Path, typer.Argument(help="Model file of the reference platform.")],
    reference: Annotated[Path, typer.Option(help="Dedicated runs on 1 and 2 processors of the reference (runs.csv).")],
    target: Annotated[
        list[Path], typer.Option(help="Dedicated runs on 1 and 2 processors of a target (runs.csv); repeatable.")
    ],
    model_output: Annotated[
        str,
        WRITTEN,
        typer.Option("-o", "--output", help=f"Model file to write; {PLACE} stands for the name of the target."),
    ],
    nodes: Annotated[
        list[str] | None,
        typer.Option(
            help="Number of nodes of a cluster, each with one link, as CLUSTER=COUNT; repeatable. By default every "
            "processor has its own link."
        ),
    ] = None,
    processors: Annotated[
        int | None, typer.Option(min=1, max=2**40, help="Largest number of processors for which errors are estimated.")
    ] = None,
    level: LevelOption = 0.9,
    as_json: JsonOption = False,
) -> None:
    """Port a model to every platform in the target runs, and estimate the error of each port."""
    check_level("--level", level)
    fitted = read_model(model)
    with Located(str(model)):
        known = as_reference(fitted)
    own = [run for run in _of(read_runs(reference), known.application, reference) if run.cluster == known.cluster]
    if not own:
        raise InputError(f"holds no runs on {known.cluster}, the cluster of the model", where=str(reference))
    runs = [run for path in target for run in _of(read_runs(path), known.application, path)]
    with output.working("porting"):
        ported = port_to_each(known, own, runs, _counts(nodes or []))
    if len(ported) > 1 and PLACE not in model_output:
        raise InputError(f"runs of {', '.join(ported)}: expected {PLACE} in the name", where="--output")
    written = []
    for cluster, predictor in ported.items():
        # The name of a cluster comes from a file, and must not lead out of the folder meant.
        if PLACE in model_output and (not cluster or set(cluster) & set("/\\\0") or cluster in (".", "..")):
            raise InputError(f"cluster {cluster!r} cannot be part of a file name", where="--output")
        path = model_output.replace(PLACE, cluster)
        write_model(path, predictor)
        written.append((path, predictor, trust(predictor, processors, level)))
    if as_json:
        output.print_json(
            {
                "application": known.application,
                "reference": known.cluster,
                "targets": [_document(path, predictor, expected) for path, predictor, expected in written],
            }
        )
        return
    for path, predictor, expected in written:
        _show(path, predictor, expected)


def _of(runs: Iterable[Run], application: str, path: Path) -> list[Run]:
    chosen = [run for run in runs if run.application == application]
    if not chosen:
        raise InputError(f"holds no runs of {application}, the application of the model", where=str(path))
    return chosen


def _counts(nodes: Iterable[str]) -> dict[str, int]:
    counts = {}
    for given in nodes:
        cluster, _, count = given.rpartition("=")
        if not cluster or not count.isdecimal() or not 1 <= int(count) <= MOST_NODES:
            raise InputError(f"{given!r}, expected CLUSTER=COUNT with a count from 1 to {MOST_NODES}", where="--nodes")
        counts[cluster] = int(count)
    return counts


def _document(path: str, predictor: PortedPredictor, expected: Trust) -> dict[str, Any]:
    return {
        "cluster": predictor.cluster,
        "rcpu": {"value": predictor.rcpu.value, "low": predictor.rcpu.low, "high": predictor.rcpu.high},
        "rbw": {"value": predictor.rbw.value, "low": predictor.rbw.low, "high": predictor.rbw.high},
        "runs": len(predictor.window),
        "notes": list(predictor.state.notes),
        "trust": [
            {
                "problem_size": expected.problem_size,
                "processors": int(expected.processors[position]),
                "execution_time": expected.execution_time[position],
                "interval": {"low": expected.low[position], "high": expected.high[position], "level": expected.level},
                "expected_ppe": expected.expected_ppe[position],
            }
            for position in range(len(expected.processors))
        ],
        "model": path,
    }


def _show(path: str, predictor: PortedPredictor, expected: Trust) -> None:
    title = f"{predictor.application} from {predictor.reference.cluster} to {predictor.cluster}, idle"
    headings = ("processors", "execution time (s)", f"{expected.level:.0%} interval", "expected PPE")
    table = output.table(*headings, title=f"{title}, problem size {plain(expected.problem_size)}")
    for position, count in enumerate(expected.processors):
        table.add_row(
            f"{count:.0f}",
            plain(expected.execution_time[position]),
            f"{plain(expected.low[position])} to {plain(expected.high[position])}",
            f"{expected.expected_ppe[position]:.0f} %",
        )
    output.show(table)
    for name, factor in (("Rcpu", predictor.rcpu), ("Rbw", predictor.rbw)):
        output.say(f"{name} {factor.value:.3g} (about as good: {factor.low:.3g} to {factor.high:.3g})")
    for note in predictor.state.notes:
        output.say(f"note: {note}")
    output.say(f"{number_of(len(predictor.window), 'run')} learned, model written to {path}")
