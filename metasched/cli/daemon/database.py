"""``metasched db``: upgrade, check, backup, restore, downgrade and prune the database."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from metasched.cli import output
from metasched.cli.configured import configuration, opened
from metasched.cli.options import ConfigOption, DatabaseOption, JsonOption
from metasched.plain_numbers import number_of

DAY, MOST_DAYS = 86_400.0, 1e6

db = typer.Typer(help="Upgrade, check, back up, restore, downgrade and prune the database.", no_args_is_help=True)


@db.command("upgrade")
def upgrade_verb(config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Upgrade the database to the newest schema. The daemon also does this when it starts."""
    from metasched.store.database.backup import upgrade

    done = upgrade(database or configuration(config).database)
    line = f"is already at schema {done.after}"
    if done.before != done.after:
        line = f"was upgraded from schema {done.before or 'none'} to {done.after}"
    output.answer(as_json, asdict(done), f"{done.database} {line}")


@db.command("check")
def check_verb(config: ConfigOption = None, database: DatabaseOption = None, as_json: JsonOption = False) -> None:
    """Read the whole database and report damage. The daemon may keep running."""
    from metasched.store.database.integrity import check

    with opened(config, database) as store, output.working("checking"):
        faults, name = check(store), store.name
    sound = () if faults else (f"{name} is sound",)
    output.answer(as_json, {"database": name, "sound": not faults, "faults": list(faults)}, *sound)
    if faults:
        for fault in faults:
            output.to_stderr(fault if name in fault else f"{name}: {fault}")
        raise typer.Exit(1)


@db.command("backup")
def backup_verb(
    to: Annotated[Path, typer.Argument(help="File to write; it must not exist.")],
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the current content of the database to a SQLite file. The daemon may keep running."""
    from metasched.store.database.backup import backup

    with opened(config, database) as store, output.working("backing up"):
        counts, name = backup(store, to), store.name
    document = {"database": name, "backup": str(to), "rows": counts}
    output.answer(as_json, document, f"{to} holds {_counted(counts)} of {name}")


@db.command("downgrade")
def downgrade_verb(
    to: Annotated[Path, typer.Argument(help="SQLite file to write; it must not exist.")],
    version: Annotated[str, typer.Option("--to", metavar="VERSION", help="The older version.")] = "0.1.0",
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a copy of the database that an older version of metasched can open. The database is not changed."""
    from metasched.store.database.downgrade import downgrade

    with opened(config, database) as store, output.working("copying"):
        done, name = downgrade(store, to, version), store.name
    lines = [f"{to} holds for metasched {version}: {_counted(done.copied)}"]
    if done.left_out:
        lines.append(f"left out, since {version} could not read it: {_counted(done.left_out)}")
    output.answer(as_json, {"database": name, "written": str(to), "version": version} | asdict(done), *lines)


@db.command("restore")
def restore_verb(
    backed_up: Annotated[Path, typer.Argument(metavar="BACKUP", help="File written by `metasched db backup`.")],
    replace: Annotated[bool, typer.Option("--replace", help="Empty the database first.")] = False,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restore a backup into the database, SQLite or PostgreSQL. Stop the daemon first."""
    from metasched.store.database.backup import restore

    with opened(config, database, new=True) as store, output.working("restoring"):
        counts, name = restore(store, backed_up, replace=replace), store.name
    document = {"database": name, "backup": str(backed_up), "rows": counts}
    output.answer(as_json, document, f"{name} now holds {_counted(counts)} of {backed_up}")


@db.command("prune")
def prune_verb(
    loads: Annotated[
        float | None, typer.Option(min=0, max=MOST_DAYS, help="Days to keep loads; by default as configured.")
    ] = None,
    placements: Annotated[
        float | None, typer.Option(min=0, max=MOST_DAYS, help="Days to keep placements; by default as configured.")
    ] = None,
    config: ConfigOption = None,
    database: DatabaseOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove old loads, placements and past jobs, as the daemon does hourly. Runs, models and hourly means stay."""
    from metasched.store.database.retention import prune

    settings, now = configuration(config), time.time()
    loads = settings.keep.loads if loads is None else loads
    placements = settings.keep.placements if placements is None else placements
    with opened(config, database) as store, output.working("pruning"):
        gone = prune(
            store, loads_before=now - DAY * loads, placements_before=now - DAY * placements,
            past_jobs_before=now - DAY * settings.keep.past_jobs,
        )  # fmt: skip
        name = store.name
    output.answer(as_json, {"database": name} | asdict(gone), f"{name}: removed {_counted(asdict(gone))}")


def _counted(counts: Mapping[str, int]) -> str:
    """Rows of tables in words; empty tables are left out."""
    full = {name.replace("_", " ").removesuffix("s"): count for name, count in counts.items() if count}
    return ", ".join(number_of(count, noun) for noun, count in full.items()) or "nothing"
