"""``metasched setup``: install what a batch scheduler needs to ask the daemon, and take it out again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from metasched.cli import output
from metasched.cli.options import ConfigOption, JsonOption, configuration_path, grouped
from metasched.doctor.hook_settings import STATE
from metasched.doctor.slurm_conf import slurm_settings
from metasched.installation import cell as of_cell
from metasched.installation import flux as of_flux
from metasched.installation import grid_engine as of_grid_engine
from metasched.installation import htcondor as of_htcondor
from metasched.installation import oar as of_oar
from metasched.installation import pbs as of_pbs
from metasched.installation import slurm as of_slurm
from metasched.installation import steps as installing
from metasched.installation.alone import alone
from metasched.installation.plan import Plan
from metasched.records import InputError
from metasched.service.configuration import read_configuration
from metasched.store.files.whole_files import refusal

#: The daemon's socket where nothing names another, and what is left to do once hooks are removed.
SOCKET, RESTART = "/run/metasched/metasched.sock", ("systemctl restart metasched",)
FolderOption = Annotated[Path, typer.Option(help="Where the files go.")]
NameOption = Annotated[str, typer.Option(help="The cluster's name in the daemon's configuration.")]
SocketOption = Annotated[
    str | None, typer.Option(help=f"The daemon's Unix socket; by default as its configuration says, else {SOCKET}.")
]
StateOption = Annotated[str, typer.Option(help="Folder where jobs that ended are kept until the daemon has them.")]

setup = typer.Typer(help="Install the hooks of a batch scheduler, or remove them.", no_args_is_help=True)


@dataclass(frozen=True)
class Call:
    """The options of the setups of all schedulers."""

    config: ConfigOption = None
    plan: Annotated[bool, typer.Option("--plan", help="Only show the plan.")] = False
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False
    undo: Annotated[bool, typer.Option("--undo", help="Remove what an earlier call installed.")] = False
    as_json: JsonOption = False

    def begun(
        self, scheduler: str, folder: Path, name: str, socket: str | None = None, state: str = "", *, here: bool = True
    ) -> Plan:
        """A plan without steps but for its folder.

        Parameters
        ----------
        scheduler : the folder of its files in deploy.
        folder : where they go.
        name : the cluster's.
        socket : that hooks ask; by default that of the daemon's configuration, so that both have the same.
        state : folder where hooks keep jobs.
        here : whether the daemon runs on this host.
        """
        if not re.fullmatch(r"[\w.-]+", name):
            raise InputError(f"--name is {name!r}, expected letters, digits and _.-")
        conf = configuration_path(self.config).absolute()
        if socket is None and conf.exists() and not self.undo:
            socket = read_configuration(conf).listen.socket
        # Hooks run in any folder.
        socket, state = (f"{Path(each).absolute()}" if each else "" for each in (socket or SOCKET, state))
        return Plan(scheduler, folder.absolute(), name, conf if here else None, socket, state)

    def carry_out(
        self,
        plan: Plan,
        complete: Callable[[], None],
        undone: tuple[str, ...],
        set_back: Callable[[dict[str, str]], object] | None = None,
        remaining: Callable[[], object] = lambda: None,
    ) -> None:
        """Show a plan, or how what was installed is undone, and do it.

        Parameters
        ----------
        plan : begun.
        complete : adds its other steps.
        undone : commands to run once the installation is undone.
        set_back : undoes a setting of the scheduler.
        remaining : adds what is left to do by hand once the installation is undone.
        """
        with alone(plan.folder):
            plan.journal = installing.Journal.of(plan.folder)  # as it is now that nobody else changes it
            if self.undo:
                plan.then, lines = [*undone], installing.undoing(plan.journal)
                remaining()
            else:
                try:
                    complete()
                except RuntimeError as error:
                    raise InputError(str(error)) from None
                lines = [each.description for each in plan.steps if each.description]
            if self.as_json:
                output.print_json({"steps": lines, "left_to_you": plan.left, "then": plan.then if lines else []})
            else:
                by_hand = [f"do this by hand: {each}" for each in plan.left]
                for line in (*(lines or ["there is nothing to do"]), *by_hand):
                    output.say(line)
            if self.plan or not lines:
                return
            if not self.yes and not _confirmed():
                raise typer.Exit(1)
            try:
                if self.undo:
                    installing.undo(plan.journal, set_back)
                else:
                    installing.install(plan.steps, plan.journal)
            except (OSError, RuntimeError) as error:
                why = f"{error.filename}: {refusal(error)}" if isinstance(error, OSError) else error
                output.to_stderr(f"{why}; --undo reverts the steps done so far")
                raise typer.Exit(1) from None
            if not self.as_json:
                output.say(f"done; then: {'; '.join(plan.then)}")


def _confirmed() -> bool:
    """Whether the plan is to be carried out; InputError where nobody answers."""
    try:
        return typer.confirm("Do it?", err=True)
    except typer.Abort:
        raise InputError("nobody answers, expected y or n, or the option --yes; nothing was done") from None


@setup.command("slurm")
@grouped
def slurm(
    *,
    slurm_conf: Annotated[Path, typer.Option(help="Slurm's configuration.")] = Path("/etc/slurm/slurm.conf"),
    name: Annotated[str, typer.Option(help="The cluster's name; by default ClusterName of slurm.conf.")] = "",
    socket: SocketOption = None,
    state: StateOption = STATE,
    call: Call,
) -> None:
    """Install the hooks in the folder of slurm.conf, as root on the host of slurmctld. Shows the plan and asks first.

    No line and no file of the site is changed or removed: lines are added at the end, between two comments. If the
    site has its own hooks, the lines to add to them are only shown. Nothing is restarted.
    """
    named = name or (slurm_settings(slurm_conf) or {}).get("clustername", "cluster")
    plan = call.begun("slurm", of_slurm.folder_of(slurm_conf), named, socket, state)
    undone, conf = ("systemctl restart slurmctld", *RESTART), slurm_conf.absolute()
    call.carry_out(
        plan, lambda: of_slurm.complete(plan, conf), undone, remaining=lambda: of_slurm.remaining(plan, conf)
    )


@setup.command("gridengine")
@grouped
def grid_engine(
    *,
    folder: Annotated[Path, typer.Option(help="Where hooks go, on every host.")] = of_grid_engine.FOLDER,
    everywhere: Annotated[bool, typer.Option("--everywhere", help="Every execution host has this folder.")] = False,
    queue: Annotated[list[str] | None, typer.Option(help="Only the epilog of this queue; repeatable.")] = None,
    root: Annotated[str, typer.Option(help="SGE_ROOT, if it is not the environment's.")] = "",
    cell: Annotated[str, typer.Option(help="SGE_CELL, if it is not the environment's.")] = "",
    name: Annotated[str, typer.Option(help="The cell's name in the daemon's configuration.")] = "cell",
    socket: SocketOption = None,
    state: StateOption = STATE,
    call: Call,
) -> None:
    """Install the verifier and the epilog of Grid Engine, as root on the host of sge_qmaster. Shows the plan and asks.

    The settings of the cell and its queues are changed by qconf, and restored by --undo. An existing verifier of the
    cell checks each job before ours, and an existing epilog of a queue is run after ours, if it runs as root. Any other
    is left in place, with instructions.
    """
    plan = call.begun("gridengine", folder, name, socket, state)

    def complete() -> None:
        of_grid_engine.complete(plan, root=root, cell=cell, queues=queue or (), everywhere=everywhere)

    call.carry_out(plan, complete, RESTART, of_cell.set_back)


@setup.command("pbs")
@grouped
def pbs(
    *,
    folder: FolderOption = of_pbs.FOLDER,
    name: NameOption = "pbs",
    socket: SocketOption = None,
    state: StateOption = STATE,
    call: Call,
) -> None:
    """Install the files of OpenPBS's hook, as root on the server's host. Shows the plan and asks first.

    The hook itself is created by two qmgr commands, which are only shown.
    """
    plan = call.begun("pbs", folder, name, socket, state)
    call.carry_out(plan, lambda: of_pbs.complete(plan), ('qmgr -c "delete hook metasched"', *RESTART))


@setup.command("oar")
@grouped
def oar(
    *,
    folder: FolderOption = of_oar.FOLDER,
    property: Annotated[str, typer.Option(help="Property of the resources that makes partitions.")] = "",
    name: NameOption = "oar",
    socket: SocketOption = None,
    call: Call,
) -> None:
    """Install the files and the admission rule of OAR, as root on its server. Shows the plan and asks first.

    The rule is added to the site's own by oaradmissionrules; --undo deletes it, unless it was changed since.
    """
    if not re.fullmatch(r"([A-Za-z_]\w{0,62})?", property, re.ASCII):
        raise InputError(f"--property is {property!r}, expected the name of a property")
    plan = call.begun("oar", folder, name, socket)
    call.carry_out(plan, lambda: of_oar.complete(plan, property), RESTART, of_oar.set_back)


@setup.command("htcondor")
@grouped
def htcondor(
    *,
    folder: FolderOption = of_htcondor.FOLDER,
    condor_conf: Annotated[Path, typer.Option(help="Folder of HTCondor's settings.")] = of_htcondor.CONFIGURATION,
    no_daemon: Annotated[bool, typer.Option("--no-daemon", help="The daemon runs on another host.")] = False,
    name: NameOption = "condor",
    call: Call,
) -> None:
    """Install the cron job and the job transforms of HTCondor, as root on each host. Shows the plan and asks first.

    Never run in a real pool. No file of the site is changed: one is added to HTCondor's settings.
    """
    plan = call.begun("htcondor", folder, name, here=not no_daemon)
    undone = ("condor_reconfig", *RESTART)
    call.carry_out(plan, lambda: of_htcondor.complete(plan, condor_conf.absolute()), undone)


@setup.command("flux")
@grouped
def flux(
    *,
    folder: FolderOption = of_flux.FOLDER,
    flux_conf: Annotated[Path, typer.Option(help="Folder of Flux's configuration.")] = of_flux.CONFIGURATION,
    name: NameOption = "flux",
    socket: SocketOption = None,
    call: Call,
) -> None:
    """Install the frobnicator plugin of Flux, as root on its first host. Shows the plan and asks first.

    Never run on a real instance. No file of the site is changed: one is added to Flux's configuration, unless the site
    configures job ingest there itself; then the line to add is shown.
    """
    plan = call.begun("flux", folder, name, socket)
    call.carry_out(plan, lambda: of_flux.complete(plan, flux_conf.absolute()), ("flux config reload", *RESTART))
