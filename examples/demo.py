"""The main job of metasched on this host, from the first measured run to a ranked placement, in a minute and a half.

A parallel conjugate gradient solver runs at several sizes on one and more processes, under the monitors, while a load
generator comes and goes. From these runs a model is learned; it predicts runs that it has not seen, which are then run
and learned too; it ranks what this host has to offer now, which is tried at once; and two pictures are drawn. What a
user does once goes through the command line; the many runs are made and predicted through the Python package.

    python examples/demo.py --output demo-output
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import metasched
from metasched import cli
from metasched.predictors.load_doubt import LoadDoubt, predict_one
from metasched.records import Prediction, Run
from metasched.schedulers import local
from metasched.store import spool
from monitors.sampling import Sampler
from monitors.sensors.cpu import ProbedCpu
from monitors.sensors.network.corrected import LOOPBACK, CorrectedLink

HERE = Path(__file__).parent
APPLICATION = "conjugate_gradient"
#: Seconds that the largest run should take to solve on one processor as this host is now: much longer than it takes to
#: start, which differs from run to run.
LARGEST_RUN = 1.5
#: Runs to learn from and to predict: at least so many, and more of them until so many seconds have passed.
TRAINING, TRAINING_ENDS = 10, 30
CHECKS, CHECKS_END = 12, 62
#: Sizes as parts of the largest: learned from, and then predicted, some between those and some beyond.
TRAINING_SIZES = (0.5, 0.9, 0.7, 1.0, 0.6, 0.8)
CHECKED_SIZES = (0.75, 0.95, 0.65, 1.1, 0.85, 0.55, 0.8, 1.05, 0.7, 0.9, 0.6, 1.0, 0.78, 0.97, 0.63, 0.88)
#: Seconds over which the load is measured before a run, seconds between two readings of the sensors, which see only at
#: a reading who is ready to run, and how many measurements its correction remembers.
LOOK, EVERY, REMEMBERED = 0.4, 0.05, 12

# A pipe or a file has no width of its own, and tables are not to be folded for its sake.
if not sys.stdout.isatty():
    os.environ.setdefault("COLUMNS", "120")
console = Console(highlight=False)


class StepError(Exception):
    """A step of the demo failed; the message says which and how."""


@dataclass(frozen=True)
class Demo:
    """Where the demo keeps its files, and what it runs on."""

    output: Path
    seed: int
    processors: int
    begin: float

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of processes to try: up to all processors, and once more than there are."""
        return tuple(2**k for k in range(4) if 2**k <= 2 * self.processors and 2**k <= 4)

    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.begin

    def metasched(self, *words: object) -> None:
        """Call the command line, in this process: a new one would load all libraries again, seconds on a busy host."""
        arguments = [str(word) for word in words]
        console.print(f"[dim]$ metasched {shlex.join(arguments)}[/]", soft_wrap=True)
        try:
            cli.main(arguments)
        except SystemExit as ended:
            if ended.code:
                raise StepError(f"metasched {arguments[0]} failed with exit status {ended.code}") from None

    def run(self, size: int, processors: int, phase: str) -> Run:
        """One run under the monitors, which is stored: ``metasched run``, without starting the program again."""
        finished = local.run(
            solver(size, processors),
            application=APPLICATION,
            problem_size=size,
            processors=processors,
            phase=phase,
            interval=0.1,
            stdout=subprocess.DEVNULL,
        )
        problems = (*finished.warnings, *spool.keep(finished.record, self.output / "metasched.db"))
        if problems or finished.record.exit_status:
            raise StepError("; ".join(problems) or f"the solver left with status {finished.record.exit_status}")
        return finished.record.run


@dataclass
class Outlook:
    """The loads that the next run should meet: the kernel's counters now, corrected by their errors so far.

    As in the Network Weather Service, where probes correct passive sensors; here the runs before are the probes.
    """

    #: By number of processes: logarithms of what runs met over what was seen before them.
    missed: dict[int, list[float]] = field(default_factory=dict)
    seen: dict[int, float] = field(default_factory=dict)
    bandwidth: float = math.nan

    def look(self) -> None:
        """Measure what this host has to spare now: CPU of 1, 2, ... processors, and bandwidth (Mbit/s)."""
        counts = range(1, len(os.sched_getaffinity(0)) + 1)
        link = CorrectedLink(LOOPBACK)
        with Sampler({str(count): ProbedCpu(count, probing=False) for count in counts}, EVERY) as sampler:
            time.sleep(LOOK)
        self.seen, self.bandwidth = {count: sampler.averages[str(count)].mean for count in counts}, link.read()

    def cpu(self, processes: int) -> float:
        """The share of a processor that the slowest of so many processes should get."""
        seen = self.seen[min(processes, max(self.seen))]
        return min(seen * math.exp(np.median(self.missed.get(processes, [0.0]))), 1.0)

    def doubt(self, processes: int) -> LoadDoubt:
        """The 90 % interval of that share, as factors of it, from these few runs."""
        missed = np.array(self.missed.get(processes, ()))
        spread = math.hypot(0.1, np.std(missed, ddof=1)) if missed.size > 2 else 0.3
        return LoadDoubt(np.exp([-1.645 * spread, 1.645 * spread]), np.ones(2))

    def met(self, run: Run) -> None:
        """Learn from the loads of a run that began right after the measurement."""
        seen = self.seen[min(run.processors, max(self.seen))]
        kept = self.missed.setdefault(run.processors, [])
        kept[:] = [*kept, math.log(run.min_avg_avail_cpu / seen)][-REMEMBERED:]


