"""What is to be done for Grid Engine to ask the daemon: files, settings of the cell and its queues, an operator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from metasched.installation.cell import GLOBAL, OPERATORS, Setting, value_of
from metasched.installation.plan import Plan
from metasched.installation.steps import Folder, Write
from metasched.schedulers.grid_engine.commands import GridEngineCommands

#: Where the hooks are installed, on every host.
FOLDER = Path("/etc/gridengine/metasched")
#: Files of the hooks.
FILES = (
    "metasched-jsv", "metasched_jsv.py", "metasched_lines.py", "metasched_site_verifier.py", "metasched-epilog",
    "metasched_epilog.py", "metasched-load-sensor", "load-sensor.conf", "hooks.conf", "metasched_hooks.py",
    "metasched_advice.py", "metasched_numbers.py",
)  # fmt: skip
#: Names the verifier that the site has, which ours speaks to.
SITE_VERIFIER = "site-verifier"
#: The daemon's user, who may let jobs go that were bound to hosts.
USER = "metasched"


def complete(
    plan: Plan, *, root: str = "", cell: str = "", queues: Sequence[str] = (), everywhere: bool = False
) -> None:
    """Add what the cell needs whose master runs on this host.

    Parameters
    ----------
    plan : begun; its folder is the same on every host.
    root, cell : SGE_ROOT and SGE_CELL, empty for those of the environment, else the usual ones.
    queues : whose jobs are reported, all where empty.
    everywhere : whether every execution host has the folder: a queue whose epilog is missing is disabled.

    Raises
    ------
    InputError : when the daemon's configuration cannot be read.
    RuntimeError : when Grid Engine does not answer.
    """
    commands = GridEngineCommands.of(root, cell)
    plan.add_hooks(FILES)
    plan.steps.append(Folder(Path(plan.state), "root", 0o750))
    _verifier(commands, plan)
    allowed = value_of(commands, GLOBAL, "jsv_allowed_mod")
    if allowed and "l_hard" not in allowed.split(",") and allowed.lower() != "none":
        plan.steps.append(Setting(commands, GLOBAL, "jsv_allowed_mod", f"{allowed},l_hard", allowed))
    if not value_of(commands, OPERATORS, USER):
        plan.steps.append(Setting(commands, OPERATORS, USER, USER))
    _epilogs(commands, plan, queues or commands.run("qconf", "-sql").split(), everywhere)
    plan.add_table("A cell of Grid Engine", "grid_engine", root=root, cell=cell)


def _verifier(commands: GridEngineCommands, plan: Plan) -> None:
    """The cell's verifier, with the one that the site has behind it, run as the user that it is run as."""
    there = value_of(commands, GLOBAL, "jsv_url")
    ours, named = f"{plan.folder}/metasched-jsv", plan.folder / SITE_VERIFIER
    if ours in there:
        return
    if there.lower() in ("", "none"):
        if named.exists():
            plan.left.append(
                f"{named} names a verifier, but the cell has none: remove the file if it is not to be called"
            )
        plan.steps.append(Setting(commands, GLOBAL, "jsv_url", f"script:{ours}", there or "none"))
        return
    found = re.fullmatch(r"(?:script:)?((?:[\w.-]+@)?)(/\S+)", there)
    if found is None:
        plan.left.append(f"the cell already has a verifier, {there}: only one can be set by qconf -mconf jsv_url")
        return
    write = Write(named, f"{found[2]}\n", 0o644, plan.journal.files.get(str(named), ""))
    if named.exists() and write.kept:
        plan.left.append(f"{write.kept}: the cell's verifier, {there}, is not called from it")
        return
    plan.steps += [write, Setting(commands, GLOBAL, "jsv_url", f"script:{found[1]}{ours}", there)]


def _epilogs(commands: GridEngineCommands, plan: Plan, queues: Sequence[str], everywhere: bool) -> None:
    """The epilog of each queue, beside what the queue or else the cell has."""
    ours = f"{plan.folder}/metasched-epilog"
    of_cell = value_of(commands, GLOBAL, "epilog")
    for queue in queues:
        there = value_of(commands, f"queue:{queue}", "epilog")
        own = of_cell if there.upper() in ("", "NONE") else there
        if ours in own:
            continue
        if not everywhere:
            plan.left.append(
                f"copy {plan.folder} to every execution host, or share it, and run this again with --everywhere: "
                "a queue whose epilog is missing is disabled"
            )
            return
        if own.upper() in ("", "NONE"):
            value = f"root@{ours}"
        elif re.fullmatch(r"root@/[^,\[\]]+", own):
            value = f"root@{ours} --beside {own.removeprefix('root@')}"
        else:
            plan.left.append(f"queue {queue} already has an epilog, {own}: let it call, as root, {ours} || true")
            continue
        plan.steps.append(Setting(commands, f"queue:{queue}", "epilog", value, there or "NONE"))
