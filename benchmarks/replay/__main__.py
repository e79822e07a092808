"""Replays of job logs under each policy, and what was expected: ``python -m benchmarks.replay LOG[:PROCESSORS]...``.

Three tables: average bounded slowdowns with two rows of fairness below each (the mean wait of the tenth that waits
longest, and of the user who works most); the errors of run times and waits; and how much of the gap from shortest
job first by requests to the order of a clairvoyant is closed, over shaken replays and with the bound of a bootstrap by
weeks. The third table alone is made by ``--only-shaken``; each shaken replay is printed as it ends, to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from metasched.arrays import Floats
from metasched.history.evaluation import evaluate
from metasched.history.job_log import JobLog
from metasched.history.replay import Policy, Replay, perturbed, replay
from metasched.history.run_times.known import PREDICTORS
from metasched.store.files.job_logs import read_job_log

#: Rows of the first table: policy and predictor.
ROWS = (
    ("easy", "requests"), ("sjbf", "last-two"), ("sjbf", "keyed"), ("sjbf", "metasched"), ("sjbf", "clairvoyant"),
    ("order-only", "requests"), ("order-only", "last-two"), ("order-only", "keyed"), ("order-only", "metasched"),
    ("order-only", "clairvoyant"),
)  # fmt: skip
#: Rows that the third table needs.
BOUNDED = (("order-only", "requests"), ("order-only", "metasched"))
#: Predictors that are compared over shaken replays.
SHAKEN = ("requests", "metasched", "clairvoyant")
WEEK = 7 * 86_400.0


def worst_tenth(done: Replay) -> float:
    """Mean wait of the tenth that waits longest (s)."""
    return float(np.sort(done.wait)[-max(1, len(done.wait) // 10) :].mean())


def largest_user(done: Replay) -> float:
    """Mean wait of the user whose jobs held the most processors the longest (s)."""
    user, work = done.log.labelled("user") + 1, done.log.run_time * done.log.processors
    return float(done.wait[user == np.argmax(np.bincount(user, work))].mean())


def weekly_bound(better: Replay, base: Replay, seed: int, draws: int = 1000) -> float:
    """The 95th percentile of the ratio of two average bounded slowdowns, with weeks drawn again and again."""
    week = (base.log.submit_time // WEEK).astype(np.int64)
    week -= week.min()
    sums = [np.bincount(week, done.bounded_slowdown) for done in (better, base)]
    drawn = np.random.default_rng(seed).integers(0, sums[0].size, (draws, sums[0].size))
    return float(np.quantile(sums[0][drawn].sum(axis=1) / sums[1][drawn].sum(axis=1), 0.95))


def shaken_slowdowns(log: JobLog, processors: int, shakes: int, seed: int) -> Iterator[dict[str, float]]:
    """Average bounded slowdowns of order only by predictor, over the same shaken log each time."""
    generator = np.random.default_rng(seed)
    for _ in range(shakes):
        moved = perturbed(log, generator)
        yield {
            kind: float(replay(moved, processors, Policy.order_only, PREDICTORS[kind](moved)).bounded_slowdown.mean())
            for kind in SHAKEN
        }


def tabulate(title: str, names: Iterable[str], rows: list[tuple[str, Callable[[str], str]]]) -> None:
    """Print a table with a column for each log."""
    shown = Table(title=title)
    for heading in ("", *names):
        shown.add_column(heading, justify="right" if heading else "left")
    for what, value in rows:
        shown.add_row(what, *map(value, names))
    Console(width=120, highlight=False).print(shown)


def tabulate_rows(done: Mapping[str, Mapping[tuple[str, str], Replay]]) -> None:
    """Print the table of replays by policy and predictor."""
    rows: list[tuple[str, Callable[[str], str]]] = []
    for row in ROWS:
        rows += [
            (", ".join(row), lambda name, row=row: f"{done[name][row].bounded_slowdown.mean():.2f}"),
            ("  worst tenth of waits", lambda name, row=row: f"{worst_tenth(done[name][row]):,.0f} s"),
            ("  largest user's wait", lambda name, row=row: f"{largest_user(done[name][row]):,.0f} s"),
        ]
    tabulate("Average bounded slowdown (bound 10 s)", done, rows)


def tabulate_errors(logs: Mapping[str, tuple[JobLog, int]]) -> None:
    """Print the table of errors of run times and waits."""
    judged = {
        (name, kind): evaluate(log, processors, Policy.easy, PREDICTORS[kind])
        for name, (log, processors) in logs.items()
        for kind in ("requests", "keyed", "metasched")
    }
    tabulate("Run times and waits under EASY, as expected at submission", logs, [
        *((f"mean absolute error of run times, {kind}", lambda name, kind=kind: f"{judged[name, kind]['mae']:,.0f} s")
          for kind in ("requests", "keyed", "metasched")),
        ("below keyed", lambda name: f"{1 - judged[name, 'metasched']['mae'] / judged[name, 'keyed']['mae']:.1%}"),
        ("coverage of 90 % run-time intervals", lambda name: f"{judged[name, 'metasched']['interval_coverage']:.1%}"),
        *((f"mean absolute error of waits, {kind}", lambda name, kind=kind: f"{judged[name, kind]['wait_mae']:,.0f} s")
          for kind in ("requests", "metasched")),
        ("coverage of 90 % wait intervals", lambda name: f"{judged[name, 'metasched']['wait_coverage']:.1%}"),
    ])  # fmt: skip


def tabulate_shaken(
    done: Mapping[str, Mapping[tuple[str, str], Replay]], shook: Mapping[str, list[dict[str, float]]], seed: int
) -> None:
    """Print the table of shaken replays."""

    def values(name: str, kind: str) -> Floats:
        return np.array([each[kind] for each in shook[name]])

    def closed(name: str) -> str:
        base, own, best = (float(values(name, kind).mean()) for kind in SHAKEN)
        return f"{(base - own) / (base - best):.0%}" if base > best else "-"

    def bound(name: str) -> str:
        base, own = (done[name][row] for row in BOUNDED)
        return f"{weekly_bound(own, base, seed):.3f}"

    tabulate(f"Order only, means of {len(next(iter(shook.values())))} shaken replays (seed {seed})", shook, [
        *((kind, lambda name, kind=kind: f"{values(name, kind).mean():.2f} ± {values(name, kind).std():.2f}")
          for kind in SHAKEN),
        ("gap closed", closed),
        ("bound of the ratio to requests, weeks drawn again", bound),
    ])  # fmt: skip


def read_logs(logs: Iterable[str]) -> dict[str, tuple[JobLog, int]]:
    """Each log by its name, with the processors of its cluster, which may follow its path after a colon."""
    read: dict[str, tuple[JobLog, int]] = {}
    for each in logs:
        path, _, size = each.partition(":")
        log = read_job_log(path)
        processors = int(size) if size else log.capacity or log.likely_capacity()
        read[path.rpartition("/")[2].partition(".")[0]] = log.fitting(processors), processors
    return read


def main(
    logs: Annotated[list[str], typer.Argument(help="Log, and after a colon the processors of its cluster.")],
    shakes: Annotated[int, typer.Option(min=0, help="Shaken replays of the third table.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Decides the shaking and the bootstrap.")] = 20,
    only_shaken: Annotated[bool, typer.Option("--only-shaken", help="Make the third table alone.")] = False,
) -> None:
    read = read_logs(logs)
    done = {
        name: {
            (policy, kind): replay(log, processors, Policy(policy), PREDICTORS[kind](log))
            for policy, kind in (BOUNDED if only_shaken else ROWS)
        }
        for name, (log, processors) in read.items()
    }
    if not only_shaken:
        tabulate_rows(done)
        tabulate_errors(read)
    if not shakes:
        return
    shook: dict[str, list[dict[str, float]]] = {name: [] for name in read}
    for name, (log, processors) in read.items():
        for found in shaken_slowdowns(log, processors, shakes, seed):
            shook[name].append(found)
            print(name, *(f"{kind} {value:.2f}" for kind, value in found.items()), file=sys.stderr, flush=True)
    tabulate_shaken(done, shook, seed)


if __name__ == "__main__":
    typer.run(main)
