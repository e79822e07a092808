"""What is to be done for OpenPBS to ask the daemon: files, a folder for kept jobs, the daemon's table, and the hook."""

from __future__ import annotations

from pathlib import Path

from metasched.doctor.hook_settings import STATE
from metasched.installation.plan import Plan, daemon_table, hook_file
from metasched.installation.steps import Folder, Journal, Step

#: Where the files are installed, as the hook names it.
FOLDER = Path("/etc/pbs/metasched")
FILES = ("metasched_pbs.py", "hooks.conf", "metasched_hooks.py", "metasched_advice.py")


def plan(folder: Path, daemon_conf: Path, *, name: str, socket: str, state: str = STATE) -> Plan:
    """The plan for the server on this host, whose hook qmgr makes: those lines are left to the administrator.

    Parameters
    ----------
    folder : where the files are installed.
    daemon_conf : path of the daemon's settings.
    name : the cluster's name in the daemon's settings and in hooks.conf.
    socket : the daemon's Unix socket.
    state : where the hook keeps jobs.

    Raises
    ------
    InputError
        When the daemon's settings cannot be read.
    """
    journal = Journal.of(folder)
    left: list[str] = []
    values = {"socket": socket, "cluster": name, "state": state}
    files = [hook_file(folder, "pbs", file, values, journal, left) for file in FILES]
    table = daemon_table(daemon_conf, "A server of OpenPBS", name, ["[[pbs]]", f'name = "{name}"'])
    steps: list[Step] = [Folder(folder, "root", 0o755), *files, Folder(Path(state), "root", 0o750), *table]
    left += [
        "qmgr -c \"create hook metasched event='queuejob,jobobit', alarm=5\"",
        f'qmgr -c "import hook metasched application/x-python default {folder}/metasched_pbs.py"',
    ]
    return Plan(tuple(steps), tuple(left), ("systemctl restart metasched",))
