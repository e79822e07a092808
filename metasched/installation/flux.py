"""What is to be done for Flux to ask the daemon: files, the daemon's table, and a table of Flux's configuration."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from metasched.installation.plan import Plan
from metasched.records import InputError

#: Where the files are installed, and the folder of Flux's own configuration.
FOLDER, CONFIGURATION = Path("/etc/flux/metasched"), Path("/etc/flux/system/conf.d")
FILES = ("metasched_flux.py", "hooks.conf", "metasched_hooks.py", "metasched_advice.py", "metasched_numbers.py")
#: The file that is added to Flux's configuration. These plugins are those that Flux has where none are named.
OWN, TABLE = "metasched.toml", '[ingest.frobnicator]\nplugins = ["{plugin}", "defaults", "constraints"]\n'


def complete(plan: Plan, flux_conf: Path) -> None:
    """Add what the instance on this host needs.

    Raises
    ------
    InputError : when a configuration cannot be read.
    """
    if not flux_conf.is_dir():
        raise InputError("is no folder, expected that of Flux's configuration", where=str(flux_conf))
    plan.add_hooks(FILES)
    plugin, own = f"{plan.folder}/metasched_flux.py", flux_conf / OWN
    ingesting = {path: table for path in sorted(flux_conf.glob("*.toml")) if path != own and (table := _ingest(path))}
    named = any(plugin in _plugins(table) for table in ingesting.values())
    for path in () if named else ingesting:
        plan.left.append(f'in {path}, [ingest.frobnicator], let plugins begin with "{plugin}"')
    if not ingesting:
        plan.add_write(own, TABLE.format(plugin=plugin))
    plan.add_table("An instance of Flux", "flux")
    plan.then.insert(0, "flux config reload")


def _ingest(path: Path) -> dict[str, Any]:
    """The table that says how jobs are taken in, empty where a file has none."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("ingest", {})
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None
    return table if isinstance(table, dict) else {}


def _plugins(ingest: dict[str, Any]) -> list[str]:
    frobnicator = ingest.get("frobnicator")
    named = frobnicator.get("plugins") if isinstance(frobnicator, dict) else None
    return [str(each) for each in named] if isinstance(named, list) else []
