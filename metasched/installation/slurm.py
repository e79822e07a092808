"""What is to be done for Slurm to ask the daemon: files, lines of slurm.conf and of the daemon's settings, rights."""

from __future__ import annotations

from pathlib import Path

from metasched.doctor.slurm import CHAIN
from metasched.doctor.slurm_conf import slurm_settings
from metasched.installation.deployed import deployed
from metasched.installation.plan import SETTINGS, Plan
from metasched.installation.steps import Add, Folder, Join, Write
from metasched.records import InputError
from metasched.store.files.whole_files import read_text

#: Files of the hooks, those with settings of the site, and those that are run.
FILES = (
    "job_submit.lua", "job_numbers.lua", "rules.lua", "hooks.conf", "metasched-prolog", "metasched-epilog",
    "metasched_hooks.py", "metasched_numbers.py",
)  # fmt: skip
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


def complete(plan: Plan, slurm_conf: Path) -> None:
    """Add what the cluster needs whose controller runs on this host.

    Raises
    ------
    InputError : when slurm.conf or the daemon's configuration cannot be read.
    """
    conf = slurm_settings(slurm_conf)
    if conf is None:
        raise InputError(
            "cannot be read, expected Slurm's configuration (--slurm-conf names another file)", where=str(slurm_conf)
        )
    plan.check_folder()
    user, own = conf.get("slurmuser", "root").partition("(")[0], plan.folder
    plan.add_hooks(FILES)
    join = Join(user, GROUP)
    plan.steps += [Folder(Path(plan.state), user, 0o750), join]
    _lua(slurm_conf.parent / "job_submit.lua", plan)
    _settings(slurm_conf.parent, plan)
    lines = []
    plugins = conf.get("jobsubmitplugins", "")
    if not plugins:
        lines.append("JobSubmitPlugins=lua")
    elif "lua" not in plugins.replace("job_submit/", "").split(","):
        plan.left.append(f"in {slurm_conf}, add lua: JobSubmitPlugins={plugins},lua")
    for key, script in (("PrologSlurmctld", "metasched-prolog"), ("EpilogSlurmctld", "metasched-epilog")):
        there = conf.get(key.lower(), "")
        if not there:
            lines.append(f"{key}={own}/{script}")
        elif Path(there).name == script:
            if Path(there) != own / script and _text(Path(there)) != read_text(deployed() / "slurm" / script):
                plan.left.append(f"in {slurm_conf}, set {key}={own}/{script}: {there} is of another version")
        elif script not in _text(Path(there)):
            plan.left.append(f"in {there}, add the line: {own}/{script} || true")
    if lines:
        plan.steps.append(Add(slurm_conf, lines))
    if lines or join.description:  # a process keeps the groups that its user had when it started
        plan.then.insert(1, "systemctl restart slurmctld")
    usual = slurm_conf == Path("/etc/slurm/slurm.conf")
    plan.add_table("A Slurm cluster", "slurm", configuration="" if usual else str(slurm_conf))


def remaining(plan: Plan, slurm_conf: Path) -> None:
    """Add to what is left to do the lines in the site's own files that name hooks which are removed."""
    conf = slurm_settings(slurm_conf) or {}
    programs = {Path(conf.get(f"{name}slurmctld", "")) for name in ("prolog", "epilog")}
    for path in sorted({slurm_conf.parent / "job_submit.lua", *programs}):
        own = path.parent == plan.folder or str(path) in plan.journal.files
        if not own and f"{plan.folder}/" in _text(path):
            plan.left.append(f"in {path}, remove the line that names {plan.folder}")


def _lua(script: Path, plan: Plan) -> None:
    own = plan.folder
    chain = CHAIN.replace("/etc/slurm/metasched", str(own))
    if not script.exists():
        plan.steps.append(Write(script, HOOK.format(chain=chain), 0o644))
    elif "/v1/placements" in _text(script):
        if _text(script) != read_text(deployed() / "slurm" / script.name):
            plan.left.append(f"remove {script}, a hook of another version, and run this again")
    elif f"{own}/job_submit.lua" not in _text(script):
        plan.left.append(f"in {script}, add before the last line: {chain}")


def _settings(folder: Path, plan: Plan) -> None:
    """What was set beside slurm.conf, where version 0.1.0 had its hooks, and has to be set in their own folder now."""
    for file in sorted(SETTINGS):
        if _text(folder / file):
            plan.left.append(f"carry over what you changed in {folder / file} to {plan.folder / file}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
