"""The main job of metasched on this host, from the first measured run to a ranked placement, in a minute or two.

A parallel conjugate gradient solver runs at several sizes on one and more processes, under the monitors, while a load
generator comes and goes. From these runs a model is learned; it predicts runs that it has not seen, which are then run;
it ranks what this host has to offer now; and two pictures are drawn. Everything goes through the command line, as a
user would do it: only the plan of the runs is made here.

    python examples/demo.py --output demo-output
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from monitors.host import CpuSensor, LinkSensor

HERE = Path(__file__).parent
APPLICATION = "conjugate_gradient"
#: Seconds that the largest run should take on one idle processor.
LARGEST_RUN = 1.2
#: Seconds after which no more runs are begun, for training and altogether; a slow or busy host makes fewer of them.
TRAINING_ENDS, CHECKS_END = 45, 65
#: Sizes as parts of the largest: learned from, and then predicted, some between those and one beyond.
TRAINING_SIZES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
CHECKED_SIZES = (0.75, 0.95, 0.65, 1.1, 0.85, 0.55)

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

    def metasched(self, *arguments: object, show: bool = False) -> str:
        """Call the command line; return what it prints, or let the user see it."""
        command = [sys.executable, "-m", "metasched", *map(str, arguments)]
        environment = os.environ | {"METASCHED_DB": str(self.output / "metasched.db")}
        if show:
            console.print(f"[dim]$ metasched {' '.join(command[3:])}[/]", soft_wrap=True)
        done = subprocess.run(
            command, env=environment, text=True, stdout=None if show else subprocess.PIPE, stderr=subprocess.PIPE
        )
        if done.returncode:
            raise StepError(f"metasched {arguments[0]} left with status {done.returncode}: {done.stderr.strip()}")
        return done.stdout or ""

    def answer(self, *arguments: object) -> Any:
        """Call the command line with ``--json``, which goes before a command that is to be run."""
        verb, *rest = arguments
        return json.loads(self.metasched(verb, "--json", *rest))

    def run(self, size: int, processors: int, phase: str) -> Any:
        """One run under the monitors, which stores it."""
        what = ("--application", APPLICATION, "--problem-size", size, "--processors", processors, "--phase", phase)
        return self.answer("run", *what, "--", *solver(size, processors))


def solver(size: int, processors: int) -> tuple[str, ...]:
    """The command of one run."""
    script = str(HERE / "conjugate_gradient.py")
    return (sys.executable, script, "--problem-size", str(size), "--processors", str(processors))


def largest_size() -> int:
    """The size that takes about ``LARGEST_RUN`` here, from one short run; the solver's time grows as the cube."""
    trial = 240
    said = subprocess.run(solver(trial, 1), capture_output=True, text=True, check=True).stdout.split()
    return round(float(np.clip(trial * (LARGEST_RUN / float(said[-1])) ** (1 / 3), 200, 900)) / 10) * 10


@contextmanager
def load(seed: int) -> Iterator[None]:
    """The load generator, as long as this lasts."""
    generator = subprocess.Popen([sys.executable, str(HERE / "load.py"), "--seed", str(seed)])
    try:
        yield
    finally:
        generator.terminate()
        generator.wait()


def look(seconds: float = 1.0) -> tuple[np.ndarray, float]:
    """What this host has to spare right now: CPU of each processor, the best first, and bandwidth (Mbit/s)."""
    cpu, link = CpuSensor(), LinkSensor()
    time.sleep(seconds)
    return cpu.read(), float(link.read().min())


def train(demo: Demo, largest: int) -> list[Any]:
    """Run the solver at all sizes on all numbers of processes, in random order."""
    plan = [(round(part * largest), count) for part in TRAINING_SIZES for count in demo.counts]
    random.Random(demo.seed).shuffle(plan)
    runs = []
    for number, (size, count) in enumerate(plan, start=1):
        if demo.spent() > TRAINING_ENDS:
            console.print(f"  this host is slow or busy today: {len(runs)} of {len(plan)} runs must do")
            break
        done = demo.run(size, count, "train")
        runs.append(done)
        console.print(f"  {number:2}/{len(plan)}  {described(done)}")
    return runs


def described(run: Any) -> str:
    """One line about a run."""
    return (
        f"N {run['problem_size']:4.0f}  P {run['processors']}  {run['execution_time']:6.3f} s   "
        f"CPU {run['min_avg_avail_cpu']:.2f}  {run['min_avg_avail_bw']:6.0f} Mbit/s available"
    )


