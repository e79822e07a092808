"""``metasched setup``: install what a batch scheduler needs to ask the daemon, and take it out again."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from metasched.cli import output
from metasched.cli.options import ConfigOption, JsonOption, configuration_path
from metasched.records import InputError

if TYPE_CHECKING:
    from metasched.installation.plan import Plan
    from metasched.installation.steps import Step

SOCKET = "/run/metasched/metasched.sock"
SocketOption = Annotated[
    str | None, typer.Option(help=f"The daemon's Unix socket; by default as its configuration says, else {SOCKET}.")
]
PlanOption = Annotated[bool, typer.Option("--plan", help="Only show the plan.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
UndoOption = Annotated[bool, typer.Option("--undo", help="Remove what an earlier call installed.")]

setup = typer.Typer(help="Install the hooks of a batch scheduler, or remove them.", no_args_is_help=True)


@setup.callback()
def _setup() -> None:
    pass


@setup.command("slurm")
def slurm(
    slurm_conf: Annotated[Path, typer.Option(help="Slurm's configuration.")] = Path("/etc/slurm/slurm.conf"),
    config: ConfigOption = None,
    name: Annotated[str, typer.Option(help="The cluster's name; by default ClusterName of slurm.conf.")] = "",
    socket: SocketOption = None,
    state: Annotated[str, typer.Option(help="Folder where prolog and epilog store jobs.")] = "/var/lib/metasched/hooks",
    plan: PlanOption = False,
    yes: YesOption = False,
    undo: UndoOption = False,
    as_json: JsonOption = False,
) -> None:
    """Install the hooks in the folder of slurm.conf, as root on the host of slurmctld. Shows the plan and asks first.

    No line and no file of the site is changed or removed: lines are added at the end, between two comments. If the
    site has its own hooks, the lines to add to them are only shown. Nothing is restarted.
    """
    from metasched.doctor.hook_settings import read_settings
    from metasched.installation import slurm as installation

    def planned() -> Plan:
        settings = read_settings(slurm_conf) or {}
        named = _checked(name or settings.get("clustername", "cluster"))
        return installation.plan(
            slurm_conf.absolute(),
            configuration_path(config).absolute(),
            name=named,
            socket=_socket(socket, config),
            state=state,
        )

    journal = installation.folder_of(slurm_conf) / installation.JOURNAL
    then = ("systemctl restart slurmctld", "systemctl restart metasched")
    _carry_out(planned, journal, then, only_plan=plan, yes=yes, undo=undo, as_json=as_json)


@setup.command("gridengine")
def grid_engine(
    folder: Annotated[
        Path | None, typer.Option(help="Where hooks go, on every host. [/etc/gridengine/metasched]")
    ] = None,
    everywhere: Annotated[bool, typer.Option("--everywhere", help="Every execution host has this folder.")] = False,
    queue: Annotated[list[str] | None, typer.Option(help="Only the epilog of this queue; repeatable.")] = None,
    root: Annotated[str, typer.Option(help="SGE_ROOT, if it is not the environment's.")] = "",
    cell: Annotated[str, typer.Option(help="SGE_CELL, if it is not the environment's.")] = "",
    config: ConfigOption = None,
    name: Annotated[str, typer.Option(help="The cell's name in the daemon's configuration.")] = "cell",
    socket: SocketOption = None,
    state: Annotated[str, typer.Option(help="Folder where the epilog stores jobs.")] = "/var/lib/metasched/hooks",
    plan: PlanOption = False,
    yes: YesOption = False,
    undo: UndoOption = False,
    as_json: JsonOption = False,
) -> None:
    """Install the verifier and the epilog of Grid Engine, as root on the host of sge_qmaster. Shows the plan and asks.

    The settings of the cell and its queues are changed by qconf, and restored by --undo. An existing verifier of the
    cell judges each job before ours, and an existing epilog of a queue is run after ours, if it runs as root. Any other
    is left in place, with instructions.
    """
    from metasched.installation import grid_engine as installation
    from metasched.installation.cell import set_back

    where = (folder or installation.FOLDER).absolute()

    def planned() -> Plan:
        return installation.plan(
            where, configuration_path(config).absolute(), name=_checked(name),
            socket=_socket(socket, config), state=state, root=root, cell=cell, queues=queue or (),
            everywhere=everywhere,
        )  # fmt: skip

    journal, then = where / installation.JOURNAL, ("systemctl restart metasched",)
    _carry_out(planned, journal, then, only_plan=plan, yes=yes, undo=undo, as_json=as_json, set_back=set_back)


@setup.command("pbs")
def pbs(
    folder: Annotated[Path | None, typer.Option(help="Where the files go. [/etc/pbs/metasched]")] = None,
    config: ConfigOption = None,
    name: Annotated[str, typer.Option(help="The cluster's name in the daemon's configuration.")] = "pbs",
    socket: SocketOption = None,
    state: Annotated[str, typer.Option(help="Folder where the hook stores jobs.")] = "/var/lib/metasched/hooks",
    plan: PlanOption = False,
    yes: YesOption = False,
    undo: UndoOption = False,
    as_json: JsonOption = False,
) -> None:
    """Install the files of OpenPBS's hook, as root on the server's host. Shows the plan and asks first.

    The hook itself is created by two qmgr commands, which are only shown.
    """
    from metasched.installation import pbs as installation

    where = (folder or installation.FOLDER).absolute()

    def planned() -> Plan:
        conf = configuration_path(config).absolute()
        return installation.plan(where, conf, name=_checked(name), socket=_socket(socket, config), state=state)

    then = ('qmgr -c "delete hook metasched"', "systemctl restart metasched")
    _carry_out(planned, where / installation.JOURNAL, then, only_plan=plan, yes=yes, undo=undo, as_json=as_json)


@setup.command("oar")
def oar(
    folder: Annotated[Path | None, typer.Option(help="Where the files go. [/etc/oar/metasched]")] = None,
    property: Annotated[str, typer.Option(help="Property of the resources that makes partitions.")] = "",
    config: ConfigOption = None,
    name: Annotated[str, typer.Option(help="The cluster's name in the daemon's configuration.")] = "oar",
    socket: SocketOption = None,
    plan: PlanOption = False,
    yes: YesOption = False,
    undo: UndoOption = False,
    as_json: JsonOption = False,
) -> None:
    """Install the files and the admission rule of OAR, as root on its server. Shows the plan and asks first.

    The rule is added to the site's own by oaradmissionrules; --undo deletes it, unless it was changed since.
    """
    from metasched.installation import oar as installation

    where = (folder or installation.FOLDER).absolute()
    if not re.fullmatch(r"([A-Za-z_]\w{0,62})?", property, re.ASCII):
        raise InputError(f"--property is {property!r}, expected the name of a property")

    def planned() -> Plan:
        conf = configuration_path(config).absolute()
        return installation.plan(where, conf, name=_checked(name), socket=_socket(socket, config), attribute=property)

    journal, then = where / installation.JOURNAL, ("systemctl restart metasched",)
    _carry_out(
        planned, journal, then, only_plan=plan, yes=yes, undo=undo, as_json=as_json, set_back=installation.set_back
    )


@setup.command("htcondor")
def htcondor(
    folder: Annotated[Path | None, typer.Option(help="Where the files go. [/etc/condor/metasched]")] = None,
    condor_conf: Annotated[
        Path | None, typer.Option(help="Folder of HTCondor's settings. [/etc/condor/config.d]")
    ] = None,
    no_daemon: Annotated[bool, typer.Option("--no-daemon", help="The daemon runs on another host.")] = False,
    config: ConfigOption = None,
    name: Annotated[str, typer.Option(help="The pool's name in the daemon's configuration.")] = "condor",
    plan: PlanOption = False,
    yes: YesOption = False,
    undo: UndoOption = False,
    as_json: JsonOption = False,
) -> None:
    """Install the cron job and the job transforms of HTCondor, as root on each host. Shows the plan and asks first.

    Never run in a real pool. No file of the site is changed: one is added to HTCondor's settings.
    """
    from metasched.installation import htcondor as installation

    where = (folder or installation.FOLDER).absolute()

    def planned() -> Plan:
        conf = None if no_daemon else configuration_path(config).absolute()
        settings = (condor_conf or installation.CONFIGURATION).absolute()
        return installation.plan(where, settings, conf, name=_checked(name))

    journal, then = where / installation.JOURNAL, ("condor_reconfig", "systemctl restart metasched")
    _carry_out(planned, journal, then, only_plan=plan, yes=yes, undo=undo, as_json=as_json)


@setup.command("flux")
def flux(
    folder: Annotated[Path | None, typer.Option(help="Where the files go. [/etc/flux/metasched]")] = None,
    flux_conf: Annotated[
        Path | None, typer.Option(help="Folder of Flux's configuration. [/etc/flux/system/conf.d]")
    ] = None,
    config: ConfigOption = None,
    name: Annotated[str, typer.Option(help="The instance's name in the daemon's configuration.")] = "flux",
    socket: SocketOption = None,
    plan: PlanOption = False,
    yes: YesOption = False,
    undo: UndoOption = False,
    as_json: JsonOption = False,
) -> None:
    """Install the frobnicator plugin of Flux, as root on its first host. Shows the plan and asks first.

    Never run on a real instance. No file of the site is changed: one is added to Flux's configuration, unless the site
    says there itself how jobs are taken in; then the line to add is shown.
    """
    from metasched.installation import flux as installation

    where = (folder or installation.FOLDER).absolute()

    def planned() -> Plan:
        conf = configuration_path(config).absolute()
        settings = (flux_conf or installation.CONFIGURATION).absolute()
        return installation.plan(where, settings, conf, name=_checked(name), socket=_socket(socket, config))

    journal, then = where / installation.JOURNAL, ("flux config reload", "systemctl restart metasched")
    _carry_out(planned, journal, then, only_plan=plan, yes=yes, undo=undo, as_json=as_json)


def _socket(named: str | None, config: Path | None) -> str:
    """The socket that hooks ask: the one named, else the daemon's, so that both have the same."""
    from metasched.service.configuration import read_configuration

    path = configuration_path(config)
    return named or (path.exists() and read_configuration(path).listen.socket) or SOCKET


