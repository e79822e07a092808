"""A large site: a thousand nodes, twenty applications with full sorted lists, and the daemon that serves it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from metasched.client.connection import ask
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run
from metasched.store import documents
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.store import Store

NODES, RACKS, APPLICATIONS, RUNS = 1000, 20, 20, 80
SIZES, COUNTS = range(200, 4000, 100), (1, 2, 4, 8, 16, 32)
ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0


def node(number: int) -> str:
    """Name of a node, counted from 0."""
    return f"n{number + 1:06d}"


def application(number: int) -> str:
    """Name of an application, counted from 0."""
    return f"app{number:02d}"


def describe(folder: Path, nodes: int = NODES, racks: int = RACKS, running: int = 0) -> None:
    """Write a description of the site's cluster: racks of nodes below one switch, and jobs that run on four nodes."""
    each = nodes // racks
    lines = ["[[cluster]]", 'name = "site"', "nodes = ["]
    lines += [f'  {{ names = "n[{1:06d}-{nodes:06d}]", processors = 16, available_bandwidth = 1000.0 }},', "]"]
    for rack in range(racks):
        names = f"n[{rack * each + 1:06d}-{(rack + 1) * each:06d}]"
        lines += ["[[cluster.switches]]", f'name = "rack{rack}"', f'nodes = "{names}"', "uplink = 4000.0"]
    lines += ["[[cluster.switches]]", 'name = "top"', f'switches = "rack[0-{racks - 1}]"']
    draw = random.Random(17)
    for _ in range(running):
        first = draw.randrange(1, nodes - 3)
        lines += ["[[cluster.running]]", f'nodes = "n[{first:06d}-{first + 3:06d}]"', "processors = 4"]
        lines += [f"computation = {draw.uniform(3e3, 3e4):.0f}", f"communication = {draw.uniform(3e2, 3e3):.0f}"]
    (folder / "clusters.toml").write_text("\n".join(lines) + "\n")


def learn(folder: Path, applications: int = APPLICATIONS) -> list[int]:
    """Fill the database with runs and the models learned from them; return how many runs each looks back at."""
    lengths: list[int] = []
    with Store.open(folder / "metasched.db") as store:
        for number in range(applications):
            name, draw = application(number), random.Random(number)
            work, transfer = 10 ** draw.uniform(-3.5, -2.5), 10 ** draw.uniform(-3.0, -1.5)
            power = draw.choice((1.0, 1.5, 2.0))
            runs = []
            for _ in range(RUNS):
                size, count = draw.choice(SIZES), draw.choice(COUNTS)
                cpu, bandwidth = draw.uniform(0.3, 1.0), draw.uniform(200.0, 1000.0)
                seconds = work * size**power / (cpu * count) + transfer * size * (count - 1) / bandwidth * 10
                runs.append(Run(name, "site", size, count, cpu, bandwidth, draw.uniform(0.95, 1.05) * seconds))
            records = [RecordedRun(run) for run in runs]
            store.runs.add_all(records)
            predictor = RobustPredictor(name, "site").fit(runs)
            lengths.append(len(predictor.window))
            document = json.loads(documents.dump(predictor))
            store.models.save(name, "site", document, learned=[record.uid for record in records])
    return lengths


def learned(folder: Path) -> list[int]:
    """The lengths of the sorted lists in a folder's database, which is filled unless it was before."""
    kept = folder / "lengths.json"
    if not kept.exists():
        kept.write_text(json.dumps(learn(folder)))
    return list(json.loads(kept.read_text()))


class Server:
    """A server on a Unix socket in a folder, as a process of its own."""

    def __init__(self, folder: Path, *command: str) -> None:
        self.socket = str(folder / "d.sock")
        with (folder / "daemon.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT, stdout=log, stderr=log, env=dict(os.environ, OPENBLAS_NUM_THREADS="1"),
            )  # fmt: skip
        end = time.monotonic() + PATIENCE
        while True:
            try:
                ask(self.socket, "GET", "/v1/health")
            except RuntimeError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.process.kill()
                    raise RuntimeError((folder / "daemon.log").read_text()) from None
                time.sleep(0.05)
            else:
                return

    @classmethod
    def daemon(cls, folder: Path, *, mode: str = "shadow") -> Self:
        """``metasched serve`` for the site."""
        (folder / "metasched.toml").write_text(
            f'database = "metasched.db"\nclusters = "clusters.toml"\nmode = "{mode}"\n'
            f'[listen]\nport = 0\nsocket = "d.sock"\n[limits]\nrequests_per_second = 100000\nburst = 100000\n'
            "samples_per_second = 100\n"
        )
        return cls(folder, "metasched", "serve", "--config", str(folder / "metasched.toml"))

    @classmethod
    def empty(cls, folder: Path) -> Self:
        """The framework alone."""
        return cls(folder, "benchmarks.load.empty", str(folder / "d.sock"))

    def stop(self) -> None:
        """Ask it to end."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)

    def memory(self) -> float:
        """Resident memory (MB)."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 1e6

    def cpu(self) -> float:
        """Processor time used so far (s)."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
