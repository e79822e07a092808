"""Checks of Grid Engine's side of an installation: the cell's configuration, verifier and epilog."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from metasched.doctor.findings import Finding, User
from metasched.doctor.hook_settings import LONGEST, STATE, TELL, deadline_of, read_settings, switched_off, undelivered
from metasched.doctor.hooks import fails
from metasched.schedulers.grid_engine.commands import GridEngineCommands

#: The hooks, and the key of the cell's configuration that names each.
HOOKS = (("verifier", "jsv_url", "metasched-jsv"), ("epilog", "epilog", "metasched-epilog"))


def check_grid_engine(name: str, root: str, cell: str, socket: str | None) -> Iterator[Finding]:
    """Check one cell whose master runs on this host.

    Parameters
    ----------
    name : the cell's name in the daemon's configuration.
    root, cell : SGE_ROOT and SGE_CELL, empty for those of the environment, else the usual ones.
    socket : the daemon's Unix socket.
    """
    commands = GridEngineCommands.of(root, cell)
    try:
        conf = settings_of(commands.run("qconf", "-sconf"))
    except RuntimeError as error:
        yield Finding(f"{name}: master", "wrong", str(error), "start sge_qmaster, see root and cell in [[grid_engine]]")
        return
    yield Finding(f"{name}: master", "well", "answers")
    user = User.named(f"{os.geteuid()}")
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
        yield from _hook(name, word, key, value, script, user, socket)


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

    Examples
    --------
    >>> settings_of("#global:\njsv_url   none\nreporting_params   accounting=true \\\n   reporting=false\n")
    {'jsv_url': 'none', 'reporting_params': 'accounting=true    reporting=false'}
    """
    lines = (line.partition(" ") for line in printed.replace("\\\n", "").splitlines() if not line.startswith("#"))
    return {key: value.strip() for key, found, value in lines if found}


def _hook(name: str, word: str, key: str, value: str, script: str, user: User, socket: str | None) -> Iterator[Finding]:
    check = f"{name}: {word}"
    found = re.search(rf"(/[^\s@]*/{script})\b", value)
    if found is None:
        named = f"/etc/gridengine/metasched/{script}"
        wanted = f"script:{named}" if word == "verifier" else f"root@{named}"
        yield Finding(check, "wrong", f"{key} is {shlex.quote(value)}", f"qconf -mconf: {key} {wanted}")
        return
    path = Path(found[1])
    if why := user.may(path, "rx"):
        yield Finding(check, "wrong", why, f"chmod 0755 {path}")
        return
    yield from _settings(name, word, path.parent / "hooks.conf", socket)
    if why := fails([str(path), "--check"], user, {"PATH": os.environ.get("PATH", os.defpath)}):
        yield Finding(check, "wrong", why, f"run it as {user.name}: {path} --check")
    else:
        yield Finding(check, "well", f"{path} runs")


def _settings(name: str, word: str, path: Path, socket: str | None) -> Iterator[Finding]:
    check, conf = f"{name}: hooks.conf of the {word}", read_settings(path)
    if conf is None:
        yield Finding(check, "wrong", f"{path} cannot be read", f"copy deploy/gridengine/hooks.conf to {path.parent}")
        return
    if conf.get("cluster") != name:
        remedy = f"set cluster = {name}, as in the daemon's configuration"
        yield Finding(check, "wrong", f"{path}: cluster = {conf.get('cluster', '')}", remedy)
    if "socket" in conf and (socket is None or Path(conf["socket"]).resolve() != Path(socket).resolve()):
        remedy = f"set socket = {socket}" if socket else "use address and token_file"
        yield Finding(check, "wrong", f"{path}: socket = {conf['socket']}", remedy)
    if not 0.0 < deadline_of(conf) <= LONGEST:
        remedy = f"set at most {LONGEST:g} s, the master waits"
        yield Finding(check, "wrong", f"{path}: deadline = {conf['deadline']}", remedy)
    yield from switched_off(check, path, conf)
    if word == "epilog" and (line := undelivered(Path(conf.get("state", STATE)))):
        yield Finding(check, "watch", line, TELL)
