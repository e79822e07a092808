"""``metasched serve`` and ``metasched token``: the daemon, and the tokens of its clients."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from metasched.audit import audit
from metasched.cli import output
from metasched.cli.configured import configuration, opened
from metasched.cli.options import ConfigOption, DatabaseOption, JsonOption
from metasched.node_names import fold, unfold
from metasched.plain_numbers import number_of
from metasched.records import InputError
from metasched.store.roles import ROLES, check_token

#: How long the daemon waits for another process that holds the lock of its database (s): less than its clients wait.
LOCKED = 3.0

token = typer.Typer(help="Create, list and revoke tokens for clients of the daemon.", no_args_is_help=True)


def serve_verb(
    config: ConfigOption = None,
    database: DatabaseOption = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="TCP port instead of the configured one.")] = None,
) -> None:
    """Run the daemon in the foreground until it is stopped."""
    from metasched.service.daemon import Daemon
    from metasched.service.server import serve
    from metasched.service.sources import sources

    settings = configuration(config)
    if port is not None:
        settings = settings.model_copy(update={"listen": settings.listen.model_copy(update={"port": port})})
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic.runtime.plugins").setLevel(logging.WARNING)
    with opened(config, database, new=True, timeout=LOCKED) as store:
        serve(Daemon(settings, store, sources(settings)))


@token.command("add")
def add_token(
    name: Annotated[str, typer.Argument(help="Name of the client.")],
    role: Annotated[str, typer.Option(help=f"One of {', '.join(ROLES)}.")],
    node: Annotated[str | None, typer.Option(help="Node whose loads an agent may send.")] = None,
    site: Annotated[str | None, typer.Option(help="Site whose links to others may be reported.")] = None,
    user: Annotated[str | None, typer.Option(help="User whose jobs a reader may see.")] = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a token and print its secret, which is shown only once."""
    if (node if role == "site" else site) is not None:
        raise InputError("--site is for the role site, --node for the role agent")
    where = site if role == "site" else node
    known = check_token(name, role, where, user)
    of = f", site {site}" if site else f", node {node}" if node else f", user {user}" if user else ""
    with opened(config, database, new=True) as store:
        secret = store.tokens.add(name, known, node=where, user=user)
        try:
            output.answer(as_json, {"name": name, "role": role, "node": where, "user": user, "token": secret}, secret)
            output.flush()
        except BaseException:  # the secret was not shown, and never will be
            store.tokens.revoke(name)
            raise
    audit(f"token {name} created, role {known}{of}")


@token.command("enrol")
def enrol_agents(
    nodes: Annotated[str, typer.Argument(help="Nodes, such as n[1-1000] or n1,n2.")],
    folder: Annotated[Path, typer.Option(help="Folder for the secrets, each written as NODE.token with mode 0600.")],
    renew: Annotated[bool, typer.Option("--renew", help="Replace tokens whose secret is not in the folder.")] = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create the tokens of many agents at once, one file for each node; repeat it when nodes are added.

    Nodes that are enrolled already keep their token. Copy each file to its node as /etc/metasched/agent.token.
    """
    from metasched.installation.enrolment import enrol

    names = list(dict.fromkeys(unfold(nodes, where="NODES")))
    with opened(config, database, new=True) as store:
        done = enrol(store.tokens, names, folder, renew=renew)
    if done.enrolled:
        audit(f"tokens of {number_of(len(done.enrolled), 'agent')} created: {fold(done.enrolled)}")
    line = f"{number_of(len(done.enrolled), 'agent')} enrolled, {len(done.kept)} enrolled before; secrets in {folder}"
    output.answer(as_json, asdict(done) | {"folder": str(folder)}, line)
    if done.without_file and not as_json:
        output.to_stderr(
            f"kept the tokens of {number_of(len(done.without_file), 'node')} whose secrets are not in {folder}: "
            f"{fold(done.without_file)}; --renew replaces them"
        )


@token.command("list")
def list_tokens(config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """List the tokens, without their secrets."""
    with opened(config, database) as store:
        tokens = store.tokens.all()
    if as_json:
        output.print_json(
            [
                {"name": each.name, "role": each.role, "node": each.node, "user": each.user, "made_at": each.made_at}
                for each in tokens
            ]
        )
        return
    table = Table("name", "role", "node, site or user")
    for each in tokens:
        table.add_row(each.name, each.role, each.node or each.user or "")
    output.show(table, empty="there are no tokens")


@token.command("revoke")
def revoke_token(
    name: Annotated[str, typer.Argument(help="Name of the client.")],
    config: ConfigOption = None,
    database: DatabaseOption = None,
) -> None:
    """Revoke a token; a running daemon refuses it within a second."""
    with opened(config, database) as store:
        store.tokens.revoke(name)
    audit(f"token {name} revoked")
