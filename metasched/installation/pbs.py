"""What is to be done for OpenPBS to ask the daemon: files, a folder for kept jobs, the daemon's table, and the hook."""

from __future__ import annotations

from pathlib import Path

from metasched.installation.plan import Plan
from metasched.installation.steps import Folder

#: Where the files are installed, as the hook names it.
FOLDER = Path("/etc/pbs/metasched")
FILES = ("metasched_pbs.py", "hooks.conf", "metasched_hooks.py", "metasched_advice.py", "metasched_numbers.py")


def complete(plan: Plan) -> None:
    """Add what the server on this host needs; its hook is made by qmgr, and those lines are left to the administrator.

    Raises
    ------
    InputError : when the daemon's configuration cannot be read.
    """
    plan.add_hooks(FILES)
    plan.steps.append(Folder(Path(plan.state), "root", 0o750))
    plan.add_table("A server of OpenPBS", "pbs")
    plan.left += [
        "qmgr -c \"create hook metasched event='queuejob,jobobit', alarm=5\"",
        f'qmgr -c "import hook metasched application/x-python default {plan.folder}/metasched_pbs.py"',
    ]
    plan.then = ["systemctl restart metasched"]
