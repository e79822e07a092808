"""The whole of it on a real Slurm: agents, daemon, hook and epilogs, beside a Slurm without the hook.

Two Slurms with the same eight virtual nodes take the same 60 submissions at the same moments, and the same recorded
loads go on in both. One has the hook and a daemon that knows nothing at first. Loads are those of a committed campaign,
played from their beginning at ten times their pace. Its nodes are dealt out by how busy they are on average over this
test, the busier four to the partition that jobs go to by default, as on a site where everybody uses it.
"""

from __future__ import annotations

import json
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from metasched.records import Run
from metasched.store.database.store import Store
from metasched.store.files.loads import read_loads
from tests.free_ports import free_port
from tests.system import application, real_slurm
from tests.system.real_daemon import ROOT, Daemon
from tests.system.real_slurm import NODES, Slurm

pytestmark = [pytest.mark.system, pytest.mark.timeout(280)]

LOADS = ROOT / "benchmarks" / "testbed" / "campaigns" / "is-intel-random" / "loads.csv.gz"
SPEED, WINDOW = 10.0, 1800.0
SUBMISSIONS, LAST, APART = 60, 20, 1.2
SIZES, COUNTS = (160, 200, 240, 280, 320), (1, 2, 3)
APPLICATION = Path(application.__file__)
CONFIGURATION = """mode = "act"
[periods]
loads = 0.5
partitions = 1.0
confirm = 0.5
[[slurm]]
name = "proof"
configuration = "{}"
"""


def traces(path: Path, origin: float) -> dict[str, Any]:
    """Write what agents and application read: for each node its recorded loads from ``origin`` (s) on."""
    loads = read_loads(LOADS)
    times, cpu, bandwidth = loads.grid()
    rows = times < times[0] + WINDOW
    order = cpu[rows].mean(axis=0).argsort()
    fields = {
        "origin": origin,
        "step": float(times[1] - times[0]) / SPEED,
        "nodes": {
            node: {"cpu": cpu[rows, column].tolist(), "bandwidth": bandwidth[rows, column].tolist()}
            for node, column in zip(NODES, order.tolist(), strict=True)
        },
    }
    path.write_text(json.dumps(fields))
    return fields


