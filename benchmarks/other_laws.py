"""``python -m benchmarks.other_laws``: how good a model is of programs that take times unlike those of the testbed.

Each campaign has a law of its own: the growth of computation and communication with N, the collective operation, the
effect of available CPU and bandwidth, the noise (2 to 10 %), and one of :data:`KINDS`, such as a serial part, are drawn
at random. Exponents of CPU and bandwidth go down to 0.6, as of programs that wait for memory or overlap their messages.
No choice in any model was based on these laws. Nothing is written; the table is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.learning_curve import START, STRETCHES
from metasched.predictors.judging.conditions import observed
from metasched.predictors.judging.evaluation import Evaluation, evaluate
from metasched.predictors.judging.groups import groups
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run

#: Training runs, and runs of a campaign that are predicted.
COUNTS, PREDICTED = (3, 5, 8, 12, 20, 40), 40
#: Processors that a campaign runs on.
LADDERS = [(1, 2, 4, 8, 16), (4, 8, 16, 32, 64), (16, 32, 64, 128), (1, 2, 3, 4, 6, 8), (8, 27, 64, 125)]
#: Share of the time that is communication by P, as of a ring, a tree, an all-to-all and a halo that shrinks.
COLLECTIVES: list[Callable[[float], float]] = [
    lambda p: 2.0 * (1.0 - 1.0 / p),
    lambda p: float(np.log2(p)),
    lambda p: p - 1.0,
    lambda p: 2.0 * (1.0 - 1.0 / p) / p**0.5,
]
#: What computation has besides work that is divided evenly.
KINDS = ["nothing", "serial part", "plateau", "cache", "two loops", "imbalance"]


@dataclass(frozen=True)
class Law:
    """How long the runs of one program take, on many nodes alike.

    Parameters
    ----------
    kind : of :data:`KINDS`.
    ladder : numbers of processors.
    size, ratio : smallest N, and largest over smallest.
    growth, volume : exponents of N, of computation and communication.
    cpu, bandwidth : exponents of the loads.
    share : communication over computation at the middle of the sizes and processors.
    collective : of :data:`COLLECTIVES`.
    noise : standard deviation of log time.
    link : bandwidth of a free link (Mbit/s).
    """

    kind: str
    ladder: tuple[int, ...]
    size: float
    ratio: float
    growth: float
    volume: float
    cpu: float
    bandwidth: float
    share: float
    collective: Callable[[float], float]
    noise: float
    link: float

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Law:
        """Any law."""
        growth = rng.choice([0.8, 1.0, 1.5, 2.0, 2.5, 3.0])
        return cls(
            kind=KINDS[rng.integers(len(KINDS))],
            ladder=LADDERS[rng.integers(len(LADDERS))],
            size=10.0 ** rng.uniform(1.5, 6.0),
            ratio=rng.choice([3.0, 8.0, 30.0]),
            growth=growth,
            volume=growth * rng.choice([0.3, 0.5, 0.67, 1.0]),
            cpu=rng.choice([0.6, 0.85, 1.0]),
            bandwidth=rng.choice([0.6, 0.9, 1.0]),
            share=10.0 ** rng.uniform(-2.0, 0.0),
            collective=COLLECTIVES[rng.integers(len(COLLECTIVES))],
            noise=rng.uniform(0.02, 0.1),
            link=rng.choice([90.0, 900.0, 9000.0]),
        )

    def time(self, size: float, processors: int, cpu: float, bandwidth: float) -> float:
        """Without noise (s), 10 s at the middle of the sizes and processors, idle."""
        middle = float(np.exp(np.mean(np.log(self.ladder))))
        x, p = size / (self.size * self.ratio**0.5), float(processors)
        work, even = x**self.growth, middle / p
        computation = {
            "nothing": work * even,
            "serial part": work * (0.95 * even + 0.05),
            "plateau": work * max(even, 0.8),
            "cache": work * even * (1.0 + 0.4 / (1.0 + (x * even) ** -4.0)),
            "two loops": 0.6 * work * even + 0.4 * x ** (0.5 * self.growth) * even**0.8,
            "imbalance": work * even * (1.0 + 0.08 * np.log2(p)),
        }[self.kind]
        sent = self.share * x**self.volume * self.collective(p) / self.collective(middle)
        return float(10.0 * (computation / cpu**self.cpu + sent * (self.link / bandwidth) ** self.bandwidth))

    def campaign(self, rng: np.random.Generator) -> list[Run]:
        """Runs under loads that come and go: those to be trained with, and :data:`PREDICTED` more."""
        runs = []
        for place in range(max(COUNTS) + PREDICTED):
            size = self.size * self.ratio ** rng.uniform()
            processors = int(rng.choice(self.ladder))
            cpu = float(np.clip(1.0 - rng.exponential(0.2), 0.15, 1.0)) if rng.uniform() < 0.8 else 1.0
            bandwidth = float(self.link * np.clip(1.1 - rng.exponential(0.35), 0.1, 1.0))
            time = self.time(size, processors, cpu, bandwidth) * float(np.exp(self.noise * rng.normal()))
            phase = "train" if place < max(COUNTS) else "predict"
            runs.append(Run("made", "nodes", size, processors, cpu, bandwidth, time, float(place), phase=phase))
        return runs


def judge(seed: int) -> list[dict[str, float]]:
    """The summaries of one campaign: for each of :data:`COUNTS` without learning, then of each stretch with it."""
    rng = np.random.default_rng(seed)
    runs = Law.drawn(rng).campaign(rng)
    with threadpool_limits(limits=1):
        found = [
            evaluate(lambda _: RobustPredictor(), groups(runs, count, seed), observed, learning=False).summary()
            for count in COUNTS
        ]
        learning = evaluate(lambda _: RobustPredictor(), groups(runs, START, seed), observed).outcomes
    return found + [Evaluation(learning[begin:end]).summary() for begin, end in STRETCHES]


def main() -> None:
    """Judge, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=60, help="laws drawn")
    parser.add_argument("--seed", type=int, default=1000, help="of the first law")
    arguments = parser.parse_args()
    console = Console(stderr=True)
    seeds = range(arguments.seed, arguments.seed + arguments.campaigns)
    judged = [judge(seed) for seed in track(seeds, console=console, disable=not console.is_terminal)]
    table = Table("runs learned", *(f"{what}" for what in ("error (%)", "held (%)", "width")), box=None)
    rows = [f"{count}" for count in COUNTS] + [f"{START}, predictions {begin + 1} to {end}" for begin, end in STRETCHES]
    for row, found in zip(rows, zip(*judged, strict=True), strict=True):
        error, held = (np.mean([one[key] for one in found]) for key in ("ppe_mean", "interval_coverage"))
        width = np.median([one["interval_width_median"] for one in found])
        table.add_row(row, f"{error:.1f}", f"{100.0 * held:.0f}", f"{width:.2f}")
    Console(width=80).print(table)


if __name__ == "__main__":
    main()
