"""Speed of the queueing solvers beside octave-queueing, in one run on one core, each figure beside its target.

Times are medians of several, of processor time, so that a busy machine does not change them. Octave's are taken inside
Octave, without its start. Where it is not installed its columns are left out and said to be missing. Run by
``make queueing-bench``.
"""

from __future__ import annotations

import argparse
import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metasched.queueing.approximate import solve_approximately
from metasched.queueing.multi_class import solve_exactly
from metasched.queueing.single_class import convolution, mean_value_analysis

Floats = NDArray[np.float64]

#: Ten stations, the third with four servers: the first network of the reference values.
DEMANDS = np.array([0.1, 0.25, 0.8, 0.15, 0.3, 0.05, 0.2, 0.12, 0.18, 0.22])
THINK, JOBS, SERVERS = 5.0, 200, 4
#: Four stations and four classes, likewise.
FOUR = np.array([[0.1, 0.2, 0.05, 0.15], [0.3, 0.1, 0.05, 0.25], [0.05, 0.4, 0.3, 0.1], [0.2, 0.15, 0.35, 0.1]])
FOUR_THINK, FOUR_JOBS = np.array([2.0, 3.0, 4.0, 1.0]), np.array([10, 8, 6, 12])

OCTAVE = """
pkg load queueing; warning("off", "all");
S = [{demands}]; m = ones(1, numel(S)); m(3) = {servers}; V = ones(1, numel(S));
for k = 1:3
  c = cputime; for n = 1:{jobs}, [U R Q X] = qncsmva(n, S, V, m, {think}); x(n) = X(1); end; t(k) = cputime - c;
end
printf("single %.9g\\n", median(t)); printf("curve"); printf(" %.15g", x); printf("\\n");
S = [{four}]; V = ones(size(S)); m = ones(1, rows(S));
for k = 1:3, c = cputime; [U R Q X] = qncmmva([{four_jobs}], S, V, m, [{four_think}]); t(k) = cputime - c; end
printf("four %.9g\\n", median(t)); printf("throughput"); printf(" %.15g", X(:, 1)); printf("\\n");
"""


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Median processor time of ``repeats`` calls after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def ask_octave() -> tuple[dict[str, list[float]], str]:
    """Times and throughputs of octave-queueing, or nothing and what is missing."""
    program = shutil.which("octave-cli") or shutil.which("octave")
    if program is None:
        return {}, "octave is not installed (Debian: apt-get install octave octave-queueing)"

    def row(values: Floats) -> str:
        return " ".join(repr(float(value)) for value in values)

    script = OCTAVE.format(
        demands=row(DEMANDS),
        servers=SERVERS,
        jobs=JOBS,
        think=THINK,
        four="; ".join(row(column) for column in FOUR.T),
        four_jobs=row(FOUR_JOBS),
        four_think=row(FOUR_THINK),
    )
    done = subprocess.run([program, "-q", "--eval", script], capture_output=True, text=True, check=False)
    lines = [line.split() for line in done.stdout.splitlines()]
    answers = {words[0]: [float(word) for word in words[1:]] for words in lines if len(words) > 1}
    if "throughput" not in answers:
        return {}, f"octave-queueing does not answer (Debian: octave-queueing): {done.stderr.strip()[:200]}"
    return answers, ""


def measure(repeats: int) -> list[dict[str, Any]]:
    """One row a target: what, our time, Octave's, the figure and the target."""
    answers, missing = ask_octave()
    if missing:
        print(missing, file=sys.stderr)
    rates = np.ones((DEMANDS.size, JOBS))
    rates[2] = np.minimum(np.arange(1, JOBS + 1), SERVERS)
    curve = convolution(DEMANDS, THINK, rates)
    four = solve_exactly(FOUR, FOUR_THINK, FOUR_JOBS, np.ones((4, FOUR_JOBS.sum())))

    generator = np.random.default_rng(1)
    large = generator.uniform(0.01, 1.0, (1000, 100)), generator.uniform(0, 5, 100), generator.integers(1, 20, 100)
    servers = [tuple(np.arange(1.0, count + 1)) for count in generator.choice([1, 2, 4, 16], 1000)]
    many = generator.uniform(0.01, 1.0, (1000, 20)), generator.uniform(0, 5, 1000)
    some = np.ones((20, 20))
    some[:3] = np.minimum(np.arange(1, 21), 4)

    def beside(name: str, ours: float, key: str, numbers: Floats, their_numbers: str, target: float) -> dict[str, Any]:
        row: dict[str, Any] = {"case": name, "seconds": ours, "target_ratio": target}
        if answers:
            theirs = answers[key][0]
            agreement = float(np.max(np.abs(np.array(answers[their_numbers]) / numbers - 1)))
            row |= {"octave_seconds": theirs, "ratio": theirs / ours, "largest_difference": agreement}
            row["met"] = row["ratio"] >= target
        return row

    def alone(name: str, ours: float, target: float | None) -> dict[str, Any]:
        row: dict[str, Any] = {"case": name, "seconds": ours}
        return row | ({"target_seconds": target, "met": ours <= target} if target is not None else {})

    return [
        beside(
            f"one class, a {SERVERS}-server station, all N = 1..{JOBS}",
            median_seconds(lambda: convolution(DEMANDS, THINK, rates), 10 * repeats),
            "single",
            curve.throughput,
            "curve",
            300,
        ),
        beside(
            "four classes exact, [10 8 6 12]",
            median_seconds(
                lambda: solve_exactly(FOUR, FOUR_THINK, FOUR_JOBS, np.ones((4, FOUR_JOBS.sum()))), 5 * repeats
            ),
            "four",
            four.throughput,
            "throughput",
            5,
        ),
        alone(
            "approximate, 100 classes x 1000 single-server stations",
            median_seconds(lambda: solve_approximately(*large), repeats),
            0.050,
        ),
        alone(
            "the same, stations of 1, 2, 4 and 16 servers",
            median_seconds(lambda: solve_approximately(*large, servers), repeats),
            0.050,
        ),
        alone(
            "batch of 1000 networks x 20 stations, all N = 1..20",
            median_seconds(lambda: mean_value_analysis(*many, 20), repeats),
            0.020,
        ),
        alone(
            "batch of 1000 networks x 20 stations, all N = 1..100",
            median_seconds(lambda: mean_value_analysis(*many, 100), repeats),
            0.020,
        ),
        alone(
            "batch of 1000 networks x 20 stations, 3 of 4 servers, N = 20",
            median_seconds(lambda: convolution(*many, some), repeats),
            None,
        ),
    ]


def main() -> int:
    """Print the table, or one JSON document, and leave with 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7, help="calls that a median is taken over (default 7)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    rows = measure(options.repeats)
    if options.json:
        json.dump(rows, sys.stdout, indent=1)
        print()
    else:
        for row in rows:
            line = f"{row['case']:<62}{1e3 * row['seconds']:9.3f} ms"
            if "ratio" in row:
                line += f"   octave {1e3 * row['octave_seconds']:8.1f} ms: {row['ratio']:6.0f} times"
                line += f" (target {row['target_ratio']:g}), differing by {row['largest_difference']:.0e}"
            elif "target_seconds" in row:
                line += f"   target {1e3 * row['target_seconds']:g} ms"
            print(line + {True: "  met", False: "  MISSED", None: ""}[row.get("met")])
    return 0 if all(row.get("met", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
