"""Runs OpenPBS's hook in the stand-in of its server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deployed_files import copy_deployed

STAND_IN = Path(__file__).with_name("pbs_stand_in.py")
QUEUEJOB, JOBOBIT = 1, 0x800000
#: The alarm of the hook (s): the server rejects what takes longer.
ALARM = 5.0
#: A job of two processors.
JOB: dict[str, Any] = {
    "Job_Name": "job.sh",
    "queue": "new",
    "Resource_List": {"select": "2:ncpus=1:mem=1gb", "walltime": 500},
    "Variable_List": {"METASCHED": "app=cg:n=1400", "PBS_O_HOME": "/root"},
}


def hooked(
    folder: Path,
    conf: str,
    job: Mapping[str, Any] = JOB,
    *,
    event: int = QUEUEJOB,
    breaks: str = "",
    python: str = sys.executable,
    shared: bool = True,
) -> dict[str, Any]:
    """What became of a job for which an event happens, with these settings; ``breaks`` is what the server refuses."""
    copy_deployed(folder, "pbs", *(["hooks"] if shared else []))
    hook = folder / "metasched_pbs.py"
    hook.write_text(hook.read_text().replace("/etc/pbs/metasched", str(folder)))
    (folder / "hooks.conf").write_bytes(os.fsencode(f"state = {folder}\n{conf}"))
    told = {"event": event, "breaks": breaks, "job": job, "queues": ["old", "new"]}
    (folder / "job.json").write_text(json.dumps(told))
    words = [python, str(STAND_IN), str(hook), str(folder / "job.json")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=ALARM * 4, check=True)
    found = dict(json.loads(done.stdout))
    assert found["verdict"] == "accepted", found
    return found


def changed(folder: Path, conf: str, job: Mapping[str, Any] = JOB, **more: Any) -> dict[str, Any]:
    """What the hook changed of the usual job, or of another."""
    after = dict(hooked(folder, conf, job, **more)["job"])
    before = {
        "select": job.get("Resource_List", {}).get("select"),
        "queue": job.get("queue"),
        "mark": job.get("Variable_List", {}).get("METASCHED"),
    }
    return {name: value for name, value in after.items() if value != before[name]}
