"""``metasched signature resize``: the signature of a run at a problem size that was not run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.cli.written_files import WRITTEN
from metasched.plain_numbers import number_of
from metasched.records import InputError
from metasched.signature.traces.phases import Machine, phases_of
from metasched.store.files.recorded_traces import STATED
from metasched.store.files.signatures import (
    SIGNATURE,
    problem_size_of,
    read_document,
    signature_document,
    trace_of_signature,
    unrecorded_of,
    within_bounds,
    write_document,
)


def resize_verb(
    signatures: Annotated[
        list[Path], typer.Argument(help="Signatures (extract --problem-size) of runs on the same number of processes.")
    ],
    problem_size: Annotated[float, typer.Option(help="Problem size of the signature to write.")],
    to: Annotated[Path, WRITTEN, typer.Option("-o", "--output", help="Signature to write (JSON).")],
    as_json: JsonOption = False,
) -> None:
    """Write the signature of another problem size, from those of at least two."""
    from metasched.signature.traces.problem_sizes import resized
    from metasched.signature.traces.unrecorded import lacking

    documents = [read_document(each, SIGNATURE) for each in signatures]
    runs = {}
    unrecorded: Counter[str] = Counter()
    for document, path in zip(documents, signatures, strict=True):
        size = problem_size_of(document, path)
        if size is None:
            raise InputError("states no problem size, expected that of extract --problem-size", where=str(path))
        if size in runs:
            raise InputError(f"is of problem size {size:g}, as another signature, expected others", where=str(path))
        if document.get("cut"):
            raise InputError("is of a run that did not end normally, expected complete runs", where=str(path))
        runs[size] = trace_of_signature(document, str(path))
        # The most of any run.
        unrecorded |= Counter(unrecorded_of(document, path))
    ways = {str(document.get("instructions", STATED)) for document in documents}
    if len(ways) > 1:
        raise InputError(f"instructions are known by {' and '.join(sorted(ways))}, expected one way")
    within_bounds("--problem-size", problem_size)
    with output.working("resizing"):
        trace = resized(runs, problem_size)
        document = signature_document(trace, phases_of(trace, Machine()))
    document |= {"instructions": ways.pop(), "problem_size": problem_size, "problem_sizes": sorted(runs)}
    if unrecorded:
        document["unrecorded"] = dict(unrecorded)
    write_document(to, document)
    warnings = lacking(unrecorded, "the trace of a run")
    if not min(runs) <= problem_size <= max(runs):
        warnings += [f"problem size {problem_size:g} is outside of those that were run, {min(runs):g} to {max(runs):g}"]
    shown: dict[str, Any] = {name: document[name] for name in ("processes", "events", "problem_size", "problem_sizes")}
    output.answer(
        as_json,
        shown | {"warnings": warnings, "signature": str(to)},
        f"{number_of(trace.events, 'action')} of {number_of(shown['processes'], 'process', 'processes')} "
        f"with problem size {problem_size:g}",
        f"signature written to {to}",
    )
    output.warn(() if as_json else warnings)
