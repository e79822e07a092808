"""How verbs of placement ask the daemon in place of files: the options for that, and the questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from pydantic import ValidationError

from metasched.cli import output
from metasched.cli.options import ConfigOption
from metasched.placement.explaining.documents import RankingTable
from metasched.records import InputError
from metasched.validation import first_error

__all__ = ["ConfigOption", "UrlOption", "consult", "leave", "one_source", "ranking"]

UrlOption = Annotated[
    str | None,
    typer.Option(help="URL or Unix socket of the daemon to ask; without it and --clusters, the configured one."),
]


def one_source(clusters: Path | None, url: str | None, **only_with_files: object) -> None:
    """Check that options are of files only, or of the daemon only.

    Raises
    ------
    InputError
        When options of both are given.
    """
    if clusters is not None:
        if url is not None:
            raise InputError("--url and --clusters are both given, expected one of them")
        return
    for name, value in only_with_files.items():
        if value:
            raise InputError(f"--{name} is given without --clusters: the daemon uses its own models and loads")


def consult(config: Path | None, url: str | None, method: str, path: str, document: Any = None) -> Any:
    """Ask the daemon; by URL a token is taken from $METASCHED_TOKEN."""
    from metasched.cli.service import ask_daemon, configuration

    return ask_daemon(configuration(config), method, path, document, url=url)


def ranking(answer: Any, *, where: str) -> RankingTable:
    """A ranking from its document.

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
    """Say why a ranking holds no placement, and leave: by status 2 where what is asked for never fits, else 1."""
    output.to_stderr(lacking.why)
    raise typer.Exit(1 if lacking.for_now else 2)
