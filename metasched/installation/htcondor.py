"""What is to be done for HTCondor to know loads and partitions: files, a file of its settings, the daemon's table."""

from __future__ import annotations

import re
from pathlib import Path

from metasched.installation.plan import Plan, daemon_table, hook_file
from metasched.installation.steps import Folder, Journal, Step
from metasched.records import InputError

#: Where the files are installed, and the folder of HTCondor's own settings.
FOLDER, CONFIGURATION = Path("/etc/condor/metasched"), Path("/etc/condor/config.d")
FILES, SETTINGS = ("metasched_loads.py", "hooks.conf", "metasched_hooks.py"), "metasched.conf"
#: Lists that our settings add to; a later file that sets one again drops what was added.
LISTS = ("STARTD_CRON_JOBLIST", "JOB_TRANSFORM_NAMES")


def plan(folder: Path, condor_conf: Path, daemon_conf: Path | None, *, name: str) -> Plan:
    """The plan for a host of the pool.

    Parameters
    ----------
    folder : where the files are installed.
    condor_conf : the folder of HTCondor's settings.
    daemon_conf : path of the daemon's settings, None where the daemon is on another host.
    name : the cluster's name in the daemon's settings.

    Raises
    ------
    InputError
        When the daemon's settings cannot be read, or there is no such folder.
    """
    if not condor_conf.is_dir():
        raise InputError("is no folder, expected that of HTCondor's settings", where=str(condor_conf))
    journal = Journal.of(folder)
    left: list[str] = []
    steps: list[Step] = [Folder(folder, "root", 0o755)]
    steps += [hook_file(folder, "htcondor", file, {}, journal, left) for file in FILES]
    own = hook_file(condor_conf, "htcondor", SETTINGS, {}, journal, left, names=folder)
    steps.append(own)
    left += [
        f"in {path}, let {key} begin with $({key}): it drops what {own.path} adds"
        for path in sorted(condor_conf.iterdir())
        if path.is_file() and path.name > SETTINGS
        for key in LISTS
        if _drops(path, key)
    ]
    if daemon_conf is not None:
        steps += daemon_table(daemon_conf, "A pool of HTCondor", name, ["[[htcondor]]", f'name = "{name}"'])
    left.append(f"on execution hosts, run metasched agent with listen, and name its token in {folder}/hooks.conf")
    then = ["condor_reconfig", *(["systemctl restart metasched", "metasched doctor"] if daemon_conf else [])]
    return Plan(tuple(steps), tuple(left), tuple(then))


def _drops(path: Path, key: str) -> bool:
    """Whether a file sets a list without what it was before."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = re.findall(rf"(?mi)^[ \t]*{key}[ \t]*=(.*)$", text)
    return any(f"$({key.lower()})" not in value.lower() for value in found)
