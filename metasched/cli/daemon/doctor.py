"""``metasched doctor``: checks of an installation, and how to repair it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from metasched.cli import output
from metasched.cli.configured import configuration
from metasched.cli.options import ConfigOption, JsonOption
from metasched.client.connection import ask_configured
from metasched.doctor.findings import Finding
from metasched.records import InputError
from metasched.service.configuration import Configuration


def doctor(
    config: ConfigOption = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only what needs attention.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check an installation and say how to repair it; the exit status is 1 if anything is wrong.

    Run it as root where slurmctld, sge_qmaster or another scheduler's server runs. Nothing is changed. By URL a token
    with the role reader is taken from $METASCHED_TOKEN.
    """
    found = [*_findings(configuration(config))]
    if as_json:
        output.print_json([asdict(each) for each in found])
    else:
        _show([each for each in found if each.state != "well" or not quiet])
    if any(each.state == "wrong" for each in found):
        raise typer.Exit(1)


def _findings(settings: Configuration) -> Iterator[Finding]:
    from metasched.doctor import daemon as checkup
    from metasched.doctor.flux import check_flux
    from metasched.doctor.grid_engine import check_grid_engine
    from metasched.doctor.htcondor import check_htcondor
    from metasched.doctor.oar import check_oar
    from metasched.doctor.pbs import check_pbs
    from metasched.doctor.secret_files import check_secret_files
    from metasched.doctor.slurm import check_slurm
    from metasched.installation.pbs import FOLDER

    def daemon(path: str) -> Any:
        return ask_configured(settings.listen, "GET", path)

    yield from checkup.check_database(settings.database)
    yield from checkup.check_daemon(settings, daemon)
    yield from checkup.check_socket(settings)
    yield from check_secret_files(settings)
    try:
        names = checkup.load_names(settings, daemon("/v1/clusters"))
    except (RuntimeError, InputError):
        names = checkup.load_names(settings, [])
    yield from checkup.check_names(names)
    yield from checkup.check_agents(settings, sorted(names.known - names.contested), time.time())
    for each in settings.slurm:
        sets_clocks = settings.energy.set_frequency
        yield from check_slurm(each.name, each.configuration, settings.listen.socket, sets_clocks=sets_clocks)
    for cell in settings.grid_engine:
        yield from check_grid_engine(cell.name, cell.root, cell.cell, settings.listen.socket)
    for server in settings.pbs:
        yield from check_pbs(server.name, server.server, settings.listen.socket, FOLDER)
    for oar in settings.oar:
        yield from check_oar(oar.name, oar.property, settings.listen.socket)
    for pool in settings.htcondor:
        yield from check_htcondor(pool.name, pool.pool)
    for instance in settings.flux:
        yield from check_flux(instance.name, instance.uri, settings.listen.socket)


def _show(found: list[Finding]) -> None:
    table = Table("check", "", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("found", "remedy"):
        table.add_column(name, overflow="fold")
    for each in found:
        state = each.state.upper() if each.state == "wrong" else each.state
        table.add_row(*(Text(text) for text in (each.check, state, each.found, each.remedy)))
    output.show(table)
    wrong, watch = (sum(each.state == state for each in found) for state in ("wrong", "watch"))
    output.out.print(f"{wrong} wrong, {watch} to watch")
