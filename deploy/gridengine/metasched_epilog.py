"""Tells metasched of a job of Grid Engine that has ended, from what sge_shepherd keeps of it on its first host.

Start and end are when its files were written, to the hundredth of a second. What there is to tell is kept in a file
until the daemon has stored it, as Slurm's epilog does. Calls no command of Grid Engine. Any Python from 3.6 on runs it,
with nothing but the standard library; metasched_hooks.py and metasched_numbers.py lie beside it.
"""

import os
import pwd
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, Optional

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hooks")]
sys.dont_write_bytecode = True

from metasched_hooks import MOST_COMMENT, epilog, plain, run
from metasched_numbers import LONGEST_SCRIPT, MOST_WORDS, in_arguments, in_script, joined

#: What JOB_SCRIPT is for jobs without one.
INTERACTIVE = ("QLOGIN", "QRLOGIN", "QRSH", "INTERACTIVE")


def pairs(path: Path) -> Dict[str, str]:
    """The lines KEY=VALUE of a file; of a key the first, as the words of a job, which its user chose, come last."""
    found = {}  # type: Dict[str, str]
    for line in path.read_bytes().decode(errors="replace").split("\n"):
        key, equals, value = line.partition("=")
        if equals:
            found.setdefault(key, value)
    return found


def hosts(path: Path, alone: str, slots: int) -> Dict[str, int]:
    """Slots by host, in the order of the file that Grid Engine hands to a parallel job, and to no other."""
    found = {}  # type: Dict[str, int]
    with suppress(FileNotFoundError):
        for line in path.read_bytes().decode(errors="replace").split("\n"):
            words = line.split()
            if len(words) >= 2:
                found[words[0]] = found.get(words[0], 0) + int(words[1])
    return found or {alone: slots}


def numbers(folder: Path, config: Dict[str, str], number: str) -> str:
    """The numbers in a job's arguments and in its script, which is read only where Grid Engine has written it."""
    count = config.get("njob_args", "")
    words = range(1, min(int(count), MOST_WORDS) + 1) if re.match(r"[0-9]{1,9}\Z", count) else ()
    script = b""
    with suppress(OSError, ValueError), (folder.parent.parent / "job_scripts" / str(int(number))).open("rb") as file:
        script = file.read(4 * LONGEST_SCRIPT + 4)  # as many letters at least
    return joined(in_arguments([config.get("job_arg{}".format(word), "") for word in words]), in_script(script))


def ended(_: Path, found: Dict[str, str], now: float) -> Optional[Dict[str, Any]]:
    """The job that Grid Engine's environment and files tell of; None where it never started."""
    environment = os.environ
    folder = Path(environment["SGE_JOB_SPOOL_DIR"])
    try:
        start, usage = (folder / "job_pid").stat().st_mtime, pairs(folder / "usage")
        end = (folder / "usage").stat().st_mtime
    except OSError:
        return None
    config = pairs(folder / "config")
    # Not by PE_HOSTFILE, which is what the user says where the job is not parallel.
    slots = hosts(folder / "pe_hostfile", environment.get("HOSTNAME", ""), int(environment.get("NSLOTS") or "1"))
    signal, task = int(usage.get("signal", "0")), environment.get("SGE_TASK_ID", "undefined")
    owner = config.get("job_owner", environment.get("USER", ""))
    with suppress(KeyError):
        owner = str(pwd.getpwnam(owner).pw_uid)
    job = {
        "scheduler": found.get("cluster", ""),
        "job": environment["JOB_ID"] + ("." + task if task.isdigit() else ""),
        "comment": environment.get("METASCHED", "").encode("utf-8", "replace").decode()[:MOST_COMMENT],
        "partition": environment.get("QUEUE", ""),
        "nodes": ",".join(slots),
        "processors": sum(slots.values()),
        "start": round(start, 2),
        "end": round(max(min(end, now), start + 0.01), 2),
        "exit_status": 128 + signal if signal else int(usage.get("exit_status", "0")),
        "user": owner,
        "name": plain(os.environb.get(b"JOB_NAME", b"")),
        "numbers": numbers(folder, config, environment["JOB_ID"]),
    }  # type: Dict[str, Any]
    if config.get("submission_time", "").isdigit():
        job["submitted"] = float(config["submission_time"])
    if task.isdigit():
        job["kind"] = "array"
    elif environment.get("JOB_SCRIPT", "") in INTERACTIVE:
        job["kind"] = "interactive"
    return job


if __name__ == "__main__":
    run(lambda: epilog(HERE, ended))