def solver(size: int, processors: int) -> tuple[str, ...]:
    """The command of one run."""
    script = str(HERE / "conjugate_gradient.py")
    return (sys.executable, script, "--problem-size", str(size), "--processors", str(processors))


def largest_size() -> int:
    """The size that takes about ``LARGEST_RUN`` here, from one short run; the solver's time grows as the cube."""
    trial = 240
    said = subprocess.run(solver(trial, 1), capture_output=True, text=True, check=True).stdout.split()
    return round(float(np.clip(trial * (LARGEST_RUN / float(said[-1])) ** (1 / 3), 260, 900)) / 10) * 10


@contextmanager
def load(seed: int) -> Iterator[None]:
    """The load generator, as long as this lasts."""
    generator = subprocess.Popen([sys.executable, str(HERE / "load.py"), "--seed", str(seed)])
    try:
        yield
    finally:
        generator.terminate()
        generator.wait()


def train(demo: Demo, outlook: Outlook, largest: int) -> list[Run]:
    """Run the solver at all sizes on all numbers of processes, so that whatever time allows is spread over them."""
    sizes = [round(part * largest) for part in TRAINING_SIZES]
    plan = [(sizes[(2 * turn + row) % 6], count) for row in range(6) for turn, count in enumerate(demo.counts)]
    runs: list[Run] = []
    for number, (size, count) in enumerate(plan, start=1):
        if len(runs) >= TRAINING and demo.spent() > TRAINING_ENDS:
            console.print(f"  this host is slow or busy: training ends after {len(runs)} of {len(plan)} runs")
            break
        outlook.look()
        runs.append(demo.run(size, count, "train"))
        outlook.met(runs[-1])
        console.print(f"  {number:2}/{len(plan)}  {described(runs[-1])}")
    return runs


def described(run: Run) -> str:
    """One line about a run."""
    return (
        f"N {run.problem_size:4.0f}  P {run.processors}  {run.execution_time:6.3f} s   "
        f"CPU {run.min_avg_avail_cpu:.2f}  {run.min_avg_avail_bw:6.0f} Mbit/s available"
    )


@dataclass(frozen=True)
class Checked:
    """A run that was predicted beforehand, and what would have been said had the loads been known."""

    said: Prediction
    knowing: Prediction
    run: Run


def check(demo: Demo, outlook: Outlook, predictor: Any, largest: int) -> list[Checked]:
    """Predict runs that were not seen, with the loads of just before; then run them, and learn them."""
    console.print("     N  P   CPU expected   predicted   90% interval         CPU met     took   error   held")
    usual = [count for count in demo.counts if count <= demo.processors]
    # Nobody who may choose starts more processes than there are processors: such runs are predicted too, but seldom.
    counts = [*usual * 2, demo.counts[-1]]
    checked: list[Checked] = []
    for number, part in enumerate(CHECKED_SIZES):
        if len(checked) >= CHECKS and demo.spent() > CHECKS_END:
            break
        size, count = round(part * largest), counts[number % len(counts)]
        outlook.look()
        cpu = outlook.cpu(count)
        said = predict_one(predictor, size, count, cpu, outlook.bandwidth, 0.9, outlook.doubt(count))
        run = demo.run(size, count, "predict")
        checked.append(Checked(said, predictor.predict(run.request), run))
        outlook.met(run)
        predictor.learn(run)
        console.print(
            f"  {size:4}  {count}           {cpu:.2f}   {said.execution_time:7.3f} s   "
            f"{said.interval.low:6.3f} to {said.interval.high:6.3f} s      {run.min_avg_avail_cpu:.2f}  "
            f"{run.execution_time:6.3f} s   {error(said, run):3.0f} %   {'yes' if held(said, run) else 'no'}"
        )
    predictor.settle()
    return checked


def error(said: Prediction, run: Run) -> float:
    """Percentage prediction error."""
    return 100 * abs(said.execution_time - run.execution_time) / run.execution_time


