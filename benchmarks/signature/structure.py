"""Expanded traces beside true ones: how many calls are right in primitive, peers and bytes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.signature.applications import APPLICATIONS, Judged
from metasched.records import InputError
from metasched.signature.rules.expanding import expanded
from metasched.signature.rules.fitting import fit
from metasched.signature.traces.trace import Trace


@dataclass(frozen=True)
class Judgement:
    """How an expansion did.

    Parameters
    ----------
    name, processes : what was judged.
    right : share of the true calls that are there with primitive, peers and bytes.
    flops : share of the computations that are there, to a relative 0.1 %.
    calls : how many there are.
    seconds : that expanding took.
    note : why there is none, where there is none.
    """

    name: str
    processes: int
    right: float
    flops: float
    calls: int
    seconds: float
    note: str = ""


def right(made: Trace, true: Trace) -> tuple[float, float, int]:
    """Shares of calls and of computations that are right, position by position, and how many calls there are."""
    texts = [[each.table.text(action) for action in range(len(each.table.shape))] for each in (made, true)]
    numbers = {text: number for number, text in enumerate(dict.fromkeys([*texts[0], *texts[1]]))}
    mine, theirs = (np.array([numbers[text] for text in each]) for each in texts)
    flops = np.array([float(text.split()[1]) if text.startswith("compute") else np.nan for text in numbers])
    good = calls = fit_well = computed = 0
    for rank, process in enumerate(true.processes):
        wanted = theirs[process]
        given = np.full(wanted.size, -1)
        if rank < len(made.processes):
            some = mine[made.processes[rank][: wanted.size]]
            given[: some.size] = some
        computes = ~np.isnan(flops[wanted])
        calls += int(np.count_nonzero(~computes))
        good += int(np.count_nonzero((wanted == given) & ~computes))
        amounts = np.where(given[computes] >= 0, flops[given[computes]], np.nan)
        computed += amounts.size
        fit_well += int(np.count_nonzero(np.abs(amounts - flops[wanted[computes]]) <= 1e-3 * flops[wanted[computes]]))
    # What is there too much is wrong as well.
    calls += sum(max(len(made.processes[rank]) - len(each), 0) for rank, each in enumerate(true.processes))
    return good / max(calls, 1), fit_well / max(computed, 1), calls


def judge(application: Judged, processes: Sequence[int]) -> list[Judgement]:
    """Learn from the small counts, expand to others, compare."""
    try:
        found = fit([application.trace(n) for n in application.counts])
    except InputError as error:
        return [Judgement(application.name, n, 0.0, 0.0, 0, 0.0, str(error)) for n in processes]
    judged = []
    for n in processes:
        begin = time.monotonic()
        try:
            made = expanded(found.application, n)
        except InputError as error:
            judged.append(Judgement(application.name, n, 0.0, 0.0, 0, 0.0, str(error)))
            continue
        seconds = time.monotonic() - begin
        calls, flops, many = right(made, application.trace(n))
        answer = "" if found.ruled == 1.0 else f"without rule: {found.unruled}"
        judged.append(Judgement(application.name, n, calls, flops, many, seconds, answer))
    return judged


def structure(processes: Sequence[int], only: str = "") -> list[dict[str, Any]]:
    """All applications whose name holds a word, as a document."""
    chosen = [each for each in APPLICATIONS if only in each.name]
    return [
        {"application": each.name, "learned": list(application.counts),
            "processes": each.processes, "right": each.right, "flops": each.flops, "calls": each.calls,
            "seconds": round(each.seconds, 2), "note": each.note
        }
        for application in chosen
        for each in judge(application, processes)
    ]  # fmt: skip
