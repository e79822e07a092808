"""Checks of Slurm's side of an installation: the hook, prolog and epilog, their conf, and who may read what."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from metasched.doctor.findings import Finding, User
from metasched.doctor.hook_settings import STATE, TELL, check_settings, read_settings, undelivered
from metasched.doctor.hooks import NO_JOB, called_by, fails, loaded_by
from metasched.doctor.lua import libraries_of, loadable, lua_error, missing_modules
from metasched.doctor.slurm_conf import slurm_settings
from metasched.schedulers.slurm.commands import SlurmCommands

#: Modules of Lua that the hook loads, and Debian's packages of them.
LUA_MODULES = {"socket": "lua-socket", "socket.unix": "lua-socket", "cjson.safe": "lua-cjson"}
#: How a site's own job_submit.lua loads the hook.
CHAIN = 'pcall(dofile, "/etc/slurm/metasched/job_submit.lua")'


def check_slurm(name: str, configuration: str, socket: str | None, *, sets_clocks: bool = False) -> Iterator[Finding]:
    """Check one cluster whose controller runs on this host."""
    path = Path(configuration or "/etc/slurm/slurm.conf")
    conf = slurm_settings(path)
    if conf is None:
        yield Finding(f"{name}: slurm.conf", "wrong", f"{path} cannot be read", "name it under [[slurm]] configuration")
        return
    try:
        SlurmCommands.of(configuration).run("scontrol", "ping")
        yield Finding(f"{name}: controller", "well", "answers")
    except RuntimeError as error:
        yield Finding(f"{name}: controller", "wrong", str(error), "start slurmctld")
    try:
        user = User.named(conf.get("slurmuser", "root").partition("(")[0])
    except KeyError:
        yield Finding(f"{name}: SlurmUser", "wrong", f"there is no user {conf['slurmuser']}", "set SlurmUser")
        return
    yield from _hook(name, path, conf, user, socket)
    yield from _scripts(name, conf, user)
    if sets_clocks:
        yield from _clocks(name, conf)
    kept = conf.get("accountingstoreflags", "")
    if "slurmdbd" in conf.get("accountingstoragetype", "") and "job_comment" not in kept:
        lost = "accounting leaves out comments: jobs are not found after the daemon was down"
        yield Finding(f"{name}: accounting", "watch", lost, "set AccountingStoreFlags=job_comment")


def _clocks(name: str, conf: dict[str, str]) -> Iterator[Finding]:
    """Whether Slurm sets the clocks that jobs ask for."""
    check = f"{name}: clocks of jobs"
    plugins = conf.get("taskplugin", "").lower()
    if not {"task/cgroup", "task/affinity", "cgroup", "affinity"} & set(plugins.replace(" ", "").split(",")):
        yield Finding(check, "wrong", "no task plugin sets them", "set TaskPlugin=task/cgroup,task/affinity")
    elif "batch_step_set_cpu_freq" not in conf.get("launchparameters", "").lower():
        lost = "they are set in steps of srun, not in what batch scripts run themselves"
        yield Finding(check, "watch", lost, "set LaunchParameters=batch_step_set_cpu_freq")
    else:
        yield Finding(check, "well", "set in all steps")


def _hook(name: str, path: Path, conf: dict[str, str], user: User, socket: str | None) -> Iterator[Finding]:
    check, libraries = f"{name}: hook", libraries_of(conf.get("plugindir", ""))
    if "lua" not in conf.get("jobsubmitplugins", "").replace("job_submit/", "").split(","):
        yield Finding(
            check, "wrong", "slurmctld does not call a Lua hook", "set JobSubmitPlugins=lua and restart slurmctld"
        )
    script = path.parent / "job_submit.lua"
    if why := user.may(script, "r"):
        yield Finding(
            check, "wrong", why, f"copy deploy/slurm/job_submit.lua to {path.parent}, readable by {user.name}"
        )
    else:
        yield from _lua(check, script, user, libraries)
    library = loadable(libraries)
    if library is None:
        expected = f"expected one of {', '.join(libraries)}"
        yield Finding(check, "wrong", f"Lua's library is not installed, {expected}", "apt-get install liblua5.1-0")
    for module in missing_modules(library, tuple(LUA_MODULES)) if library else ():
        line = f"Lua's {module} is not installed for {library}, which Slurm loads"
        yield Finding(check, "wrong", line, f"apt-get install {LUA_MODULES[module]}")
    own = None if user.may(script, "r") else loaded_by(script)
    yield from check_settings(name, (own or script).parent / "hooks.conf", user, socket, "slurm")


def _lua(check: str, script: Path, user: User, libraries: Sequence[str]) -> Iterator[Finding]:
    own = loaded_by(script)
    if own is None:
        yield Finding(check, "wrong", f"{script} does not load metasched's hook", f"add this line: {CHAIN}")
        return
    rules, numbers = own.parent / "rules.lua", own.parent / "job_numbers.lua"
    for each in dict.fromkeys((script, own, rules, numbers)):
        if each != script and (why := user.may(each, "r")):
            if each == own or (each == numbers and _mentions(own, numbers.name)):  # hooks of 0.1.0 read no numbers
                yield Finding(check, "wrong", why, f"copy deploy/slurm/{each.name} there, readable by {user.name}")
            continue
        if error := lua_error(each, libraries):
            yield Finding(check, "wrong", error, f"repair {each}: slurmctld does not start with it")
        elif each not in (rules, numbers):
            yield Finding(check, "well", f"{each}, readable by {user.name}")


def _mentions(script: Path, text: str) -> bool:
    with suppress(OSError):
        return text in script.read_text(errors="replace")
    return False


def _scripts(name: str, conf: dict[str, str], user: User) -> Iterator[Finding]:
    for key, script in (("PrologSlurmctld", "metasched-prolog"), ("EpilogSlurmctld", "metasched-epilog")):
        check, path = f"{name}: {script.removeprefix('metasched-')}", conf.get(key.lower(), "")
        if not path:
            yield Finding(
                check, "wrong", f"{key} is not set", f"set {key}=/etc/slurm/{script}, or call that from yours"
            )
            continue
        if why := user.may(path, "rx"):
            yield Finding(check, "wrong", why, f"let {user.name} run it: chmod 0755 {path}")
            continue
        own = called_by(Path(path), script)
        if own is None:
            without = f"{path} does not call {script}"
            yield Finding(check, "wrong", without, f"add to it: /etc/slurm/metasched/{script} || true")
            continue
        if why := user.may(own, "rx"):
            yield Finding(check, "wrong", why, f"let {user.name} run it: chmod 0755 {own}")
            continue
        yield from _run(check, own, user)
        if key == "EpilogSlurmctld":
            yield from _kept(name, own.resolve().parent / "hooks.conf", user)


def _run(check: str, script: Path, user: User) -> Iterator[Finding]:
    """Whether a hook does its work when slurmctld runs it."""
    if os.geteuid() not in (0, user.uid):
        yield Finding(check, "watch", f"only root can run {script} as {user.name}", "run metasched doctor as root")
        return
    if check.endswith("epilog"):
        why, remedy = fails([str(script), "--check"], user), f"run it as {user.name}: {script} --check"
    else:
        conf = read_settings(script.resolve().parent / "hooks.conf")
        state = Path(conf.get("state", STATE))
        why = fails([str(script)], user, {"SLURM_JOB_ID": NO_JOB})
        off = Path(conf.get("off", script.resolve().parent / "metasched.off"))
        noted: list[Path] = []
        with suppress(OSError):  # as where root may not enter the folder, on another host
            # The others there are the starts of jobs that run, whose numbers may end alike.
            noted = [path for path in state.glob("start.*") if path.name.rpartition(".")[2] == NO_JOB]
        if not why and not off.exists() and not user.may(state, "rwx"):
            try:
                float(noted[0].read_text())
            except (OSError, IndexError, ValueError):
                why = f"{script} does not record when a job starts"
        with suppress(OSError):
            for path in noted:
                path.unlink()
        remedy = f"run it as {user.name}: SLURM_JOB_ID={NO_JOB} {script}"
    if why:
        yield Finding(check, "wrong", why, remedy)
    else:
        yield Finding(check, "well", f"{script}, runs as {user.name}")


def _kept(name: str, path: Path, user: User) -> Iterator[Finding]:
    check = f"{name}: undelivered jobs"
    state = Path(read_settings(path).get("state", STATE))
    if why := user.may(state, "rwx"):
        remedy = f"install -d -o {user.name} -m 0750 {state}, or set `state` in {path}"
        yield Finding(check, "wrong", why, remedy)
        return
    if line := undelivered(state):
        yield Finding(check, "watch", line, TELL)
    else:
        yield Finding(check, "well", f"{state}, none undelivered")
