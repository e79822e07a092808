"""The options for the arguments and the script of a job, of which only the numbers are sent to the daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from metasched.history.argument_numbers import LONGEST_SCRIPT, in_arguments, in_script, merged
from metasched.records import InputError

ArgumentsOption = Annotated[
    str, typer.Option("--arguments", help="Arguments of its script, as one word; only their numbers are sent.")
]
ScriptOption = Annotated[
    Path | None, typer.Option("--script", help="File of its script; only the numbers in it are sent.")
]


def numbers_in(arguments: str, script: Path | None) -> dict[str, str]:
    """What is asked of the daemon with the numbers in arguments and a script: nothing more where they state none.

    Raises
    ------
    InputError : when the script cannot be read.
    """
    text = b""
    if script is not None:
        try:
            with script.open("rb") as file:
                text = file.read(LONGEST_SCRIPT + 1)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(script)) from None
    found = merged(in_script(text.decode(errors="replace")), in_arguments(arguments))
    return {"numbers": found} if found else {}