@contextmanager
def agents(folder: Path, daemon: Daemon, port: int, played: Path) -> Iterator[None]:
    """The agent of every node, each with a token of its own."""
    processes = []
    with Store.open(daemon.database) as store:
        secrets = {node: store.tokens.add(f"agent of {node}", "agent", node=node) for node in NODES}
    time.sleep(1.5)  # until the daemon knows the tokens
    try:
        for node, secret in secrets.items():
            settings = folder / f"agent.{node}.toml"
            settings.write_text(
                f'node = "{node}"\ndaemon = "http://127.0.0.1:{port}"\ntoken = "{secret}"\ninterval = 1.0\n'
                f'interface = "lo"\nspool = "{folder}/agent.{node}.db"\n'
            )
            with (folder / f"agent.{node}.log").open("wb") as log:
                words = [sys.executable, "-m", "tests.system.traced_agent", str(settings), str(played)]
                processes.append(subprocess.Popen(words, cwd=ROOT, stdout=log, stderr=log))
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def submissions(played: Path) -> Iterator[tuple[list[str], bytes]]:
    """Words and script of each submission; sizes and counts come in a fixed irregular order."""
    for number in range(SUBMISSIONS):
        size, processors = SIZES[number * 3 % len(SIZES)], COUNTS[(number + number // 3) % len(COUNTS)]
        words = [f"--ntasks={processors}", "--ntasks-per-node=1", f"--comment=metasched:app=sleeper,n={size}"]
        script = f"#!/bin/sh\nexec /usr/bin/env python3 -S -E {APPLICATION} {played} {size} {processors} {number}\n"
        yield words, script.encode()


def kept_by_epilog(slurm: Slurm) -> dict[int, tuple[float, set[str]]]:
    """Run times (s) and nodes that the epilog noted, by job, where no daemon has taken them."""
    document = [json.loads(path.read_text()) for path in (slurm.folder / "hooks").glob("ended.*.json")]
    return {
        int(each["job"]): (each["end"] - each["start"], set(application.unfold(each["nodes"])))
        for each in document
        if each["exit_status"] == 0
    }


def test_the_daemon_learns_and_jobs_become_faster_than_without_the_hook(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if why := real_slurm.why_not():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("learning")
    port = free_port()
    with (
        real_slurm.running(tmp_path_factory.mktemp("hooked")) as hooked,
        real_slurm.running(tmp_path_factory.mktemp("plain"), hook=False) as plain,
    ):
        daemon = Daemon(folder, CONFIGURATION.format(hooked.folder / "slurm.conf"), port=port)
        daemon.start()
        hooked.hooks({"socket": daemon.socket})
        plain.hooks({"socket": str(folder / "nobody.sock")})
        folder.chmod(0o755)
        played = folder / "traces.json"
        traces(played, time.time())
        try:
            with agents(folder, daemon, port, played):
                until(
                    lambda: daemon.ask("GET", "/v1/status")["nodes_with_loads"] >= len(NODES),
                    why="not all agents were heard",
                )
                jobs = submit_to_both(hooked, plain, played)
                for cluster, numbers in jobs.items():
                    cluster.wait_for(numbers)
                runs = daemon.learned(*jobs[hooked])
                placements = daemon.ask("GET", "/v1/placements?limit=1000")
        finally:
            daemon.stop()
        control = kept_by_epilog(plain)
    judge([runs[job].run for job in jobs[hooked]], placements, [control[job] for job in jobs[plain]])


def submit_to_both(hooked: Slurm, plain: Slurm, played: Path) -> dict[Slurm, list[int]]:
    """Submit everything to both at the same moments; the jobs' numbers in order."""
    jobs: dict[Slurm, list[int]] = {hooked: [], plain: []}
    began = time.monotonic()
    for number, (words, script) in enumerate(submissions(played)):
        time.sleep(max(0.0, began + number * APART - time.monotonic()))
        for cluster, numbers in jobs.items():
            submitted = cluster.sbatch(*words, script=script)
            assert submitted.job, submitted.said
            numbers.append(submitted.job)
    return jobs


def judge(runs: list[Run], placements: list[dict[str, Any]], control: list[tuple[float, set[str]]]) -> None:
    """Print the figures and hold them against what is promised."""
    advised = {each["outcome"]["job"]: each["answer"]["placement"] for each in placements if each["outcome"]}
    taken, without = [run.execution_time for run in runs], [seconds for seconds, _ in control]
    moved = [set(run.nodes) != nodes for run, (_, nodes) in zip(runs, control, strict=True)]
    last, plain = statistics.mean(taken[-LAST:]), statistics.mean(without[-LAST:])
    errors = [
        100.0 * abs(advised[run.extra["job"]]["execution_time"] / run.execution_time - 1.0)
        for run in runs[-LAST:]
        if run.extra["job"] in advised
    ]
    for first in range(0, SUBMISSIONS, LAST):
        part = slice(first, first + LAST)
        print(
            f"submissions {first + 1}-{first + LAST}: mean run time {statistics.mean(taken[part]):.2f} s, without hook "
            f"{statistics.mean(without[part]):.2f} s; {sum(moved[part])} of {LAST} on other nodes"
        )
    print(
        f"last {LAST}: {1 - last / plain:.0%} below the control run; mean PPE {statistics.mean(errors):.1f} % "
        f"over {len(errors)} placements"
    )
    assert not moved[0]  # nothing was known yet
    assert sum(moved[-LAST:]) > LAST // 2
    assert len(errors) == LAST
    assert last <= 0.75 * plain
    assert statistics.mean(errors) <= 15.0
