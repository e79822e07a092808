"""``metasched setup``: install what a batch scheduler needs to ask the daemon, and take it out again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from metasched.cli import output
from metasched.cli.options import CONFIGURATION, ConfigOption, JsonOption
from metasched.records import InputError

setup = typer.Typer(help="Install the hooks of a batch scheduler, or remove them.", no_args_is_help=True)


@setup.callback()
def _setup() -> None:
    pass


@setup.command("slurm")
def slurm(
    slurm_conf: Annotated[Path, typer.Option(help="Slurm's configuration.")] = Path("/etc/slurm/slurm.conf"),
    config: ConfigOption = None,
    name: Annotated[str, typer.Option(help="The cluster's name; by default ClusterName of slurm.conf.")] = "",
    socket: Annotated[str, typer.Option(help="The daemon's Unix socket.")] = "/run/metasched/metasched.sock",
    state: Annotated[str, typer.Option(help="Folder where prolog and epilog store jobs.")] = "/var/lib/metasched/hooks",
    plan: Annotated[bool, typer.Option("--plan", help="Only show the plan.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Remove the files and lines that an earlier call installed.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Install the hooks in the folder of slurm.conf, as root on the host of slurmctld. Shows the plan and asks first.

    No line and no file of the site is changed or removed: lines are added at the end, between two comments. If the
    site has its own hooks, the lines to add to them are only shown. Nothing is restarted.
    """
    from metasched.doctor.hook_settings import read_settings
    from metasched.installation import slurm as installation
    from metasched.installation.steps import Journal, install, undoing
    from metasched.installation.steps import undo as take_out

    journal = Journal.read(installation.folder_of(slurm_conf) / installation.JOURNAL)
    left: tuple[str, ...] = ()
    then: tuple[str, ...] = ("systemctl restart slurmctld", "systemctl restart metasched")
    if undo:
        planned = undoing(journal)
    else:
        settings = read_settings(slurm_conf) or {}
        named = name or settings.get("clustername", "cluster")
        if not re.fullmatch(r"[\w.-]+", named):
            raise InputError(f"--name is {named!r}, expected letters, digits and _.-")
        made = installation.plan(
            slurm_conf.absolute(), Path(config or CONFIGURATION).absolute(), name=named, socket=socket, state=state
        )
        planned, left, then = [step.description for step in made.steps], made.left, made.then
    if as_json:
        output.print_json({"steps": planned, "left_to_you": list(left), "then": list(then) if planned else []})
    else:
        for line in planned or ["there is nothing to do"]:
            output.say(line)
        for line in left:
            output.say(f"do this by hand: {line}")
    if plan or not planned:
        return
    if not yes and not typer.confirm("Do it?", err=True):
        raise typer.Exit(1)
    try:
        if undo:
            take_out(journal)
        else:
            install(made.steps, journal)
    except OSError as error:
        output.to_stderr(
            f"{error.filename}: {(error.strerror or str(error)).lower()}; what was done is noted, see --undo"
        )
        raise typer.Exit(1) from None
    if not as_json:
        output.say(f"done; then: {'; '.join(then)}")
