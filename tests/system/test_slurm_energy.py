"""The energy of a node that jobs share, by a meter that Prometheus scrapes and the processor time that Slurm records.

A real Slurm with slurmdbd and ``JobAcctGatherType`` runs three jobs that fill one node: one works all the time, one
half of it, and one sleeps. A made powercap counts, read by node_exporter. What the daemon learns as the energy of each
job follows the documented rule, and all together, with what free processors drew, is what the node took, by the line
from its package.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from metasched.schedulers.slurm.source import SlurmSource
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store
from tests.system import real_accounting, real_prometheus, real_slurm
from tests.system.real_daemon import Daemon
from tests.system.real_slurm import Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

NODE, PROCESSORS, IDLE = "a1", 4, 60.0
#: Power of the package (W), and that from some time on after the meter began (s), so that it changes while jobs run.
WATTS, LATER, CHANGE = 150.0, 250.0, 35.0
#: The line from the package to the node: power (W) at none, and factor.
OFFSET, FACTOR = 20.0, 1.2
LENGTH = 30.0
#: Of each job: its processors, and the share of the time that one process works.
JOBS = {"works": (1, 1.0), "half": (2, 0.5), "sleeps": (1, 0.0)}
SCRIPT = """#!{python}
import os, time
end = {end}
while (now := time.time()) < end:
    if now % 1.0 >= {share}:
        time.sleep(0.05)
print(sum(os.times()[:2]), file=open("{folder}/" + os.environ["SLURM_JOB_ID"], "w"))
"""


class Meter:
    """A powercap of one package under a folder, which counts while the block lasts."""

    def __init__(self, folder: Path) -> None:
        self._zone = folder / "class/powercap/intel-rapl:0"
        self._zone.mkdir(parents=True)
        self._stopped, self._began = threading.Event(), time.time()

    def counted(self, at: float) -> float:
        """Joules counted at a time (s since 1970)."""
        length = at - self._began
        return WATTS * min(length, CHANGE) + LATER * max(length - CHANGE, 0.0)

    @contextmanager
    def counting(self) -> Iterator[Meter]:
        """Begin to count, and keep the files up to date."""
        self._began = time.time()
        self._write()
        thread = threading.Thread(target=self._keep)
        thread.start()
        try:
            yield self
        finally:
            self._stopped.set()
            thread.join()

    def _keep(self) -> None:
        while not self._stopped.wait(0.02):
            self._write()

    def _write(self) -> None:
        joules = self.counted(time.time())
        for file, text in (
            ("name", "package-0"),
            ("max_energy_range_uj", "262143328850"),
            ("energy_uj", f"{joules * 1e6:.0f}"),
        ):
            (self._zone / f"{file}.new").write_text(f"{text}\n")
            (self._zone / f"{file}.new").replace(self._zone / file)


def run_jobs(slurm: Slurm, folder: Path) -> dict[str, int]:
    """The number of each job, once all have ended; they begin and end together."""
    slurm.stand_still()
    end, numbers = time.time() + LENGTH + 5.0, {}
    for name, (processors, share) in JOBS.items():
        script = SCRIPT.format(python=sys.executable, end=end, share=share, folder=folder).encode()
        words = ("-N1", f"-n{processors}", f"-w{NODE}", f"--comment=metasched:app={name},n=500")
        sent = slurm.sbatch(*words, script=script)
        assert sent.job, sent.said
        numbers[name] = sent.job
    slurm.stand_still(False)
    slurm.wait_for([*numbers.values()])
    return numbers


def learned(daemon: Daemon, slurm: Slurm, count: int) -> dict[str, RecordedRun]:
    """The run of each job, once all are learned."""

    def found() -> dict[str, RecordedRun]:
        with Store.open(daemon.database) as store:
            return {each.run.application: each for each in store.runs.all() if each.learnable}

    slurm.wait(lambda: len(found()) == count)
    return found()


def test_what_jobs_on_a_shared_node_are_given_by_their_processor_time_adds_up_to_what_was_measured(
    tmp_path: Path,
) -> None:
    if why := real_slurm.why_not() or real_accounting.why_not() or real_prometheus.why_not():
        pytest.skip(why)
    site, used, hardware = tmp_path / "slurm", tmp_path / "used", tmp_path / "node.toml"
    used.mkdir()
    hardware.write_text(
        f'kind = "cluster"\ntitle = "one node"\nsource = "made"\n[values]\n'
        f'idle_power = {{ value = {IDLE}, unit = "W" }}\nnode_offset = {{ value = {OFFSET}, unit = "W" }}\n'
        f'node_factor = {{ value = {FACTOR}, unit = "1" }}\n'
    )
    with (
        real_accounting.keeping(tmp_path / "accounting", site / "munge.sock", gathering=True) as accounting,
        real_slurm.running(site, accounting=accounting) as slurm,
        Meter(tmp_path / "sys").counting() as meter,
        real_prometheus.running(tmp_path, tmp_path / "sys") as prometheus,
    ):
        daemon = Daemon(
            tmp_path,
            f'[periods]\npartitions = 1.0\nconfirm = 3.0\n[[slurm]]\nname = "proof"\nhardware = "{hardware}"\n'
            f'configuration = "{slurm.environment["SLURM_CONF"]}"\n'
            f'[[source]]\nkind = "prometheus"\nurl = "{prometheus.url}"\npower = true\nperiod = 1.0\n'
            f'names = {{ "{prometheus.instance}" = "{NODE}" }}\n',
        )
        daemon.start()
        slurm.hooks({"socket": daemon.socket})
        try:
            numbers = run_jobs(slurm, used)
            runs = learned(daemon, slurm, len(JOBS))
        finally:
            daemon.stop()
        source = SlurmSource("proof", configuration=slurm.environment["SLURM_CONF"])
        recorded = source.processor_times([str(number) for number in numbers.values()])
    judge(
        meter,
        runs,
        {name: recorded[str(numbers[name])] for name in JOBS},
        {name: float((used / str(numbers[name])).read_text()) for name in JOBS},
    )


def judge(meter: Meter, runs: dict[str, RecordedRun], recorded: dict[str, float], used: dict[str, float]) -> None:
    """Hold what was learned against what jobs used and the meter counted."""
    own = {name: record.run for name, record in runs.items()}
    span = {name: (run.start_time or 0.0, (run.start_time or 0.0) + run.execution_time) for name, run in own.items()}
    energy = {name: run.energy or 0.0 for name, run in own.items()}
    first, last = min(start for start, _ in span.values()), max(end for _, end in span.values())
    measured = OFFSET * (last - first) + FACTOR * (meter.counted(last) - meter.counted(first))
    free = (
        IDLE / PROCESSORS * sum(JOBS[name][0] * (last - first - (end - start)) for name, (start, end) in span.items())
    )
    print(f"spans {span}; processor time recorded {recorded}, used {used}")
    print(f"energy {energy}, free processors {free:.1f} J; measured {measured:.1f} J")
    assert {run.energy_covers for run in own.values()} == {"node"}
    assert sum(energy.values()) + free == pytest.approx(measured, rel=0.01)
    # Slurm's records are those of the kernel, to the last sample before the end and what starting a job takes.
    assert recorded == {name: pytest.approx(seconds, abs=1.5) for name, seconds in used.items()}
    for name, (start, end) in span.items():
        idle = IDLE * JOBS[name][0] / PROCESSORS * (end - start)
        working = (measured - IDLE * (last - first)) * recorded[name] / sum(recorded.values())
        assert energy[name] == pytest.approx(idle + working, rel=0.05), name