def _checked(name: str) -> str:
    if not re.fullmatch(r"[\w.-]+", name):
        raise InputError(f"--name is {name!r}, expected letters, digits and _.-")
    return name


def _carry_out(
    made: Callable[[], Plan],
    noted: Path,
    then: tuple[str, ...],
    *,
    only_plan: bool,
    yes: bool,
    undo: bool,
    as_json: bool,
    set_back: Callable[[dict[str, str]], object] | None = None,
) -> None:
    """Show a plan, or how what was noted is undone, and do it; a scheduler's settings by ``set_back``."""
    from metasched.installation.steps import Journal, install, undoing
    from metasched.installation.steps import undo as take_out

    journal = Journal.read(noted)
    steps: tuple[Step, ...] = ()
    left: tuple[str, ...] = ()
    try:
        if undo:
            planned = undoing(journal)
        else:
            found = made()
            steps, left, then = found.steps, found.left, found.then
            planned = [step.description for step in steps]
    except RuntimeError as error:
        raise InputError(str(error)) from None
    if as_json:
        output.print_json({"steps": planned, "left_to_you": list(left), "then": list(then) if planned else []})
    else:
        for line in planned or ["there is nothing to do"]:
            output.say(line)
        for line in left:
            output.say(f"do this by hand: {line}")
    if only_plan or not planned:
        return
    if not yes and not typer.confirm("Do it?", err=True):
        raise typer.Exit(1)
    try:
        if undo:
            take_out(journal, set_back)
        else:
            install(steps, journal)
    except OSError as error:
        output.to_stderr(
            f"{error.filename}: {(error.strerror or str(error)).lower()}; --undo reverts the steps done so far"
        )
        raise typer.Exit(1) from None
    except RuntimeError as error:
        output.to_stderr(f"{error}; --undo reverts the steps done so far")
        raise typer.Exit(1) from None
    if not as_json:
        output.say(f"done; then: {'; '.join(then)}")
