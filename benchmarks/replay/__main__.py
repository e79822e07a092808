"""Replays of job logs under each policy, and what was expected: ``python -m benchmarks.replay LOG[:PROCESSORS]...``.

Three tables: average bounded slowdowns with two rows of fairness below each (the mean wait of the tenth that waits
longest, and of the user who works most); the errors of run times and waits; and how much of the gap from shortest
job first by requests to the order of a clairvoyant is closed, over shaken replays and with the bound of a bootstrap by
weeks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from metasched.history.evaluation import evaluate
from metasched.history.job_log import Floats, JobLog
from metasched.history.replay import Policy, Replay, replay, shaken
from metasched.history.run_times.known import PREDICTORS
from metasched.store.files.job_logs import read_job_log

#: Rows of the first table: policy and predictor.
ROWS = (
    ("easy", "requests"), ("sjbf", "last-two"), ("sjbf", "keyed"), ("sjbf", "metasched"), ("sjbf", "clairvoyant"),
    ("order-only", "requests"), ("order-only", "last-two"), ("order-only", "keyed"), ("order-only", "metasched"),
    ("order-only", "clairvoyant"),
)  # fmt: skip
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


def shaken_slowdowns(log: JobLog, processors: int, shakes: int, seed: int) -> dict[str, Floats]:
    """Average bounded slowdowns of order only over the same shaken logs, by predictor."""
    names, generator = ("requests", "metasched", "clairvoyant"), np.random.default_rng(seed)
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(shakes):
        moved = shaken(log, generator)
        for name in names:
            done = replay(moved, processors, Policy.order_only, PREDICTORS[name](moved))
            found[name].append(float(done.bounded_slowdown.mean()))
    return {name: np.array(values) for name, values in found.items()}


def main(
    logs: Annotated[list[str], typer.Argument(help="Log, and after a colon the processors of its cluster.")],
    shakes: Annotated[int, typer.Option(min=0, help="Shaken replays of the third table.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Decides the shaking and the bootstrap.")] = 20,
) -> None:
    console = Console(width=120, highlight=False)
    read: dict[str, tuple[JobLog, int]] = {}
    for each in logs:
        path, _, size = each.partition(":")
        log = read_job_log(path)
        processors = int(size) if size else log.capacity or log.likely_capacity()
        read[path.rpartition("/")[2].partition(".")[0]] = log.fitting(processors), processors
    done: dict[tuple[str, str, str], Replay] = {
        (name, policy, kind): replay(log, processors, Policy(policy), PREDICTORS[kind](log))
        for name, (log, processors) in read.items()
        for policy, kind in ROWS
    }

    def table(title: str, rows: list[tuple[str, Callable[[str], Any]]]) -> None:
        shown = Table(title=title)
        for heading in ("", *read):
            shown.add_column(heading, justify="left" if not heading else "right")
        for what, value in rows:
            shown.add_row(what, *(str(value(name)) for name in read))
        console.print(shown)

    rows: list[tuple[str, Callable[[str], Any]]] = []
    for policy, kind in ROWS:

        def at(name: str, policy: str = policy, kind: str = kind) -> Replay:
            return done[name, policy, kind]

        rows += [
            (f"{policy}, {kind}", lambda name, at=at: f"{at(name).bounded_slowdown.mean():.2f}"),
            ("  worst tenth of waits", lambda name, at=at: f"{worst_tenth(at(name)):,.0f} s"),
            ("  largest user's wait", lambda name, at=at: f"{largest_user(at(name)):,.0f} s"),
        ]
    table("Average bounded slowdown (bound 10 s)", rows)
    judged = {
        (name, kind): evaluate(log, processors, Policy.easy, PREDICTORS[kind])
        for name, (log, processors) in read.items()
        for kind in ("requests", "keyed", "metasched")
    }
    table("Run times and waits under EASY, as expected at submission", [
        *((f"mean absolute error of run times, {kind}", lambda name, kind=kind: f"{judged[name, kind]['mae']:,.0f} s")
          for kind in ("requests", "keyed", "metasched")),
        ("below keyed", lambda name: f"{1 - judged[name, 'metasched']['mae'] / judged[name, 'keyed']['mae']:.1%}"),
        ("coverage of 90 % run-time intervals", lambda name: f"{judged[name, 'metasched']['interval_coverage']:.1%}"),
        *((f"mean absolute error of waits, {kind}", lambda name, kind=kind: f"{judged[name, kind]['wait_mae']:,.0f} s")
          for kind in ("requests", "metasched")),
        ("coverage of 90 % wait intervals", lambda name: f"{judged[name, 'metasched']['wait_coverage']:.1%}"),
    ])  # fmt: skip
    if not shakes:
        return
    shook = {name: shaken_slowdowns(log, processors, shakes, seed) for name, (log, processors) in read.items()}

    def closed(name: str) -> str:
        base, own, best = (float(shook[name][kind].mean()) for kind in ("requests", "metasched", "clairvoyant"))
        return f"{(base - own) / (base - best):.0%}" if base > best else "-"

    table(f"Order only, means of {shakes} shaken replays (seed {seed})", [
        *((kind, lambda name, kind=kind: f"{shook[name][kind].mean():.2f} ± {shook[name][kind].std():.2f}")
          for kind in ("requests", "metasched", "clairvoyant")),
        ("gap closed", closed),
        ("bound of the ratio to requests, weeks drawn anew", lambda name: "{:.3f}".format(
            weekly_bound(done[name, "order-only", "metasched"], done[name, "order-only", "requests"], seed))),
    ])  # fmt: skip


if __name__ == "__main__":
    typer.run(main)
