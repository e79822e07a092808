"""Speed of searching, learning and predicting, each beside a peer or a limit measured in the same run, on one core.

``python -m benchmarks.search`` (``make bench``). Every figure is a median; a ratio is the median of ratios of pairs
timed one after the other, so that a machine that slows down slows both sides.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from candidate_functions.exhaustive import exhaustive_search
from candidate_functions.staged import Limits, staged_search
from candidate_functions.terms import FAMILIES, Observations, TermTable
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.formulas.sorted_list import SortedList
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Request, Run

#: Combinations that a search tries when each of its stages is full.
FULL = 77 + 20 * 77 * 8 + 20 * 16 * 16


def made_runs(count: int, seed: int = 0) -> list[Run]:
    """Runs that obey Eq. (1) with 10 % noise, on 1, 2, 4 and 8 processors in the paper's shares."""
    rng = np.random.default_rng(seed)
    processors = np.resize(np.repeat([1, 2, 4, 8], [2, 2, 1, 1]), count)
    size = np.exp(rng.uniform(np.log(200), np.log(4000), count))
    cpu, bw = rng.uniform(0.3, 1.0, count), rng.uniform(20.0, 95.0, count)
    time_ = 2e-4 * size**2 / (cpu * processors) + 0.05 * size**1.5 / bw * np.log(processors)
    time_ *= np.exp(rng.normal(0.0, 0.1, count))
    rows = zip(size, processors, cpu, bw, time_, strict=True)
    return [Run("made", "c8", float(n), int(p), float(c), float(b), float(t)) for n, p, c, b, t in rows]


def observed(runs: list[Run]) -> Observations:
    rows = [(r.problem_size, r.processors, r.min_avg_avail_cpu, r.min_avg_avail_bw, r.execution_time) for r in runs]
    return Observations.of(*zip(*rows, strict=True))


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median(work: Callable[[], object], repeat: int) -> float:
    work()
    return float(np.median([seconds(work) for _ in range(repeat)]))


def published_search(table: Table) -> None:
    runs = observed(made_runs(60))
    # A tolerance without end keeps every stage full, the most work that a search can be.
    limits = Limits(tolerance=1e9)
    tried = sum(staged_search(runs, limits=limits).tried)
    assert tried == FULL
    rng = np.random.default_rng(1)
    sample = np.stack([rng.integers(0, len(family), 300) for family in FAMILIES], axis=1).astype(np.int16)
    sample[:, 3] = 1
    parallel = runs.where(runs.processors > 1)

    def loop() -> None:
        terms = TermTable.at(parallel)
        for combination in sample:
            design = terms.columns(combination[None])[0].T
            solution, *_ = np.linalg.lstsq(design, parallel.time, rcond=None)
            error = parallel.time - design @ solution
            np.sqrt(error @ error / (len(parallel) - 2))

    searches, loops = [], []
    for _ in range(9):
        searches.append(median(lambda: staged_search(runs, limits=limits), 5))
        loops.append(seconds(loop) / len(sample) * tried)
    ratio = float(np.median(np.array(loops) / np.array(searches)))
    found = float(np.median(searches))
    table.add_row("published search, 60 runs, 17,517 combinations", f"{found * 1e3:.2f} ms", "<= 30 ms")
    table.add_row("  against numpy.linalg.lstsq in a loop", f"{ratio:,.0f} times faster", ">= 1,000 times")


def exhaustive(table: Table) -> None:
    runs = observed(made_runs(60))
    rng = np.random.default_rng(2)
    first, second = rng.uniform(size=(77 * 16, 60)), rng.uniform(size=(60, 77 * 8 * 16))
    out = np.empty((len(first), second.shape[1]))

    def product() -> None:
        np.matmul(first, second, out=out)

    product()
    pairs = [(seconds(lambda: exhaustive_search(runs, best=100)), seconds(product)) for _ in range(9)]
    ratio = float(np.median([search / bare for search, bare in pairs]))
    found = float(np.median([search for search, _ in pairs]))
    table.add_row("exhaustive search, 60 runs, 12,142,592 combinations", f"{found * 1e3:.0f} ms", "")
    table.add_row("  against the bare matrix product in it", f"{ratio:.2f} times as long", "<= 5 times")


def learning(table: Table) -> None:
    few, many = made_runs(100), made_runs(100_000, seed=3)
    combinations = exhaustive_search(observed(few), best=1000).combinations

    def predictor(runs: list[Run]) -> PublishedPredictor:
        made = PublishedPredictor("made", "c8").fit(runs[:100])
        for run in runs[100:]:
            made.window.add(run)
        window = made.window.observations()
        # In danger never, so that the list keeps its thousand while it is timed.
        state = made.state
        object.__setattr__(state, "parallel", SortedList.of(combinations, window.where(window.processors > 1)))
        return made

    small, large = predictor(few), predictor(many)
    fresh = [run for run in made_runs(60, seed=4) if run.processors > 1][:30]
    ratios, times = [], []
    for run in fresh:
        after_large = seconds(lambda run=run: large.learn(run))
        after_small = seconds(lambda run=run: small.learn(run))
        times.append(after_small)
        ratios.append(after_large / after_small)
    table.add_row("learn, sorted list of 1,000, 100 runs stored", f"{np.median(times) * 1e3:.2f} ms", "<= 2 ms")
    table.add_row("  with 100,000 runs stored", f"{np.median(ratios):.2f} times as long", "0.80 to 1.20")
    robust = RobustPredictor("made", "c8").fit(few)
    robust_times = []
    for run in fresh:
        robust_times.append(seconds(lambda run=run: robust.learn(run)))
        robust.settle()
    table.add_row("learn, robust", f"{np.median(robust_times) * 1e3:.1f} ms", "")


def fitting(table: Table) -> None:
    for count in (5, 10, 60):
        runs = observed(made_runs(count))
        took = median(lambda runs=runs: Model.fit(runs), 9)
        table.add_row(f"fit robust, {count} runs", f"{took * 1e3:.0f} ms", "<= 100 ms" if count <= 10 else "")


def predicting(table: Table) -> None:
    rng = np.random.default_rng(5)
    for name, made, size in (
        ("published", PublishedPredictor("made", "c8").fit(made_runs(60)), 1_000_000),
        ("robust", RobustPredictor("made", "c8").fit(made_runs(60)), 100_000),
    ):
        columns = (
            rng.uniform(200, 4000, size),
            rng.integers(1, 64, size),
            rng.uniform(0.2, 1.0, size),
            rng.uniform(10, 100, size),
        )
        rows = zip(*(column[:500].tolist() for column in columns), strict=True)
        requests = [Request(*row) for row in rows]  # each asked once: no answer can be a remembered one
        one = float(np.median([seconds(lambda r=request, m=made: m.predict(r)) for request in requests]))
        table.add_row(f"predict one, {name}, distinct requests", f"{one * 1e6:.0f} us", "<= 100 us")
        target = ">= 5 million/s" if name == "published" else ">= 2 million/s"
        for what, ask in (("predict", made.predict_many), ("expect", made.expect_many)):
            batch = median(lambda ask=ask, columns=columns: ask(*columns), 7)
            table.add_row(f"{what} {size:,} at once, {name}", f"{size / batch / 1e6:.1f} million/s", target)


def main() -> None:
    table = Table(title="Speed on one core")
    table.add_column("what")
    table.add_column("measured", justify="right")
    table.add_column("target", justify="right")
    with threadpool_limits(limits=1):
        for part in (published_search, exhaustive, learning, fitting, predicting):
            part(table)
    Console().print(table)


if __name__ == "__main__":
    main()
