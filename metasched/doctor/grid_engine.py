"""Checks of Grid Engine's side of an installation: the cell's configuration, verifier and epilog."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Generator, Iterator
from pathlib import Path

from metasched.doctor.findings import Finding, User
from metasched.doctor.hook_settings import STATE, TELL, check_settings, read_settings, undelivered
from metasched.doctor.hooks import fails
from metasched.schedulers.grid_engine.commands import GridEngineCommands

#: The hooks, and the key of the cell's configuration that names each.
HOOKS = (("verifier", "jsv_url", "metasched-jsv"), ("epilog", "epilog", "metasched-epilog"))


def check_grid_engine(name: str, root: str, cell: str, socket: str | None) -> Iterator[Finding]:
    """Check one cell whose master runs on this host."""
    commands = GridEngineCommands.of(root, cell)
    try:
        conf = settings_of(commands.run("qconf", "-sconf"))
    except RuntimeError as error:
        yield Finding(f"{name}: master", "wrong", str(error), "start sge_qmaster, see root and cell in [[grid_engine]]")
        return
    yield Finding(f"{name}: master", "well", "answers")
    user = User.named(f"{os.geteuid()}")
    paths: dict[str, Path] = {}
    for word, key, script in HOOKS:
        value = conf.get(key, "none")
        if word == "epilog":
            try:
                value, lacking = _epilog(commands, value, script)
            except RuntimeError as error:
                yield Finding(f"{name}: queues", "wrong", str(error), "start sge_qmaster")
                continue
            if lacking:
                found = f"no epilog of metasched in {', '.join(lacking)}"
                yield Finding(f"{name}: queues", "watch", found, "metasched setup gridengine --everywhere")
        if path := (yield from _hook(name, word, key, value, script, user)):
            paths[word] = path
    for settings in dict.fromkeys(path.parent / "hooks.conf" for path in paths.values()):
        yield from check_settings(name, settings, user, socket, "gridengine")
    if "epilog" in paths:
        state = Path(read_settings(paths["epilog"].parent / "hooks.conf").get("state", STATE))
        if line := undelivered(state):
            yield Finding(f"{name}: undelivered jobs", "watch", line, TELL)


def _epilog(commands: GridEngineCommands, of_cell: str, script: str) -> tuple[str, list[str]]:
    """The epilog of a queue that calls ours, else the cell's, and the queues whose epilog does not where some do."""
    lacking, calling = [], of_cell if script in of_cell else ""
    for queue in commands.run("qconf", "-sql").split():
        value = settings_of(commands.run("qconf", "-sq", queue)).get("epilog", "NONE")
        value = of_cell if value.upper() == "NONE" else value
        if script in value:
            calling = calling or value
        else:
            lacking.append(queue)
    return calling or of_cell, lacking if calling else []


def settings_of(printed: str) -> dict[str, str]:
    r"""The keys of a configuration as qconf prints it, with long lines in one.

    >>> settings_of("#global:\njsv_url   none\nreporting_params   accounting=true \\\n   reporting=false\n")
    {'jsv_url': 'none', 'reporting_params': 'accounting=true    reporting=false'}
    """
    lines = (line.partition(" ") for line in printed.replace("\\\n", "").splitlines() if not line.startswith("#"))
    return {key: value.strip() for key, found, value in lines if found}


def _hook(name: str, word: str, key: str, value: str, script: str, user: User) -> Generator[Finding, None, Path | None]:
    """Whether a hook is called and runs; comes to its path where it is called and may be run."""
    check = f"{name}: {word}"
    found = re.search(rf"(/[^\s@]*/{script})\b", value)
    if found is None:
        named = f"/etc/gridengine/metasched/{script}"
        wanted = f"script:{named}" if word == "verifier" else f"root@{named}"
        yield Finding(check, "wrong", f"{key} is {shlex.quote(value)}", f"qconf -mconf: {key} {wanted}")
        return None
    path = Path(found[1])
    if why := user.may(path, "rx"):
        yield Finding(check, "wrong", why, f"chmod 0755 {path}")
        return None
    if why := fails([str(path), "--check"], user, {"PATH": os.environ.get("PATH", os.defpath)}):
        yield Finding(check, "wrong", why, f"run it as {user.name}: {path} --check")
    else:
        yield Finding(check, "well", f"{path} runs")
    return path
