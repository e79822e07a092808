"""The simulator beside SMPI: ``python -m benchmarks.simulation`` and ``--speed``.

Nodes of one core at 1 Gflop/s, 50 W idle and 100 W at work, each on its own link of 1 Gbit/s and 50 us. The blocks of
the network are measured on SMPI by the micro-benchmark of ``metasched hardware measure`` and fitted as ``calibrate``
does, with sizes and numbers of nodes of their own; then each application runs on both. Energy is that of the plugin
host_energy.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from metasched.blocks.calibration import robust
from metasched.blocks.entry import Entry, Kind, Quantity
from metasched.records import InputError
from metasched.simulation.outcome import simulate
from metasched.simulation.simgrid import platform_xml
from metasched.simulation.system import Network, Nodes, System
from metasched.store.files.measurements import read_measurements
from metasched.store.files.simulation import read_application
from metasched.tracing.compiled import compiled
from monitors.sensors.blocks import OPTIONS, SOURCE, measure
from monitors.sensors.processor_time import seconds_of_children

HERE = Path(__file__).resolve().parent
#: Applications with the labels of their processes and the names of their variables, as the C programs take them.
APPLICATIONS = {
    "master-slave": (("master", "slave"), ("rounds", "operations", "bytes")),
    "stencil": (("cell",), ("iterations", "operations", "bytes")),
    "merge-sort": (("sorter",), ("items", "compare", "merge")),
    "all-to-all": (("part",), ("iterations", "operations", "bytes")),
}
PROCESSES = (8, 16, 32, 64, 128, 256)
#: What is measured: numbers of nodes, and bytes.
NODES, SIZES = (2, 4, 8, 16, 32, 64), tuple(2**power for power in range(23))
#: Ranks and halo exchanges of the comparison of speed; cells and iterations of what the simulator must do alone.
RANKS, EXCHANGES = 1024, 50
CELLS, ITERATIONS = 100_000, 1000
#: Runs of the simulator whose median counts.
REPEATS = 5
#: Times that a run of SMPI is tried again.
RETRIES = 2
SMPI = ("--cfg=smpi/simulate-computation:no", "--cfg=plugin:host_energy")
_JOULES = re.compile(r"Energy consumption of host n-(\d+): ([0-9.]+) Joules")
app = typer.Typer(add_completion=False)


def described(network: Entry, count: int) -> System:
    """The system, with one network; each node has a slot for any one process."""
    given = {"speed": (1.0, "Gflop/s"), "cores": (1.0, "1"), "idle_power": (50.0, "W"), "tdp": (100.0, "W")}
    values = {name: Quantity(value, unit, "made") for name, (value, unit) in given.items()}
    device = Entry("core", Kind.cpu, "one core", values)
    one = Nodes("n", count, "lan", device, {"slave": 1, "cell": 1, "sorter": 1, "part": 1})
    first = replace(one, name="m", count=1, slots={"master": 1})
    return System("nodes of one core", (Network("lan", network),), (first, one), waiting=False)


def link() -> Entry:
    """What the network is made of."""
    given = {"bandwidth": (1.0, "Gbit/s"), "latency": (50.0, "us")}
    return Entry("lan", Kind.link, "", {name: Quantity(value, unit, "made") for name, (value, unit) in given.items()})


class Smpi:
    """SMPI on the same nodes.

    Parameters
    ----------
    folder : that takes platform, hosts and program.
    count : of the nodes.
    """

    def __init__(self, folder: Path, count: int) -> None:
        plain = described(link(), count)
        (folder / "platform.xml").write_text(platform_xml(replace(plain, nodes=plain.nodes[1:])))
        (folder / "hosts").write_text("".join(f"n-{each}\n" for each in range(count)))
        command = ["smpicc", "-O2", str(HERE / "programs.c"), "-o", str(folder / "programs"), "-lm"]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        self._folder = folder

    @property
    def launcher(self) -> list[str]:
        """What starts an MPI program there, without the number of processes."""
        files = ("-platform", str(self._folder / "platform.xml"), "-hostfile", str(self._folder / "hosts"))
        return ["smpirun", *files, *SMPI]

    def run(self, name: str, processes: int, values: list[float]) -> tuple[float, float, float]:
        """Simulated time (s) and energy (J) of an application, and the processor time that took (s)."""
        words = [*self.launcher, "-np", str(processes), str(self._folder / "programs"), name, *map(repr, values)]
        begin = seconds_of_children()
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=3600)
        if done.returncode:
            raise InputError(f"{name} with {processes} processes fails on SMPI: {done.stderr[-300:]}")
        took = seconds_of_children() - begin
        end = max(float(each) for each in re.findall(r"^\[([0-9.]+)\]", done.stderr + done.stdout, re.MULTILINE))
        joules = {int(host): float(energy) for host, energy in _JOULES.findall(done.stderr + done.stdout)}
        return end, sum(joules[host] for host in range(processes)), took


def calibrated(smpi: Smpi, folder: Path) -> Entry:
    """The network as the micro-benchmark finds it on SMPI."""
    rows: list[str] = []
    for count in NODES:
        rows += _measured(smpi, count)[bool(rows) :]
    (folder / "measured.csv").write_text("\n".join(rows) + "\n")
    return robust.fit(read_measurements(folder / "measured.csv"), "lan", "SMPI")


def _measured(smpi: Smpi, count: int) -> list[str]:
    """Lines of what is measured with so many nodes; tried again where SimGrid gives up, as it does now and then."""
    program = compiled(SOURCE, "smpicc", OPTIONS)
    for _ in range(RETRIES):
        with suppress(ValueError):
            return measure(smpi.launcher, program, [count], SIZES, 1).splitlines()
    return measure(smpi.launcher, program, [count], SIZES, 1).splitlines()


def ours(name: str, network: Entry, processes: int) -> tuple[float, float]:
    """Time (s) and energy (J) that the simulator tells."""
    labels, _ = APPLICATIONS[name]
    counts = {"master": 1, "slave": processes - 1} if "master" in labels else {labels[0]: processes}
    found = simulate(described(network, processes), read_application(HERE / "applications" / f"{name}.app"), counts)
    return found.execution_time, found.energy


def compared(folder: Path) -> Table:
    """Times and energies of every application, and how far they are off."""
    smpi = Smpi(folder, max(PROCESSES))
    network = calibrated(smpi, folder)
    table = Table(title="the simulator beside SMPI")
    for heading in ("application", "processes", "SMPI s", "ours s", "off", "SMPI J", "ours J", "off"):
        table.add_column(heading, justify="left" if heading == "application" else "right")
    errors = []
    for name, (_, variables) in APPLICATIONS.items():
        known = read_application(HERE / "applications" / f"{name}.app").variables
        for processes in PROCESSES:
            seconds, joules, _ = smpi.run(name, processes, [float(known[each]) for each in variables])
            simulated = ours(name, network, processes)
            off = [100.0 * (mine / theirs - 1.0) for mine, theirs in zip(simulated, (seconds, joules), strict=True)]
            errors.append(off)
            table.add_row(
                name, str(processes), f"{seconds:.4f}", f"{simulated[0]:.4f}", f"{off[0]:+.1f} %", f"{joules:.1f}",
                f"{simulated[1]:.1f}", f"{off[1]:+.1f} %",
            )  # fmt: skip
    away = np.abs(errors)
    table.add_row("mean", "", "", "", f"{away[:, 0].mean():.1f} %", "", "", f"{away[:, 1].mean():.1f} %")
    table.add_row("worst", "", "", "", f"{away[:, 0].max():.1f} %", "", "", f"{away[:, 1].max():.1f} %")
    return table


def speeds(folder: Path) -> Table:
    """Processor time of both for the stencil on many ranks, and of the simulator for many more.

    Both keep one processor busy; processor time depends less than elapsed time on what else runs on the machine.
    """
    name = "stencil"
    smpi, text = Smpi(folder, RANKS), HERE / "applications" / f"{name}.app"
    known = read_application(text).variables
    values = [float(EXCHANGES), float(known["operations"]), float(known["bytes"])]
    _, _, theirs = smpi.run(name, RANKS, values)
    mine = []
    for cells, iterations in ((RANKS, EXCHANGES), (CELLS, ITERATIONS)):
        took = []
        for _ in range(REPEATS):
            begin = time.process_time()
            simulate(described(link(), cells), read_application(text), {"cell": cells}, {"iterations": iterations})
            took.append(time.process_time() - begin)
        mine.append(float(np.median(took)))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    table = Table("what", "processor seconds", "", title="speed")
    table.add_row(f"SMPI, {RANKS} ranks, {EXCHANGES} halo exchanges", f"{theirs:.2f}", "")
    table.add_row("the simulator, the same", f"{mine[0]:.4f}", f"{theirs / mine[0]:.0f} times as fast")
    table.add_row(f"the simulator, {CELLS} ranks, {ITERATIONS} iterations", f"{mine[1]:.2f}", f"{memory:.0f} MB")
    return table


@app.command()
def main(speed: Annotated[bool, typer.Option("--speed", help="Compare the speed instead.")] = False) -> None:
    """Compare the simulator with SMPI."""
    if not shutil.which("smpirun"):
        raise InputError("SimGrid with SMPI is not installed; on Debian: apt-get install libsimgrid-dev")
    with tempfile.TemporaryDirectory() as name:
        Console(width=120).print(speeds(Path(name)) if speed else compared(Path(name)))


if __name__ == "__main__":
    try:
        app()
    except InputError as error:
        sys.exit(f"error: {error}")
