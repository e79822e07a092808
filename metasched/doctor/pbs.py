"""Checks of OpenPBS's side of an installation: the hook as qmgr lists it, the history of jobs, and the hook's files.

Never run on the real server: what ``qmgr`` prints was written down from its manual.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from metasched.doctor.asking_hook import check_asking_hook
from metasched.doctor.findings import Finding, User
from metasched.schedulers.pbs.commands import PbsCommands
from metasched.schedulers.pbs.listing import SERVER

#: Lists the settings of the hook, one to a line.
HOOK = ("qmgr", "-c", "list hook metasched")
#: Events that it must be called for, and seconds that PBS must give it at least.
EVENTS, ALARM = ("queuejob", "jobobit"), 2
FILES = ("metasched_pbs.py", "metasched_advice.py", "metasched_numbers.py")


def check_pbs(name: str, server: str, socket: str | None, folder: Path) -> Iterator[Finding]:
    """Check the server on this host."""
    commands = PbsCommands.of(server)
    try:
        history = commands.read(_keeps_history, *SERVER)
    except RuntimeError as error:
        yield Finding(f"{name}: server", "wrong", str(error), "run this as root on the host of pbs_server")
        return
    if history:
        yield Finding(f"{name}: server", "well", "answers, and keeps the history of jobs")
    else:
        found = "job_history_enable is not set: jobs that end while the daemon is down are not learned"
        yield Finding(f"{name}: server", "watch", found, 'qmgr -c "set server job_history_enable = true"')
    try:
        settings = dict(re.findall(r"(?m)^\s*(\w+)\s*=\s*(.*?)\s*$", commands.run(*HOOK)))
    except RuntimeError as error:
        yield Finding(f"{name}: hook", "wrong", str(error), "metasched setup pbs, and the qmgr commands that it shows")
        return
    events = settings.get("event", "").strip('"').split(",")
    missing = [event for event in EVENTS if event not in events]
    alarm = settings.get("alarm", "")
    if settings.get("enabled", "").lower() != "true":
        yield Finding(f"{name}: hook", "wrong", "it is disabled", 'qmgr -c "set hook metasched enabled = true"')
    elif missing:
        wanted = ",".join(EVENTS)
        found = f"it is not called for {' and '.join(missing)}"
        yield Finding(f"{name}: hook", "wrong", found, f"qmgr -c \"set hook metasched event = '{wanted}'\"")
    elif alarm.isdecimal() and int(alarm) < ALARM:
        found = f"alarm = {alarm}, after which PBS refuses the job"
        yield Finding(f"{name}: hook", "wrong", found, 'qmgr -c "set hook metasched alarm = 5"')
    else:
        yield from check_asking_hook(name, folder, FILES, User.named("root"), socket, "pbs")


def _keeps_history(document: Any) -> bool:
    """Whether a server remembers jobs that have ended."""
    return any(str(each.get("job_history_enable")).lower() == "true" for each in document["Server"].values())
