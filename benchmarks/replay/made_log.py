"""A job log that is made up, for tests and examples: ``python -m benchmarks.replay.made_log LOG.csv``.

Users have programs; a program asks for as many processors and as much time as it did before, and runs about as long,
until its input changes. Some runs fail in their first minute. Users come in the day, and submit several jobs in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from metasched.history.job_log import JobLog
from metasched.store.files.whole_files import write_text_atomically

#: What people ask for (s), who mostly ask for much more than they need.
REQUESTS = np.array([600.0, 1800.0, 3600.0, 7200.0, 14_400.0, 28_800.0, 86_400.0])
#: Share of runs that fail early.
FAILING = 0.12


def made_log(jobs: int, seed: int, *, users: int = 25, processors: int = 64, load: float = 0.6) -> JobLog:
    """A log of so many jobs of so many users, who together want this share of the processors.

    Examples
    --------
    >>> log = made_log(500, seed=1)
    >>> len(log), bool((log.run_time <= log.requested_time).all())
    (500, True)
    """
    generator = np.random.default_rng(seed)
    user = generator.choice(users, p=(weight := 1.0 / np.arange(1, users + 1)) / weight.sum(), size=jobs)
    rows: list[tuple[float, float, int, float, int, int]] = []
    programs = generator.integers(1, 5, users)
    width = 2 ** generator.integers(0, int(np.log2(processors)) - 1, (users, 5))
    typical = np.exp(generator.normal(6.8, 1.4, (users, 5)))
    clock = 0.0
    for who in user:
        clock += generator.exponential(1.0) * (1.0 if clock % 86_400 < 43_200 else 3.0)
        which = int(generator.integers(programs[who]))
        if generator.random() < 0.03:  # another input
            typical[who, which] = np.exp(generator.normal(6.8, 1.4))
        needed = typical[who, which] * generator.uniform(1.5, 6.0)
        asked = float(REQUESTS[min(np.searchsorted(REQUESTS, needed), REQUESTS.size - 1)])
        for place in range(int(generator.integers(1, 6))):
            run = typical[who, which] * np.exp(generator.normal(0.0, 0.2))
            if generator.random() < FAILING:
                run = generator.uniform(2.0, 60.0)
            rows.append((clock + 0.01 * place, min(run, asked), int(width[who, which]), asked, int(who), which))
        if len(rows) >= jobs:
            break
    rows = rows[:jobs]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    work = float(np.sum(np.round(columns[1]) * columns[2]))
    submit = np.round(columns[0] * work / (load * processors * columns[0][-1]))
    order = np.argsort(submit, kind="stable")
    return JobLog(submit[order], np.maximum(np.round(columns[1]), 1.0)[order], columns[2].astype(np.int64)[order],
                 columns[3].astype(np.float64)[order], labels={"user": columns[4][order], "name": columns[5][order]},
                 capacity=processors)  # fmt: skip


def as_csv(log: JobLog, arguments: Sequence[str] = ()) -> str:
    """The log as a CSV file, with the arguments of each job where they are given."""
    user, name = log.labels["user"], log.labels["name"]
    lines = [f"job,submit_time,run_time,processors,requested_time,user,name{',arguments' if arguments else ''}"]
    for job in range(len(log)):
        lines.append(
            f"{job + 1},{log.submit_time[job]:.0f},{log.run_time[job]:.0f},{log.processors[job]},"
            f"{log.requested_time[job]:.0f},user{user[job]},program{name[job]}"
            + (f",{arguments[job]}" if arguments else "")
        )
    return "\n".join(lines) + "\n"


def made_arguments(log: JobLog, seed: int) -> list[str]:
    """Arguments of each job: a problem size that explains most of its run time, and a number that explains nothing."""
    draw = np.random.default_rng(seed)
    sizes = np.ceil(100.0 * np.sqrt(log.run_time * log.processors) * np.exp(draw.normal(0.0, 0.1, len(log))))
    return [f"case.in -n {size:.0f} --level {draw.integers(1, 9)}" for size in sizes]


def main(
    path: Annotated[Path, typer.Argument(help="File to write.")],
    jobs: Annotated[int, typer.Option(min=1)] = 3000,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    arguments: Annotated[bool, typer.Option("--arguments", help="Jobs state their problem size.")] = False,
) -> None:
    log = made_log(jobs, seed)
    write_text_atomically(path, as_csv(log, made_arguments(log, seed) if arguments else ()))


if __name__ == "__main__":
    typer.run(main)
