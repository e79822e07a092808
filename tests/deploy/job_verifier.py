"""Grid Engine's side of the protocol of job submission verifiers, spoken to the one that is deployed."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from deployed_files import copy_deployed

#: What the server tells of a job of two processors, as Grid Engine 8.1.9 does.
JOB = {
    "VERSION": "1.0", "CONTEXT": "server", "CLIENT": "qmaster", "USER": "root", "GROUP": "root", "JOB_ID": "7",
    "CMDNAME": "job.sh", "CMDARGS": "0", "ac": "owner=me,metasched=app=cg,n=1400", "A": "sge", "N": "job.sh",
    "pe_name": "mpi", "pe_min": "2", "pe_max": "2", "q_hard": "new", "l_hard": "h_rt=500",
}  # fmt: skip
#: How long it may be silent (s): far longer than its own deadline, since a busy machine may be slow to start it.
PATIENCE = 120.0


class Verifier:
    """A verifier that runs, in a folder of its own with these lines of hooks.conf, behind the site's if it has one."""

    def __init__(self, folder: Path, conf: str, site: str = "") -> None:
        copy_deployed(folder, "gridengine", "hooks")
        (folder / "hooks.conf").write_bytes(os.fsencode(conf))
        if site:
            (folder / "site-jsv").write_text(site)
            (folder / "site-jsv").chmod(0o755)
            (folder / "site-verifier").write_text(f"{folder}/site-jsv\n")
        self.folder = folder
        self.process = subprocess.Popen(
            [str(folder / "metasched-jsv")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    def judge(self, job: Mapping[str, str] = JOB) -> tuple[str, dict[str, str]]:
        """The state of the result, and what was changed of a job: parameters, and variables as ``ENV NAME``."""
        self.say("START")
        assert self.hear() == "STARTED"
        for name, value in job.items():
            self.say(f"PARAM {name} {value}")
        self.say("BEGIN")
        changed: dict[str, str] = {}
        while not (line := self.hear()).startswith("RESULT STATE "):
            kind, _, rest = line.partition(" ")
            if kind == "PARAM":
                changed[rest.partition(" ")[0]] = rest.partition(" ")[2]
            elif kind == "ENV":
                changed[f"ENV {rest.split()[1]}"] = rest.split(" ", 2)[2]
            else:
                assert line.startswith("LOG WARNING "), line
        #: What is said of the result to the user.
        self.said = line.split(" ", 3)[3] if line.count(" ") > 2 else ""
        return line.split()[2], changed

    def close(self) -> int:
        """Let it go as the server does; its exit status."""
        self.say("QUIT")
        return self.process.wait(PATIENCE)

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()

    def say(self, line: str) -> None:
        """Tell it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode("utf-8", "surrogateescape") + b"\n")

    def hear(self) -> str:
        """The next line that it says."""
        assert self.process.stdout is not None
        answer, end = b"", time.monotonic() + PATIENCE
        while not answer.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], end - time.monotonic())
            assert ready, "the verifier says nothing"
            byte = self.process.stdout.read(1)
            assert byte, "the verifier has ended: the job would be refused"
            answer += byte
        return answer.decode("utf-8", "surrogateescape").rstrip("\n")
