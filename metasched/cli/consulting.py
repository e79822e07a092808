"""Requests of the placement verbs to the daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import typer
from pydantic import ValidationError

from metasched.cli import output
from metasched.placement.explaining.documents import RankingTable
from metasched.records import InputError
from metasched.validation import first_error


def one_source(clusters: Path | None, url: str | None, **only_with_files: object) -> None:
    """Check that the options name files or the daemon, not both.

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
