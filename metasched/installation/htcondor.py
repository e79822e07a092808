"""What is to be done for HTCondor to know loads and partitions: files, a file of its settings, the daemon's table."""

from __future__ import annotations

import re
from pathlib import Path

from metasched.installation.plan import Plan
from metasched.records import InputError

#: Where the files are installed, and the folder of HTCondor's own settings.
FOLDER, CONFIGURATION = Path("/etc/condor/metasched"), Path("/etc/condor/config.d")
FILES, SETTINGS = ("metasched_loads.py", "hooks.conf", "metasched_hooks.py"), "metasched.conf"
#: Lists that our settings add to; a later file that sets one again drops what was added.
LISTS = ("STARTD_CRON_JOBLIST", "JOB_TRANSFORM_NAMES")


def complete(plan: Plan, condor_conf: Path) -> None:
    """Add what a host of the pool needs.

    Raises
    ------
    InputError : when the daemon's configuration cannot be read, or there is no such folder.
    """
    if not condor_conf.is_dir():
        raise InputError("is no folder, expected that of HTCondor's settings", where=str(condor_conf))
    plan.add_hooks(FILES)
    own = plan.add_file(condor_conf, SETTINGS)
    plan.left += [
        f"in {path}, let {key} begin with $({key}): it drops what {own.path} adds"
        for path in sorted(condor_conf.iterdir())
        if path.is_file() and path.name > SETTINGS
        for key in LISTS
        if _drops(path, key)
    ]
    plan.add_table("A pool of HTCondor", "htcondor")
    plan.left.append(
        f"on execution hosts, run metasched agent with listen, and name its token in {plan.folder}/hooks.conf"
    )
    plan.then = ["condor_reconfig", *(plan.then if plan.daemon_conf else [])]


def _drops(path: Path, key: str) -> bool:
    """Whether a file sets a list without what it was before."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = re.findall(rf"(?mi)^[ \t]*{key}[ \t]*=(.*)$", text)
    return any(f"$({key.lower()})" not in value.lower() for value in found)
