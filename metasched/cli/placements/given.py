"""What a placement verb answers from: files that options name, or else the daemon."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metasched.cli.configured import ask_daemon
from metasched.cli.options import ConfigOption, DatabaseOption, UrlOption
from metasched.records import InputError

if TYPE_CHECKING:
    from metasched.described_placements import Scene


@dataclass(frozen=True)
class Given:
    """What a placement verb answers from: files, or else the daemon."""

    clusters: Annotated[
        Path | None, typer.Option(help="TOML file that describes the clusters; by default the daemon is asked.")
    ] = None
    url: UrlOption = None
    config: ConfigOption = None
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model file, or CLUSTER=FILE for one cluster; repeatable; by default the models of the store."
        ),
    ] = None
    database: DatabaseOption = None
    loads: Annotated[str | None, typer.Option(help="Recorded loads to use: a loads.csv[.gz], or the word store.")] = (
        None
    )
    at: Annotated[float | None, typer.Option(help="Time of the recorded loads to use (s); by default the last.")] = None
    source: Annotated[
        Path | None, typer.Option(help="TOML file whose [\\[source]] tables name the sources of live loads.")
    ] = None

    def __post_init__(self) -> None:
        if self.clusters is not None and self.url is not None:
            raise InputError("--url and --clusters are both given, expected one of them")
        for name in ("model", "database", "loads", "at", "source") if self.clusters is None else ():
            if getattr(self, name):
                raise InputError(f"--{name} is given without --clusters: the daemon uses its own models and loads")

    def consult(self, method: str, path: str, document: Any = None) -> Any:
        """Ask the daemon that the options name."""
        return ask_daemon(self.config, self.url, method, path, document)

    def scene(self, application: str, *, forecast: bool = False) -> Scene:
        """Read the files that the options name."""
        from metasched.described_placements import read_scene

        if self.clusters is None:
            raise InputError("--clusters is missing, expected the description of the clusters")
        return read_scene(
            application, self.clusters, models=self.model or (), database=self.database, loads=self.loads,
            at=self.at, source=self.source, forecast=forecast,
        )  # fmt: skip
