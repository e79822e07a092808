"""From a Slurm that knows nothing of metasched to an advised one, and back: ``python -m tests.system.journey``.

Each step does what its line says and checks it; the times are what an administrator waits for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from metasched.store.database.store import Store
from tests.system import real_slurm
from tests.system.real_daemon import Daemon
from tests.system.real_slurm import NODES, Slurm

#: Runs that are submitted while nobody is advised: problem size and processors. Each sleeps for N/(500 P) s.
LEARNED = tuple((size, processors) for size in (200, 300, 400, 500, 600) for processors in (1, 2, 4))
BEST = "b2"


class Journey:
    """The steps, in order; each gives a line of what was found."""

    def __init__(self, slurm: Slurm, folder: Path) -> None:
        self.slurm, self.folder = slurm, folder
        self.before = (slurm.folder / "slurm.conf").read_text()
        self.daemon: Daemon | None = None
        self.admin = ""

    def steps(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """What is done, and how."""
        yield "metasched setup slurm", self.install
        yield "start of the daemon, restart of slurmctld", self.start
        yield "metasched doctor", self.diagnose
        yield f"{len(LEARNED)} jobs in shadow mode, learned", self.learn
        yield "metasched mode act; the next job is placed", self.act
        yield "its nodes are drained before it starts", self.drain
        yield "one file stops all hooks", self.switch_off
        yield "the daemon is killed; a job runs, and is reported later", self.kill
        yield "metasched setup slurm --undo", self.undo

    def metasched(self, *words: str, check: bool = True) -> Any:
        """What a verb answers in JSON."""
        config = ("--config", str(self.folder / "metasched.toml"), "--json")
        done = subprocess.run(
            [sys.executable, "-m", "metasched", *words, *config],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def setup(self, *words: str) -> Any:
        """``metasched setup slurm`` for this Slurm."""
        socket, state = str(self.folder / "d.sock"), str(self.folder / "kept")
        conf = str(self.slurm.folder / "slurm.conf")
        return self.metasched("setup", "slurm", "--slurm-conf", conf, "--socket", socket, "--state", state, *words)

    def install(self) -> str:
        """Install the hooks."""
        self.daemon = Daemon(self.folder, "[periods]\npartitions = 1.0\nconfirm = 0.5\nrelease = 2.0\n")
        planned = self.setup("--plan")
        answer = self.setup("--yes")
        assert (answer["steps"], answer["left_to_you"]) == (planned["steps"], [])
        return f"{len(answer['steps'])} steps"

    def start(self) -> str:
        """Start what the setup says."""
        assert self.daemon is not None
        with Store.open(self.daemon.database) as store:
            self.admin = store.tokens.add("admin", "admin")
        self.daemon.start()
        self.slurm.restart()
        return "both answer"

    def diagnose(self) -> str:
        """Nothing is wrong."""
        self.load()
        found = self.metasched("doctor", check=False)
        wrong = [f"{each['check']}: {each['found']}" for each in found if each["state"] == "wrong"]
        assert not wrong, wrong
        return f"{len(found)} checks, nothing wrong"

    def load(self) -> None:
        """Every node tells its load; one is free, the others are not."""
        assert self.daemon is not None
        for node in NODES:
            sample = [time.time(), 0.95 if node == BEST else 0.4, 100.0]
            self.daemon.ask("POST", "/v1/loads", {"node": node, "samples": [sample]})
        time.sleep(1.2)  # until placements see it

    def submit(self, size: int, processors: int, seconds: float) -> tuple[int, str]:
        """Submit a job; its number, and what its user is shown."""
        words = (f"--ntasks={processors}", "--partition=new", f"--comment=metasched:app=cg,n={size}")
        done = self.slurm.sbatch(*words, script=f"#!/bin/sh\nsleep {seconds}\n".encode())
        assert done.job, done.said
        return done.job, done.said

    def learnable(self) -> dict[int, float]:
        """The jobs that are learned from, with their problem sizes."""
        assert self.daemon is not None
        with Store.open(self.daemon.database) as store:
            return {int(each.run.extra["job"]): each.run.problem_size for each in store.runs.all() if each.learnable}

    def learn(self) -> str:
        """Jobs are not changed, and each is learned as what it was."""
        sizes = {}
        for size, processors in LEARNED:
            job, said = self.submit(size, processors, size / (500 * processors))
            assert "metasched" not in said
            assert self.slurm.job(job)["ReqNodeList"] == "(null)"
            sizes[job] = float(size)
        self.slurm.wait_for(list(sizes))
        self.slurm.wait(lambda: self.learnable() == sizes)
        return "all as what they were, none changed"

    def act(self) -> str:
        """The next job is sent to the free node."""
        assert self.daemon is not None
        self.daemon.ask("PUT", "/v1/mode", {"mode": "act"}, token=self.admin)
        self.load()
        job, said = self.submit(450, 2, 0.3)
        self.slurm.wait(lambda: self.slurm.job(job)["JobState"] == "COMPLETED")
        assert self.slurm.job(job)["NodeList"] == BEST, said
        return " ".join(said.split())[:90]

    def drain(self) -> str:
        """A job that waits for a node that is drained then runs elsewhere."""
        other = self.slurm.sbatch(
            f"--nodelist={BEST}", "--exclusive", "--partition=new", "--comment=metasched:off",
            script=b"#!/bin/sh\nsleep 60\n",
        ).job  # fmt: skip
        job, _ = self.submit(450, 2, 0.3)
        assert self.slurm.job(job)["ReqNodeList"] == BEST
        self.slurm.run("scontrol", "update", f"NodeName={BEST}", "State=DRAIN", "Reason=journey")
        self.slurm.wait(lambda: self.slurm.job(job)["JobState"] == "COMPLETED")
        where = self.slurm.job(job)["NodeList"]
        self.slurm.run("scancel", str(other))
        self.slurm.run("scontrol", "update", f"NodeName={BEST}", "State=RESUME")
        assert where != BEST
        return f"it ran on {where}"

    def switch_off(self) -> str:
        """A file is there: nothing is asked, nothing is changed."""
        off = self.slurm.folder / "metasched" / "metasched.off"
        off.touch()
        job, said = self.submit(450, 2, 0.1)
        assert ("metasched" in said, self.slurm.job(job)["ReqNodeList"]) == (False, "(null)")
        self.slurm.wait_for([job])
        off.unlink()
        return "the job was left alone"

    def kill(self) -> str:
        """Nothing is lost while the daemon is away."""
        assert self.daemon is not None
        self.daemon.kill()
        job, said = self.submit(350, 1, 0.3)
        assert "metasched" not in said
        self.slurm.wait_for([job])
        self.slurm.wait(lambda: list((self.folder / "kept").glob("ended.*.json")))
        self.daemon.start()
        subprocess.run([str(self.slurm.folder / "metasched" / "metasched-epilog"), "--tell"], check=True, timeout=60)
        self.slurm.wait(lambda: job in self.learnable())
        return "submitted unchanged, learned after the restart"

    def undo(self) -> str:
        """All is as it was."""
        self.setup("--undo", "--yes")
        assert (self.slurm.folder / "slurm.conf").read_text() == self.before
        assert not (self.slurm.folder / "job_submit.lua").exists()
        self.slurm.restart()
        job, said = self.submit(450, 2, 0.1)
        assert "metasched" not in said
        self.slurm.wait_for([job])
        return "slurm.conf is as it was, to the byte"


@contextmanager
def begun(folder: Path) -> Iterator[Journey]:
    """A journey on a Slurm of its own."""
    (folder / "daemon").mkdir()
    with real_slurm.running(folder / "slurm", bare=True) as slurm:
        journey = Journey(slurm, folder / "daemon")
        try:
            yield journey
        finally:
            if journey.daemon is not None:
                journey.daemon.stop()


def main() -> None:
    """Go it, and print how long each step took."""
    if why := real_slurm.why_not():
        sys.exit(why)
    with tempfile.TemporaryDirectory() as folder, begun(Path(folder)) as journey:
        began = time.monotonic()
        for answer, step in journey.steps():
            start = time.monotonic()
            found = step()
            print(f"{time.monotonic() - start:6.1f} s  {answer}: {found}", flush=True)
        print(f"{time.monotonic() - began:6.1f} s  in all")


if __name__ == "__main__":
    main()
