"""Requests of the placement verbs to the daemon."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from pydantic import ValidationError

from metasched.cli import output
from metasched.cli.options import ConfigOption, DatabaseOption, UrlOption
from metasched.placement.explaining.documents import RankingTable
from metasched.records import InputError
from metasched.validation import first_error


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
        """Ask the daemon that the options name; see :func:`consult`."""
        return consult(self.config, self.url, method, path, document)


def consult(config: Path | None, url: str | None, method: str, path: str, document: Any = None) -> Any:
    """Ask the daemon; by URL a token is taken from $METASCHED_TOKEN."""
    from metasched.cli.service import ask_daemon, configuration

    return ask_daemon(configuration(config), method, path, document, url=url)


def ranking(answer: Any, *, where: str) -> RankingTable:
    """Read a ranking from its document.

    Raises
    ------
    InputError
        When it is none.
    """
    try:
        if isinstance(answer, str):
            return RankingTable.model_validate_json(answer)
        return RankingTable.model_validate(answer)
    except ValidationError as error:
        raise InputError(f"is not an answer of metasched rank --json: {first_error(error)}", where=where) from None


def leave(lacking: RankingTable) -> NoReturn:
    """Say why a ranking is empty, and exit: with status 2 if the request can never fit, else 1."""
    output.to_stderr(lacking.why)
    raise typer.Exit(1 if lacking.for_now else 2)
