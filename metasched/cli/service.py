"""``metasched serve`` and ``metasched token``: the daemon and who may talk to it."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from metasched.cli import output
from metasched.records import InputError
from metasched.service.configuration import Configuration, read_configuration
from metasched.store.tokens import ROLES, Tokens

#: Where the configuration lies when nobody says.
CONFIGURATION = "/etc/metasched/metasched.toml"

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help=f"Configuration file; $METASCHED_CONFIG, else {CONFIGURATION}.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command("serve")(serve_verb)
    tokens = typer.Typer(help="Make, list and revoke the tokens by which clients of the daemon are known.")
    tokens.command("add")(add_token)
    tokens.command("list")(list_tokens)
    tokens.command("revoke")(revoke_token)
    app.add_typer(tokens, name="token", no_args_is_help=True)


def serve_verb(
    config: ConfigOption = None,
    database: Annotated[str | None, typer.Option(help="Path or URL; instead of the configured one.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Instead of the configured one.")] = None,
) -> None:
    """Run the daemon in the foreground until it is told to end."""
    from metasched.schedulers.slurm.source import SlurmSource
    from metasched.service.daemon import Daemon
    from metasched.service.server import serve
    from metasched.store.database import Store

    settings = configuration(config)
    if port is not None:
        settings = settings.model_copy(update={"listen": settings.listen.model_copy(update={"port": port})})
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    for noisy in ("apscheduler", "alembic.runtime.plugins"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    sources = [
        SlurmSource(each.name, each.partitions, platform=each.platform, configuration=each.configuration)
        for each in settings.slurm
    ]
    with Store.open(database or settings.database) as store:
        serve(Daemon(settings, store, sources))


def add_token(
    name: Annotated[str, typer.Argument(help="Whose token it is.")],
    role: Annotated[str, typer.Option(help=f"One of {', '.join(ROLES)}.")],
    node: Annotated[str | None, typer.Option(help="The node whose loads an agent may send.")] = None,
    config: ConfigOption = None,
    database: Annotated[str | None, typer.Option(help="Path or URL; instead of the configured one.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print its secret, which is shown only now."""
    from metasched.store.database import Store

    known = next((each for each in ROLES if each == role), None)
    if known is None:
        raise InputError(f"--role is {role!r}, expected one of {', '.join(ROLES)}")
    with Store.open(database or configuration(config).database) as store:
        secret = Tokens(store).add(name, known, node=node)
    if as_json:
        output.print_json({"name": name, "role": role, "node": node, "token": secret})
    else:
        output.out.print(secret, markup=False, soft_wrap=True)


def list_tokens(
    config: ConfigOption = None,
    database: Annotated[str | None, typer.Option(help="Path or URL; instead of the configured one.")] = None,
    as_json: JsonOption = False,
) -> None:
    """List the tokens, without their secrets."""
    from metasched.store.database import Store

    with Store.open(database or configuration(config).database) as store:
        tokens = Tokens(store).all()
    if as_json:
        output.print_json(
            [{"name": each.name, "role": each.role, "node": each.node, "made_at": each.made_at} for each in tokens]
        )
        return
    table = Table("name", "role", "node")
    for each in tokens:
        table.add_row(each.name, each.role, each.node or "")
    output.out.print(table)


def revoke_token(
    name: Annotated[str, typer.Argument(help="Whose token to revoke.")],
    config: ConfigOption = None,
    database: Annotated[str | None, typer.Option(help="Path or URL; instead of the configured one.")] = None,
) -> None:
    """Revoke a token; a running daemon takes notice within a second."""
    from metasched.store.database import Store

    with Store.open(database or configuration(config).database) as store:
        Tokens(store).revoke(name)


def configuration(path: Path | None) -> Configuration:
    """The configuration: from a file that is named, else from the usual place, else the defaults."""
    named = path or os.environ.get("METASCHED_CONFIG")
    if named is None and not Path(CONFIGURATION).exists():
        return Configuration()
    return read_configuration(named or CONFIGURATION)


def talk(settings: Configuration, method: str, path: str, document: Any = None, *, url: str | None = None) -> Any:
    """Ask the daemon: by the URL given, else by its Unix socket, else by its address."""
    from metasched.service.talk import address_of, ask

    listen = settings.listen
    token, verify = os.environ.get("METASCHED_TOKEN"), listen.certificate or True
    try:
        return ask(url or address_of(listen), method, path, document, token=token, verify=verify)
    except RuntimeError as error:
        output.complain(str(error))
        raise typer.Exit(1) from None
