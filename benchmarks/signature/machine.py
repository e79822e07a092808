"""The simulated cluster that judged programs run on, in SimGrid's words, and runs of programs on it."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from metasched.records import InputError
from metasched.signature.rules.expanding import lines
from metasched.signature.traces.trace import Trace
from metasched.store.files.ti_traces import write_ti_trace

HERE = Path(__file__).resolve().parent
#: What the processors and links can do; one algorithm for each collective operation, so that none switches with n.
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
 <config>
  <prop id="smpi/allreduce" value="rdb"/>
  <prop id="smpi/alltoall" value="ring"/>
  <prop id="smpi/barrier" value="ompi_recursivedoubling"/>
  <prop id="smpi/bcast" value="binomial_tree"/>
  <prop id="smpi/reduce" value="binomial"/>
  <prop id="smpi/host-speed" value="1Gf"/>
 </config>
 <cluster id="c" prefix="h" suffix="" radical="0-{last}" speed="1Gf" bw="1250MBps" lat="1us"/>
</platform>
"""


def write_machine(folder: Path, count: int) -> tuple[Path, Path]:
    """The platform of a number of hosts, and the list of their names."""
    platform, hosts = folder / f"platform-{count}.xml", folder / f"hosts-{count}"
    platform.write_text(PLATFORM.format(last=count - 1), encoding="utf-8")
    hosts.write_text("".join(f"h{place}\n" for place in range(count)), encoding="utf-8")
    return platform, hosts


def built(folder: Path) -> Path:
    """The judged programs, compiled for SMPI."""
    if not shutil.which("smpicc"):
        raise InputError("SimGrid with SMPI is not installed; on Debian: apt-get install libsimgrid-dev g++")
    program = folder / "programs"
    subprocess.run(["smpicc", "-O2", str(HERE / "programs.c"), "-o", str(program)], check=True, capture_output=True)
    return program


def run(
    folder: Path, program: Path, name: str, count: int, traced: bool = True, more: Sequence[str] = ()
) -> tuple[float, float, Path]:
    """Run a program under SMPI: simulated seconds, seconds that took, and its time-independent trace."""
    trace = folder / f"{'-'.join([name, *more])}-{count}.ti"
    # SMPI is given the computation; what the program itself takes does not count.
    options = ["--cfg=smpi/simulate-computation:no", *(["-trace-ti", "-trace-file", str(trace)] if traced else [])]
    seconds, took = _simulated(folder, count, [*options, str(program), name, *more])
    return seconds, took, trace


def replayed(folder: Path, trace: Trace) -> tuple[float, float]:
    """Replay a trace: simulated seconds, and seconds that took."""
    path = folder / "replayed.ti"
    write_ti_trace(path, lines(trace))
    return _simulated(folder, len(trace.processes), ["-replay", str(path)])


def _simulated(folder: Path, count: int, arguments: Sequence[str]) -> tuple[float, float]:
    platform, hosts = write_machine(folder, count)
    command = ["smpirun", "-np", str(count), "-platform", str(platform), "-hostfile", str(hosts)]
    command += ["--cfg=smpi/display-timing:yes", "--log=smpi_utils.thres:info"]
    begin = time.monotonic()
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, cwd=folder)
    took = time.monotonic() - begin
    found = re.search(r"Simulated time: ([\d.e+-]+) seconds", done.stdout + done.stderr)
    if done.returncode or found is None or "eadlock" in done.stderr:
        said = (done.stderr or done.stdout).strip()[-500:]
        raise RuntimeError(f"{' '.join(arguments)} on {count} processes: {said}")
    return float(found.group(1)), took
