"""``python -m benchmarks.contention``: the figures of every answer on the recorded runs; SimGrid is not needed."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.contention.fitted import with_fitted_terms
from benchmarks.contention.judge import ANSWERS, judge, read

#: Mean error of the predicted slowdowns that the model must keep.
LIMIT = 0.10


def main() -> int:
    """Print the figures; leave with 1 where the model misses its targets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truth", type=Path, default=Path(__file__).with_name("truth.csv"), help="recorded runs")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    runs = read(options.truth)
    verdicts = {name: judge(runs, answer) for name, answer in ANSWERS.items()}
    described = [(run, shown) for run in runs if (shown := with_fitted_terms(run)) is not None]
    known, shown = [run for run, _ in described], [shown for _, shown in described]
    fitted = {name: judge(known, answer, shown) for name, answer in ANSWERS.items()}
    if options.json:
        every = verdicts | {f"{name}, fitted terms": verdict for name, verdict in fitted.items()}
        document = {name: dataclasses.asdict(verdict) for name, verdict in every.items()}
        for name, verdict in every.items():
            document[name]["errors"] = {
                "mean": float(verdict.errors.mean()),
                "median": float(np.median(verdict.errors)),
                "largest": float(verdict.errors.max()),
            }
        json.dump(document, sys.stdout, indent=1)
        print()
    else:
        jobs = next(iter(verdicts.values())).errors.size
        title = f"error of the predicted slowdown, {len(runs)} co-runs, {jobs} jobs"
        table = Table("", *verdicts, title=title, title_justify="left")

        def row(name: str, of: dict[str, float]) -> None:
            table.add_row(name, *(f"{100 * of[answer]:.1f} %" for answer in verdicts))

        row("mean", {name: float(verdict.errors.mean()) for name, verdict in verdicts.items()})
        row("median", {name: float(np.median(verdict.errors)) for name, verdict in verdicts.items()})
        row("largest", {name: float(verdict.errors.max()) for name, verdict in verdicts.items()})
        first = next(iter(verdicts.values()))
        for count in first.by_jobs:
            row(f"{count} jobs", {name: verdict.by_jobs[count] for name, verdict in verdicts.items()})
        for band in first.by_sending:
            row(f"communicating {band}", {name: verdict.by_sending[band] for name, verdict in verdicts.items()})
        for kind in first.by_sharing:
            row(f"sharing {kind}", {name: verdict.by_sharing[kind] for name, verdict in verdicts.items()})
        wrong = [f"{verdict.wrong} of {verdict.pairs}" for verdict in verdicts.values()]
        table.add_row("pairs ordered wrongly", *wrong, end_section=True)
        row(f"fitted terms, {len(known)} co-runs", {name: float(one.errors.mean()) for name, one in fitted.items()})
        for band in next(iter(fitted.values())).by_sending:
            row(f"communicating {band}", {name: one.by_sending[band] for name, one in fitted.items()})
        table.add_row("pairs ordered wrongly", *(f"{one.wrong} of {one.pairs}" for one in fitted.values()))
        Console().print(table)
    model = verdicts["queueing network"]
    return 0 if model.errors.mean() <= LIMIT and model.wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