def held(said: Prediction, run: Run) -> bool:
    """Whether the run took a time within the interval."""
    return said.interval.low <= run.execution_time <= said.interval.high


def describe_host(outlook: Outlook, target: Path) -> None:
    """Write this host as a cluster whose nodes are its processors, each with what it has to spare now."""
    outlook.look()
    cpu = np.minimum.accumulate([outlook.cpu(count) for count in outlook.seen])
    shares = ", ".join(f"{share:.3f}" for share in cpu)
    names = f"processor[0-{len(cpu) - 1}]" if len(cpu) > 1 else "processor0"
    target.write_text(
        f'[[cluster]]\nname = "this-host"\n\n[[cluster.nodes]]\nnames = "{names}"\n'
        f"available_cpu = [{shares}]\navailable_bandwidth = {outlook.bandwidth:.1f}\n",
        encoding="utf-8",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it all, and say what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--output", type=Path, default=Path("demo-output"), help="folder for the files, replaced if it exists"
    )
    parser.add_argument("--seed", type=int, default=7, help="of the load and of the order of the runs")
    options = parser.parse_args(arguments)
    output = options.output.resolve()
    if output.is_relative_to(Path.cwd()):
        output = output.relative_to(Path.cwd())
    if output.exists() and not (output / "metasched.db").exists() and any(output.iterdir()):
        parser.error(f"--output {options.output} holds other files, expected a new folder or that of an earlier demo")
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    demo = Demo(output, options.seed, len(os.sched_getaffinity(0)), time.monotonic())
    try:
        show(demo)
    except StepError as problem:
        console.print(f"demo: {problem}", markup=False, soft_wrap=True)
        return 1
    return 0


def show(demo: Demo) -> None:
    """The steps, one after the other."""
    output, outlook = demo.output, Outlook()
    runs_csv, model, clusters = output / "runs.csv", output / "model.json", output / "clusters.toml"
    largest = largest_size()

    with load(demo.seed):
        console.rule("1. measured runs, under a load that comes and goes", align="left")
        runs = train(demo, outlook, largest)
        console.rule("2. the model that they support", align="left")
        demo.metasched("runs", "--db", output / "metasched.db", "-o", runs_csv)
        demo.metasched("fit", runs_csv, "-o", model, "--top", 3)
        console.rule("3. runs that it has not seen: predicted, then made, then learned", align="left")
        predictor = metasched.read_model(model)
        checked = check(demo, outlook, predictor, largest)
        metasched.write_model(model, predictor)
        console.rule("4. where to run next", align="left")
        describe_host(outlook, clusters)
        what = ("--application", APPLICATION, "--problem-size", largest, "--clusters", clusters, "--model", model)
        demo.metasched("rank", *what, "--top", 5)
        for count in outlook.seen:
            console.print(f"  tried right away:  {described(demo.run(largest, count, 'predict'))}")

    console.rule("5. pictures", align="left")
    metasched.write_runs(runs_csv, (*runs, *(each.run for each in checked)))
    share = float(np.median([run.min_avg_avail_cpu for run in runs]))
    bandwidth = float(np.median([run.min_avg_avail_bw for run in runs]))
    conditions = ("--problem-size", largest, "--cpu", f"{share:.2f}", "--bandwidth", f"{bandwidth:.0f}")
    demo.metasched("plot", "predicted", runs_csv, "-o", output / "predicted.png")
    demo.metasched("plot", "scaling", model, "-o", output / "scaling.png", *conditions, "--processors", demo.counts[-1])

    console.rule("summary", align="left")
    summarise(demo, runs, checked)


def summarise(demo: Demo, runs: Sequence[Run], checked: Sequence[Checked]) -> None:
    """What was measured, and where the files are."""
    shares = [run.min_avg_avail_cpu for run in (*runs, *(each.run for each in checked))]
    width = np.median([each.said.interval.high / each.said.interval.low for each in checked])
    before, knowing = (
        f"mean error {np.mean([error(said, run) for said, run in pairs]):.1f} %, "
        f"{sum(held(said, run) for said, run in pairs)} of {len(pairs)} times within their intervals"
        for pairs in ([(each.said, each.run) for each in checked], [(each.knowing, each.run) for each in checked])
    )
    for line in (
        f"{len(runs)} runs learned on {demo.processors} processors, of which each process got {min(shares):.2f} to "
        f"{max(shares):.2f}",
        f"{len(checked)} runs predicted from the load just before: {before}, "
        f"whose upper end is {width:.2f} times the lower (median)",
        f"the same runs predicted from the load that they met: {knowing}",
        f"{demo.spent():.0f} s in total; files in {demo.output}:",
        "  " + "  ".join(name for name in sorted(os.listdir(demo.output)) if not name.endswith(("-shm", "-wal"))),
    ):
        console.print(line, markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
