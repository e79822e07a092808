"""Settings of a cell of Grid Engine as steps: set by qconf, and set back where they are still what was set."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from metasched.doctor.grid_engine import settings_of
from metasched.installation.steps import Journal
from metasched.schedulers.grid_engine.commands import GridEngineCommands

#: Names of the cell's own configuration and of its list of operators, beside those of queues.
GLOBAL, OPERATORS = "global", "operators"


@dataclass(frozen=True)
class Setting:
    """Set one key of the cell's configuration or of a queue, or add an operator.

    Parameters
    ----------
    commands : of the cell.
    place : ``global``, ``operators`` or the name of a queue with ``queue:`` before it.
    key : the key, or the operator.
    value : what it is set to; empty to remove an operator.
    before : what it was.
    """

    commands: GridEngineCommands
    place: str
    key: str
    value: str
    before: str = ""

    @property
    def description(self) -> str:
        """What it does, empty where there is nothing to do."""
        if self.place == OPERATORS:
            return f"make {self.key} an operator of the cell"
        where = "the cell" if self.place == GLOBAL else self.place.replace(":", " ")
        return f"set {self.key} of {where} to {self.value}, before {self.before}"

    def do(self, journal: Journal) -> None:
        """Note in the journal how to undo the step, and carry it out."""
        cell = {name: self.commands.environment.get(f"SGE_{name.upper()}", "") for name in ("root", "cell")}
        journal.settings.append(
            cell | {"place": self.place, "key": self.key, "value": self.value, "before": self.before}
        )
        journal.keep()
        assign(self.commands, self.place, self.key, self.value)


def assign(commands: GridEngineCommands, place: str, key: str, value: str) -> None:
    """Set a key to a value; see :class:`Setting`.

    Raises
    ------
    RuntimeError : when Grid Engine does not take it.
    """
    if place == OPERATORS:
        commands.run("qconf", "-ao" if value else "-do", key)
    elif place == GLOBAL:
        lines = commands.run("qconf", "-sconf").replace("\\\n", " ").splitlines()
        kept = [line for line in lines if not line.startswith("#") and line.partition(" ")[0] != key]
        with tempfile.TemporaryDirectory() as folder:
            # qconf takes the name of the host whose configuration it is from the file's.
            file = Path(folder, GLOBAL)
            file.write_text("\n".join([*kept, f"{key} {value}", ""]), encoding="utf-8", errors="surrogateescape")
            commands.run("qconf", "-Mconf", str(file))
    else:
        commands.run("qconf", "-rattr", "queue", key, value, place.partition(":")[2])


def value_of(commands: GridEngineCommands, place: str, key: str) -> str:
    """What a key is set to, empty where it is not there.

    Raises
    ------
    RuntimeError : when Grid Engine does not tell.
    """
    if place == OPERATORS:
        try:
            return key if key in commands.run("qconf", "-so").split() else ""
        except RuntimeError:  # as where there is none
            return ""
    words = ("-sconf",) if place == GLOBAL else ("-sq", place.partition(":")[2])
    return re.sub(r"\s+", " ", settings_of(commands.run("qconf", *words)).get(key, ""))


def set_back(noted: Mapping[str, str]) -> bool:
    """Undo a setting that was noted, unless it has changed since; whether it was undone.

    Raises
    ------
    RuntimeError : when Grid Engine does not answer.
    """
    commands = GridEngineCommands.of(noted["root"], noted["cell"])
    place, key = noted["place"], noted["key"]
    if value_of(commands, place, key) != noted["value"]:
        return False
    assign(commands, place, key, noted["before"])
    return True
