"""Signatures as files: JSON with a version, checked when it is read."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metasched.json_numbers import finite, read_finite
from metasched.records import InputError
from metasched.signature.rules.application import Application
from metasched.signature.traces.actions import ActionTable, in_bytes
from metasched.signature.traces.folding import Loop, Node, folded, unfolded
from metasched.signature.traces.phases import Phases
from metasched.signature.traces.trace import Trace
from metasched.store.files.recorded_traces import CALLS, WAYS
from metasched.store.files.ti_traces import LARGEST, MOST_EVENTS, MOST_PROCESSES
from metasched.store.files.whole_files import read_text, write_text_atomically
from metasched.validation import Located

if TYPE_CHECKING:
    from metasched.signature.computation.measurable_points import Point
    from metasched.signature.synthetic.result import Result

#: What the first keys of the documents hold.
SIGNATURE, APPLICATION, VERSION = "metasched-signature", "metasched-scaled-application", 1
SYNTHETIC = "metasched-synthetic-signature"
#: Deepest nesting of loops.
DEEPEST = 32
#: What speeds, times and problem sizes are above and below, so that what is computed of them is a number, too.
LEAST, MOST = 1e-30, 1e30


def read_document(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Read a document of one kind and version.

    Raises
    ------
    InputError : when it is not JSON, of another kind, or of a version that is not known.
    """
    where = str(path)
    try:
        document = read_finite(read_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("is not JSON", where=where) from None
    if not isinstance(document, dict) or document.get("kind") != kind:
        raise InputError(f"is no {kind}, expected what metasched signature wrote", where=where)
    if document.get("version") != VERSION:
        raise InputError(f"version is {document.get('version')!r:.40}, expected {VERSION}", where=where)
    processes = document.get("processes")
    if kind == SIGNATURE and (type(processes) is not int or processes < 1):
        raise InputError(f"processes is {str(processes)[:40]}, expected a whole number of at least 1", where=where)
    if kind == SIGNATURE and not _are_phases(document.get("phases", [])):
        raise InputError("phases are expected to be a list, each with its weight", where=where)
    return document


def _are_phases(found: Any) -> bool:
    return isinstance(found, list) and all(
        isinstance(each, dict) and type(weight := each.get("weight")) is int and 0 <= weight <= MOST_EVENTS
        for each in found
    )


def within_bounds(name: str, value: Any, where: str = "") -> float:
    """A number above 0 that can be counted with; InputError with its name for any other value.

    >>> within_bounds("--time", 0.5)
    0.5
    >>> within_bounds("--time", 1e-300)
    Traceback (most recent call last):
    metasched.records.errors.InputError: --time is 1e-300, expected a number above 1e-30 and below 1e+30
    """
    if type(value) not in (int, float) or not LEAST < value < MOST:
        shown = f"{value:g}" if isinstance(value, float) else str(value)[:40]
        raise InputError(f"{name} is {shown}, expected a number above {LEAST:g} and below {MOST:g}", where=where)
    return float(value)


def signature_document(trace: Trace, phases: Phases) -> dict[str, Any]:
    """A signature: its phases, and what each process did, folded."""
    table = trace.table
    used, numbers = np.unique(np.concatenate(trace.processes), return_inverse=True)
    processes = np.split(numbers.reshape(-1), np.cumsum([each.size for each in trace.processes])[:-1])
    return {
        "kind": SIGNATURE,
        "version": VERSION,
        "processes": len(trace.processes),
        "events": trace.events,
        "duration": phases.duration,
        "coverage": phases.coverage,
        "phases": [each.as_dict() for each in phases.phases],
        "actions": [table.text(action) for action in used.tolist()],
        "programs": [_spelled(folded(process)) for process in processes],
    }


def write_document(path: str | os.PathLike[str], document: dict[str, Any]) -> None:
    """Write a document, all of it or nothing."""
    write_text_atomically(path, json.dumps(finite(document), separators=(",", ":"), allow_nan=False) + "\n")


def _spelled(nodes: Sequence[Node]) -> list[Any]:
    return [[node.count, _spelled(node.body)] if isinstance(node, Loop) else node for node in nodes]


def trace_of_signature(document: dict[str, Any], where: str) -> Trace:
    """What each process did, out of a signature's document.

    Raises
    ------
    InputError : when something in it is of another form than a signature has.
    """
    actions, programs = document.get("actions"), document.get("programs")
    if not isinstance(actions, list) or not isinstance(programs, list) or not programs:
        raise InputError("actions and programs are expected to be lists", where=where)
    if len(programs) > MOST_PROCESSES:
        raise InputError(f"has more than {MOST_PROCESSES} programs", where=where)
    if len(programs) != document["processes"]:
        raise InputError(f"is of {document['processes']} processes and has {len(programs)} programs", where=where)
    table, recorded = ActionTable(), document.get("instructions") in WAYS
    for text in actions:
        words = text.split() if isinstance(text, str) else []
        try:
            numbers = tuple(int(word) if word.lstrip("-").isdigit() else float(word) for word in words[1:])
        except ValueError:
            numbers = (float("nan"),)
        if not words or not words[0].replace("_", "").isalpha() or any(not abs(each) <= LARGEST for each in numbers):
            raise InputError(f"action {str(text)[:40]!r} is not valid, expected a name and numbers", where=where)
        table.add(words[0], in_bytes(words[0], numbers) if recorded else numbers, text.endswith(" "))
    left = MOST_EVENTS
    processes = []
    for program in programs:
        nodes, size = _nodes(program, len(actions), 0, left, where)
        left -= size
        processes.append(unfolded(nodes).astype(np.int32))
    return Trace(table, tuple(processes)).checked()


def _nodes(spelled: Any, actions: int, depth: int, most: int, where: str) -> tuple[tuple[Node, ...], int]:
    """Nodes from their spelling, and how many actions they come to, which is bounded before any is made."""
    if not isinstance(spelled, list) or depth > DEEPEST:
        raise InputError(f"a program is no list, or its loops are deeper than {DEEPEST}", where=where)
    nodes: list[Node] = []
    total = 0
    for each in spelled:
        if type(each) is int and 0 <= each < actions:
            nodes.append(each)
            total += 1
        elif isinstance(each, list) and len(each) == 2 and type(each[0]) is int and each[0] >= 1:
            body, size = _nodes(each[1], actions, depth + 1, most, where)
            nodes.append(Loop(each[0], body))
            total += each[0] * size
        else:
            raise InputError(f"a program holds {str(each)[:40]!r}, expected an action or a loop", where=where)
        if total > most:
            raise InputError(f"comes to more than {MOST_EVENTS} actions", where=where)
    return tuple(nodes), total


def read_application(path: Path) -> tuple[Application, dict[str, Any]]:
    """The application that ``fit`` wrote, and the whole document.

    Raises
    ------
    InputError : as :func:`read_document` does, and when the rules are of another form.
    """
    document = read_document(path, APPLICATION)
    with Located(str(path)):
        return Application.of(document.get("application")), document


def measured_of(documents: Sequence[dict[str, Any]], paths: Sequence[Path]) -> dict[str, float]:
    """Execution times (s) of those runs that were timed, by number of processes."""
    found = {}
    for document, path in zip(documents, paths, strict=True):
        time = document.get("execution_time")
        if time is not None:
            found[str(document.get("processes"))] = within_bounds("execution_time", time, str(path))
    return found


def points_of(documents: Sequence[dict[str, Any]], paths: Sequence[Path]) -> list[Point]:
    """Instructions and times of the phases of those runs that were extracted with both."""
    from metasched.signature.computation.measurable_points import MOST_PHASES, Point

    found = []
    for document, path in zip(documents, paths, strict=True):
        one = document.get("point")
        if one is None:
            continue
        try:
            numbers = [tuple(float(each) for each in one[name]) for name in ("instructions", "seconds")]
            sound = 0 < len(numbers[0]) == len(numbers[1]) <= MOST_PHASES
            sound = sound and all(0.0 <= each < LARGEST for some in numbers for each in some)
            found.append(Point(int(one["processes"]), *numbers))
        except (KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise InputError("point is of another form than extract --timed writes", where=str(path))
    return found


def unrecorded_of(document: dict[str, Any], path: Path) -> dict[str, int]:
    """How often the run of a signature made calls that its trace lacks, by their names."""
    found = document.get("unrecorded", {})
    if not isinstance(found, dict) or not all(
        CALLS.fullmatch(name) and type(times) is int and 0 < times < LARGEST for name, times in found.items()
    ):
        raise InputError("unrecorded is expected to hold numbers of calls by name", where=str(path))
    return found


def problem_size_of(document: dict[str, Any], path: Path) -> float | None:
    """The problem size that a signature states; None where it states none."""
    size = document.get("problem_size")
    return None if size is None else within_bounds("problem_size", size, str(path))


def one_workload_of(documents: Sequence[dict[str, Any]], paths: Sequence[Path]) -> None:
    """Refuse problem sizes that neither stay nor grow with the number of processes.

    Raises
    ------
    InputError : with the signature whose size is another one.
    """
    known = [
        (int(each["processes"]), problem_size_of(each, path), path) for each, path in zip(documents, paths, strict=True)
    ]
    stated = sorted((n, size, str(path)) for n, size, path in known if size is not None)
    if len({size for _, size, _ in stated}) > 1 and any(after[1] <= before[1] for before, after in pairwise(stated)):
        n, size, path = next(each for each in stated if each[1] != stated[0][1])
        raise InputError(
            f"is of problem size {size:g} on {n} processes, and {stated[0][2]} of {stated[0][1]:g} on {stated[0][0]}: "
            "expected one size, or sizes that grow with the processes",
            where=path,
        )


def measured_in(document: dict[str, Any], path: Path) -> dict[int, float]:
    """Execution times (s) of the runs that an application was learned from, by number of processes."""
    measured = document.get("measured", {})
    if not isinstance(measured, dict) or not all(isinstance(n, str) and n.isdigit() for n in measured):
        raise InputError("measured is expected to hold seconds by number of processes", where=str(path))
    return {int(n): within_bounds("execution_time", time, str(path)) for n, time in measured.items()}


def read_synthetic(path: str | os.PathLike[str]) -> Result:
    """Read what metasched signature run measured.

    Raises
    ------
    InputError : as :func:`read_document` does, and when something in it is of another form.
    """
    from metasched.signature.synthetic.result import Result

    document = read_document(path, SYNTHETIC)
    with Located(str(path)):
        return Result.of(document)
