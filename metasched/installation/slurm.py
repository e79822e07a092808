"""What is to be done for Slurm to ask the daemon: files, lines of slurm.conf and of the daemon's settings, rights."""

from __future__ import annotations

from pathlib import Path

from metasched.doctor.hook_settings import STATE, read_settings
from metasched.doctor.slurm import CHAIN
from metasched.installation.deployed import deployed
from metasched.installation.plan import SETTINGS, Plan, daemon_table, hook_file
from metasched.installation.steps import Add, Folder, Join, Journal, Step, Write
from metasched.records import InputError
from metasched.store.files.whole_files import read_text

#: Files of the hooks, those with settings of the site, and those that are run.
FILES = ("job_submit.lua", "rules.lua", "hooks.conf", "metasched-prolog", "metasched-epilog", "metasched_hooks.py")
#: The group that may use the daemon's socket.
GROUP = "metasched"
#: A hook that does nothing and loads metasched's: slurmctld does not start with one that lacks a function.
HOOK = """\
function slurm_job_submit(job_desc, part_list, submit_uid) return slurm.SUCCESS end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid) return slurm.SUCCESS end
{chain}
return slurm.SUCCESS
"""


def folder_of(slurm_conf: Path) -> Path:
    """Where the hooks are installed: a folder of their own beside slurm.conf."""
    return slurm_conf.parent / "metasched"


def plan(slurm_conf: Path, daemon_conf: Path, *, name: str, socket: str, state: str = STATE) -> Plan:
    """The plan for one cluster whose controller runs on this host.

    Parameters
    ----------
    slurm_conf, daemon_conf : paths of slurm.conf and of the daemon's settings.
    name : the cluster's name in the daemon's settings and in hooks.conf.
    socket : the daemon's Unix socket.
    state : where prolog and epilog keep jobs.

    Raises
    ------
    InputError
        When slurm.conf or the daemon's settings cannot be read.
    """
    conf = read_settings(slurm_conf)
    if conf is None:
        raise InputError("cannot be read, expected Slurm's configuration", where=str(slurm_conf))
    user, own = conf.get("slurmuser", "root").partition("(")[0], folder_of(slurm_conf)
    journal = Journal.of(own)
    steps: list[Step] = [Folder(own, "root", 0o755)]
    left: list[str] = []
    values = {"socket": socket, "cluster": name, "state": state}
    steps += [hook_file(own, "slurm", file, values, journal, left) for file in FILES]
    steps += [Folder(Path(state), user, 0o750), Join(user, GROUP)]
    _lua(slurm_conf.parent / "job_submit.lua", own, steps, left)
    _settings(slurm_conf.parent, own, left)
    lines = []
    plugins = conf.get("jobsubmitplugins", "")
    if not plugins:
        lines.append("JobSubmitPlugins=lua")
    elif "lua" not in plugins.replace("job_submit/", "").split(","):
        left.append(f"in {slurm_conf}, add lua: JobSubmitPlugins={plugins},lua")
    for key, script in (("PrologSlurmctld", "metasched-prolog"), ("EpilogSlurmctld", "metasched-epilog")):
        there = conf.get(key.lower(), "")
        if not there:
            lines.append(f"{key}={own}/{script}")
        elif Path(there).name == script:
            if Path(there) != own / script and _text(Path(there)) != read_text(deployed() / "slurm" / script):
                left.append(f"in {slurm_conf}, set {key}={own}/{script}: {there} is of another version")
        elif script not in _text(Path(there)):
            left.append(f"in {there}, add the line: {own}/{script} || true")
    if lines:
        steps.append(Add(slurm_conf, lines))
    table = ["[[slurm]]", f'name = "{name}"']
    if slurm_conf != Path("/etc/slurm/slurm.conf"):
        table.append(f'configuration = "{slurm_conf}"')
    steps += daemon_table(daemon_conf, "A Slurm cluster", name, table)
    return Plan(tuple(steps), tuple(left), _then(lines))


def _lua(script: Path, own: Path, steps: list[Step], left: list[str]) -> None:
    chain = CHAIN.replace("/etc/slurm/metasched", str(own))
    if not script.exists():
        steps.append(Write(script, HOOK.format(chain=chain), 0o644))
    elif "/v1/placements" in _text(script):
        if _text(script) != read_text(deployed() / "slurm" / script.name):
            left.append(f"remove {script}, a hook of another version, and run this again")
    elif f"{own}/job_submit.lua" not in _text(script):
        left.append(f"in {script}, add before the last line: {chain}")


def _settings(folder: Path, own: Path, left: list[str]) -> None:
    """What was set beside slurm.conf, where version 0.1.0 had its hooks, and has to be set in their own folder now."""
    for file in sorted(SETTINGS):
        if _text(folder / file):
            left.append(f"carry over what you changed in {folder / file} to {own / file}")


def _then(lines: list[str]) -> tuple[str, ...]:
    restarts = ["systemctl restart metasched"]
    if lines:
        restarts.append("systemctl restart slurmctld")
    return (*restarts, "metasched doctor")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
