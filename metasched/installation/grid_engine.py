"""What is to be done for Grid Engine to ask the daemon: files, settings of the cell and its queues, an operator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from metasched.doctor.hook_settings import STATE
from metasched.installation.cell import GLOBAL, OPERATORS, Setting, value_of
from metasched.installation.plan import Plan, daemon_table, hook_file
from metasched.installation.steps import Folder, Journal, Step, Write
from metasched.schedulers.grid_engine.commands import GridEngineCommands

#: Where the hooks are installed, on every host.
FOLDER = Path("/etc/gridengine/metasched")
#: Files of the hooks.
FILES = (
    "metasched-jsv", "metasched_jsv.py", "metasched_site_verifier.py", "metasched-epilog", "metasched_epilog.py",
    "metasched-load-sensor", "load-sensor.conf", "hooks.conf", "metasched_hooks.py", "metasched_advice.py",
)  # fmt: skip
#: Names the verifier that the site has, which ours speaks to.
SITE_VERIFIER = "site-verifier"
#: The daemon's user, who may let jobs go that were bound to hosts.
USER = "metasched"


def plan(
    folder: Path,
    daemon_conf: Path,
    *,
    name: str,
    socket: str,
    state: str = STATE,
    root: str = "",
    cell: str = "",
    queues: Sequence[str] = (),
    everywhere: bool = False,
) -> Plan:
    """The plan for one cell whose master runs on this host.

    Parameters
    ----------
    folder : where the hooks are installed, the same on every host.
    daemon_conf : path of the daemon's settings.
    name : the cell's name in the daemon's settings and in hooks.conf.
    socket : the daemon's Unix socket.
    state : where the epilog keeps jobs.
    root, cell : SGE_ROOT and SGE_CELL, empty for those of the environment, else the usual ones.
    queues : whose jobs are reported, all where empty.
    everywhere : whether every execution host has the folder: a queue whose epilog is missing is disabled.

    Raises
    ------
    InputError
        When the daemon's settings cannot be read.
    RuntimeError
        When Grid Engine does not answer.
    """
    commands = GridEngineCommands.of(root, cell)
    journal = Journal.of(folder)
    steps: list[Step] = [Folder(folder, "root", 0o755)]
    left: list[str] = []
    values = {"socket": socket, "cluster": name, "state": state}
    steps += [hook_file(folder, "gridengine", file, values, journal, left) for file in FILES]
    steps.append(Folder(Path(state), "root", 0o750))
    _verifier(commands, folder, journal, steps, left)
    allowed = value_of(commands, GLOBAL, "jsv_allowed_mod")
    if allowed and "l_hard" not in allowed.split(",") and allowed.lower() != "none":
        steps.append(Setting(commands, GLOBAL, "jsv_allowed_mod", f"{allowed},l_hard", allowed))
    if not value_of(commands, OPERATORS, USER):
        steps.append(Setting(commands, OPERATORS, USER, USER))
    _epilogs(commands, folder, queues or commands.run("qconf", "-sql").split(), everywhere, steps, left)
    table = ["[[grid_engine]]", f'name = "{name}"']
    table += [f'{key} = "{value}"' for key, value in (("root", root), ("cell", cell)) if value]
    steps += daemon_table(daemon_conf, "A cell of Grid Engine", name, table)
    then = ["systemctl restart metasched", "metasched doctor"]
    return Plan(tuple(steps), tuple(left), tuple(then))


def _verifier(commands: GridEngineCommands, folder: Path, journal: Journal, steps: list[Step], left: list[str]) -> None:
    """The cell's verifier, with the one that the site has behind it, run as the user that it is run as."""
    there = value_of(commands, GLOBAL, "jsv_url")
    ours, named = f"{folder}/metasched-jsv", folder / SITE_VERIFIER
    if ours in there:
        return
    if there.lower() in ("", "none"):
        if named.exists():
            left.append(f"{named} names a verifier, but the cell has none: remove the file if it is not to be called")
        steps.append(Setting(commands, GLOBAL, "jsv_url", f"script:{ours}", there or "none"))
        return
    found = re.fullmatch(r"(?:script:)?((?:[\w.-]+@)?)(/\S+)", there)
    if found is None:
        left.append(f"the cell already has a verifier, {there}: only one can be set by qconf -mconf jsv_url")
        return
    write = Write(named, f"{found[2]}\n", 0o644, journal.files.get(str(named), ""))
    if named.exists() and write.kept:
        left.append(f"{write.kept}: the cell's verifier, {there}, is not called from it")
        return
    steps += [write, Setting(commands, GLOBAL, "jsv_url", f"script:{found[1]}{ours}", there)]


def _epilogs(
    commands: GridEngineCommands,
    folder: Path,
    queues: Sequence[str],
    everywhere: bool,
    steps: list[Step],
    left: list[str],
) -> None:
    """The epilog of each queue, beside what the queue or else the cell has."""
    ours = f"{folder}/metasched-epilog"
    of_cell = value_of(commands, GLOBAL, "epilog")
    for queue in queues:
        there = value_of(commands, f"queue:{queue}", "epilog")
        own = of_cell if there.upper() in ("", "NONE") else there
        if ours in own:
            continue
        if not everywhere:
            left.append(
                f"copy {folder} to every execution host, or share it, and run this again with --everywhere: "
                "a queue whose epilog is missing is disabled"
            )
            return
        if own.upper() in ("", "NONE"):
            value = f"root@{ours}"
        elif re.fullmatch(r"root@/[^,\[\]]+", own):
            value = f"root@{ours} --beside {own.removeprefix('root@')}"
        else:
            left.append(f"queue {queue} already has an epilog, {own}: let it call, as root, {ours} || true")
            continue
        steps.append(Setting(commands, f"queue:{queue}", "epilog", value, there or "NONE"))