def check(demo: Demo, model: Path, largest: int) -> list[tuple[Any, Any]]:
    """Predict runs that were not seen, with the loads of just before, then run them."""
    table = Table(title="predicted before the run, then run", title_justify="left")
    for heading in ("N", "P", "CPU before", "predicted s", "90 % interval", "CPU met", "took s", "error", "held"):
        table.add_column(heading, justify="right")
    checked = []
    for number, part in enumerate(CHECKED_SIZES):
        if checked and demo.spent() > CHECKS_END:
            break
        size, count = round(part * largest), demo.counts[number % len(demo.counts)]
        cpu, bandwidth = look()
        share = cpu[min(count, len(cpu)) - 1]
        conditions = ("--cpu", f"{share:.3f}", "--bandwidth", f"{bandwidth:.0f}")
        said = demo.answer("predict", model, "--problem-size", size, "--processors", count, *conditions)
        done = demo.run(size, count, "predict")
        checked.append((said, done))
        low, high = said["interval"]["low"], said["interval"]["high"]
        table.add_row(
            str(size),
            str(count),
            f"{share:.2f}",
            f"{said['execution_time']:.3f}",
            f"{low:.3f} - {high:.3f}",
            f"{done['min_avg_avail_cpu']:.2f}",
            f"{done['execution_time']:.3f}",
            f"{error(said, done):.0f} %",
            "yes" if low <= done["execution_time"] <= high else "no",
        )
    console.print(table)
    return checked


def error(said: Any, done: Any) -> float:
    """Percentage prediction error."""
    return 100 * abs(said["execution_time"] - done["execution_time"]) / done["execution_time"]


def describe_host(demo: Demo, target: Path) -> None:
    """Write this host as a cluster whose nodes are its processors, each with what it has to spare now."""
    cpu, bandwidth = look()
    shares = ", ".join(f"{share:.3f}" for share in cpu)
    names = f"processor[0-{len(cpu) - 1}]" if len(cpu) > 1 else "processor0"
    target.write_text(
        f'[[cluster]]\nname = "this-host"\n\n[[cluster.nodes]]\nnames = "{names}"\n'
        f"available_cpu = [{shares}]\navailable_bandwidth = {bandwidth:.1f}\n",
        encoding="utf-8",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Do it all, and say what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("demo-output"), help="folder for the files, made anew")
    parser.add_argument("--seed", type=int, default=7, help="of the load and of the order of the runs")
    options = parser.parse_args(arguments)
    output = options.output.resolve()
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
    output = demo.output
    runs_csv, model, clusters = output / "runs.csv", output / "model.json", output / "clusters.toml"
    pictures = (output / "predicted.png", output / "scaling.png")
    largest = largest_size()

    with load(demo.seed):
        console.rule("1. measured runs, under a load that comes and goes", align="left")
        runs = train(demo, largest)
        console.rule("2. the model that they support", align="left")
        demo.metasched("runs", "-o", runs_csv)
        demo.metasched("fit", runs_csv, "-o", model, "--top", 5, show=True)
        console.rule("3. runs that it has not seen", align="left")
        checked = check(demo, model, largest)
        console.rule("4. where to run next", align="left")
        describe_host(demo, clusters)
        what = ("--application", APPLICATION, "--problem-size", largest, "--clusters", clusters, "--model", model)
        demo.metasched("rank", *what, "--top", 5, show=True)
    demo.metasched("runs", "-o", runs_csv)

    console.rule("5. judged with the loads that the runs met, and drawn", align="left")
    judged = demo.answer("evaluate", runs_csv)
    demo.metasched("plot", "predicted", runs_csv, "-o", pictures[0], show=True)
    share = float(np.median([run["min_avg_avail_cpu"] for run in runs]))
    bandwidth = float(np.median([run["min_avg_avail_bw"] for run in runs]))
    conditions = ("--problem-size", largest, "--cpu", f"{share:.3f}", "--bandwidth", f"{bandwidth:.0f}")
    demo.metasched("plot", "scaling", model, "-o", pictures[1], *conditions, "--processors", demo.counts[-1], show=True)

    console.rule("summary", align="left")
    summarise(demo, runs, checked, judged)


def summarise(demo: Demo, runs: list[Any], checked: list[tuple[Any, Any]], judged: Any) -> None:
    """What was measured, and where the files are."""
    shares = [run["min_avg_avail_cpu"] for run in runs]
    rates = [run["min_avg_avail_bw"] for run in runs]
    before = [error(said, done) for said, done in checked]
    held = sum(said["interval"]["low"] <= done["execution_time"] <= said["interval"]["high"] for said, done in checked)
    for line in (
        f"{len(runs)} runs learned on {demo.processors} processors: CPU {min(shares):.2f} to {max(shares):.2f}, "
        f"bandwidth {min(rates):.0f} to {max(rates):.0f} Mbit/s available",
        f"{len(checked)} runs predicted beforehand, with the loads of just before: mean error {np.mean(before):.1f} %, "
        f"{held} of {len(checked)} intervals held",
        f"the same runs with the loads that they met: mean error {judged['ppe_mean']:.1f} %, "
        f"{round(judged['interval_coverage'] * judged['predictions'])} of {judged['predictions']} intervals held",
        f"{demo.spent():.0f} s in all; files in {demo.output}:",
        "  " + "  ".join(name for name in sorted(os.listdir(demo.output)) if not name.endswith(("-shm", "-wal"))),
    ):
        console.print(line, markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
