"""Four sites that share no file system under a stream of 1,000 jobs: ``python -m benchmarks.sites [design|record]``.

Two sites of Slurm's kind (EASY backfilling), one of Grid Engine's without reservations, and a cloud of servers, each
with jobs of its own users, different processors, and a different bandwidth to bring data there. Jobs of seven
applications come in bursts, with data of 0 to 50 GB that is brought before a job is submitted. The first site fails for
an hour: what runs there is killed and begins again when it is back, and its daemon is silent meanwhile.

The run times are SimGrid's: of the testbed's programs on each site's nodes, recorded once (``record``) in ``runs.csv``.
Each run of a job is one of the recorded runs. Queues, transfers and the failure are those of an event simulation.

metasched chooses by :class:`metasched.sites.grid.Sites` as it is shipped. The sites answer as their daemons do, by
queues as seen up to 15 s ago, with waits led on by what they expect of the jobs there, and run times by models learned
from sixteen other recorded runs; their clocks are hours apart. Of the jobs of its own users a site expects the true
time, times a random factor; an interval of a wait is from half to twice the wait; the median bandwidth of each site is
known. The oracle knows all run times, bandwidths, the sites' own jobs to come and the failure, and takes the site where
the job is really done first.

Seeds: 1 to 4 for design (``design``), 301 to 306 judged. On the design seeds what comes is 0.8 of what the sites carry.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.sites.policies import POLICIES, Shipped
from benchmarks.sites.recorded_runs import record
from benchmarks.sites.simulator import Grid
from benchmarks.sites.workload import JOBS, Floats, grid_jobs

DESIGN, JUDGED = range(1, 5), range(301, 307)
#: How a site lies in the rows about lies: it says a tenth of what it knows.
LIE = {"gridengine": 0.1}


def completions(seed: int, policy: Any, count: int = JOBS) -> Floats:
    """Completion of each job of a stream under a policy (s), shape (jobs,).

    Parameters
    ----------
    seed : of the stream.
    policy : that chooses.
    count : how many jobs.
    """
    return Grid(seed, grid_jobs(seed, count)).run(policy)


def main(console: Console, seeds: range, count: int = JOBS) -> None:
    """Print the mean completion of each policy on each stream, beside the oracle's."""
    made: dict[str, Any] = POLICIES | {"metasched, one site lies": lambda seed: Shipped(seed, LIE)}
    table = Table(title=f"mean completion, s ({count} jobs, four sites, one fails for an hour)")
    for heading in ("", *(f"seed {seed}" for seed in seeds), "mean", "beside the oracle", "lost"):
        table.add_column(heading, justify="right" if heading else "left")
    found: dict[str, list[Floats]] = {}
    for name, make in made.items():
        began = time.perf_counter()
        found[name] = [completions(seed, make(seed), count) for seed in seeds]
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    best = float(np.mean([np.nanmean(each) for each in found["oracle"]]))
    for name, each in found.items():
        means = [float(np.nanmean(one)) for one in each]
        lost = sum(int(np.isnan(one).sum()) for one in each)
        mean = float(np.mean(means))
        table.add_row(name, *(f"{one:.0f}" for one in means), f"{mean:.0f}", f"{mean / best - 1.0:+.1%}", f"{lost}")
    console.print(table)


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        record(lambda found, total: track(found, console=Console(stderr=True), total=total))
    else:
        main(Console(width=140), DESIGN if "design" in sys.argv[1:] else JUDGED)
