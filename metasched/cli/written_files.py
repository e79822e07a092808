"""Files that a verb writes: none of them may be one that the same call reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from metasched.records import InputError

#: Marks the type of an option as that of a file to write: ``Annotated[Path, WRITTEN, typer.Option(...)]``.
WRITTEN = "a file to write"


def without_loss(command: Any, types: Mapping[str, Any]) -> None:
    """Let a command refuse to write over one of its own inputs, before it reads or computes anything.

    Parameters
    ----------
    command : of click, a verb.
    types : of its parameters, with what they are annotated with.
    """
    written = {name for name, kind in types.items() if WRITTEN in getattr(kind, "__metadata__", ())}
    if not written:
        return
    invoke, spelled = command.invoke, {each.name: each.opts[-1] for each in command.params}

    def checked(ctx: Any) -> Any:
        read = {name: value for name, value in ctx.params.items() if name not in written}
        for name in written & ctx.params.keys():
            refuse_inputs(spelled[name], ctx.params[name], _texts(read.values()))
        return invoke(ctx)

    command.invoke = checked


def refuse_inputs(option: str, output: Path | str | None, given: Iterable[str]) -> None:
    """Refuse a file to write that is one of those given to be read.

    Parameters
    ----------
    option, output : its name and value.
    given : other values of the call; those that are no files do not matter.

    Examples
    --------
    >>> refuse_inputs("--output", "there_is_no_such_file.json", ["runs.csv"])
    >>> refuse_inputs("--output", __file__, ["runs.csv", __file__]) # doctest: +ELLIPSIS
    Traceback (most recent call last):
    metasched.records.errors.InputError: --output is ...written_files.py, which is an input too, expected another file
    """
    if output is None or not os.path.exists(output):
        return
    for each in given:
        try:
            same = os.path.samefile(each, output)
        except (OSError, ValueError):  # not there, or no name of a file
            continue
        if same:
            raise InputError(f"{option} is {output}, which is an input too, expected another file")


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """The values that may name files to read: not the words of a command that the verb starts."""
    for value in values:
        for each in value if isinstance(value, list | tuple) else [value]:
            if isinstance(each, Path) or (each is value and isinstance(each, str)):
                yield str(each)
