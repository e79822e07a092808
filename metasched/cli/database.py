"""``metasched db``: upgrade, backup, restore and prune the database."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from metasched.cli import output
from metasched.cli.options import JsonOption
from metasched.cli.service import ConfigOption, configuration
from metasched.store.database import Store

DatabaseOption = Annotated[str | None, typer.Option("--database", help="Path or URL; instead of the configured one.")]
DAY = 86_400.0


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    verbs = typer.Typer(help="Upgrade, back up, restore and prune the database.")
    verbs.command("upgrade")(upgrade_verb)
    verbs.command("backup")(backup_verb)
    verbs.command("restore")(restore_verb)
    verbs.command("prune")(prune_verb)
    app.add_typer(verbs, name="db", no_args_is_help=True)


def upgrade_verb(config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Bring the database to the newest schema. The daemon does so too when it starts."""
    from metasched.store.keeping import upgrade

    done = upgrade(database or configuration(config).database)
    if as_json:
        output.print_json(asdict(done))
    elif done.before == done.after:
        _say(f"{done.database} is at schema {done.after} already")
    else:
        _say(f"{done.database} was upgraded from schema {done.before or 'none'} to {done.after}")


def backup_verb(
    to: Annotated[Path, typer.Argument(help="File to write, which must not be there.")],
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write everything as it is now into a SQLite file. The daemon may run meanwhile."""
    from metasched.store.keeping import backup

    with Store.open(database or configuration(config).database) as store, output.working("backing up"):
        counts = backup(store, to)
        name = store.name
    if as_json:
        output.print_json({"database": name, "backup": str(to), "rows": counts})
    else:
        _say(f"{to} holds {_counted(dict(counts))} of {name}")


def restore_verb(
    backed_up: Annotated[Path, typer.Argument(metavar="BACKUP", help="File that `metasched db backup` wrote.")],
    replace: Annotated[bool, typer.Option("--replace", help="Remove what the database holds first.")] = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put everything a backup holds into the database, SQLite or PostgreSQL. Stop the daemon first."""
    from metasched.store.keeping import restore

    with Store.open(database or configuration(config).database) as store, output.working("restoring"):
        counts = restore(store, backed_up, replace=replace)
        name = store.name
    if as_json:
        output.print_json({"database": name, "backup": str(backed_up), "rows": counts})
    else:
        _say(f"{name} now holds {_counted(dict(counts))} of {backed_up}")


def prune_verb(
    loads: Annotated[float | None, typer.Option(min=0, help="Days that loads stay; else as configured.")] = None,
    placements: Annotated[float | None, typer.Option(min=0, help="Days that placements stay; else so.")] = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let go of old loads and placements, as the daemon does hourly. Runs, models and the loads' means stay."""
    from metasched.store.retention import prune

    settings, now = configuration(config), time.time()
    loads = settings.keep.loads if loads is None else loads
    placements = settings.keep.placements if placements is None else placements
    with Store.open(database or settings.database) as store, output.working("pruning"):
        gone = prune(store, loads_before=now - DAY * loads, placements_before=now - DAY * placements)
        name = store.name
    if as_json:
        output.print_json({"database": name} | asdict(gone))
    else:
        _say(f"{name}: {gone.loads} loads and {gone.placements} placements were let go")


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())


def _say(line: str) -> None:
    output.out.print(line, markup=False, soft_wrap=True)
