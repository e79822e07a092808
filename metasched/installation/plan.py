"""What the setups of all schedulers share: the plan, the files of the hooks, and the daemon's table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from metasched.installation.deployed import deployed
from metasched.installation.steps import Add, Journal, Step, Write
from metasched.records import InputError
from metasched.store.files.whole_files import read_text

#: The folder of the files that all schedulers' hooks share, and the files with settings of the site.
SHARED = {"metasched_hooks.py": "hooks", "metasched_advice.py": "hooks"}
#: The folder that the text of some files names.
DEFAULT = {
    "metasched_pbs.py": "/etc/pbs/metasched", "admission_rule.pl": "/etc/oar/metasched",
    "metasched.conf": "/etc/condor/metasched",
}  # fmt: skip
SETTINGS = frozenset({"rules.lua", "hooks.conf", "load-sensor.conf"})


@dataclass(frozen=True)
class Plan:
    """Steps, what is left to the administrator since the site says otherwise, and what is to be done then."""

    steps: tuple[Step, ...]
    left: tuple[str, ...]
    then: tuple[str, ...]


def hook_file(
    folder: Path,
    scheduler: str,
    file: str,
    values: Mapping[str, str],
    journal: Journal,
    left: list[str],
    *,
    names: Path | None = None,
) -> Write:
    """The step that installs one file of the hooks; a file that was changed by hand is added to what is left.

    Parameters
    ----------
    folder : where it is installed.
    scheduler : its folder in deploy.
    file : its name.
    values : what hooks.conf is to say.
    journal : of an earlier installation.
    left : gets a line where the file stays as it is.
    names : the folder of the hooks, if the file names it and is installed elsewhere.

    Raises
    ------
    InputError
        When the folder cannot stand in the file's text.
    """
    text = read_text(deployed() / SHARED.get(file, scheduler) / file)
    if file == "hooks.conf":
        for key, value in values.items():
            line = f"{key} = {value}"
            text = re.sub(rf"(?m)^(# )?{key} = .*$", lambda _, line=line: line, text, count=1)  # type: ignore[misc]
    if file in DEFAULT:
        named = str(names or folder)
        if not re.fullmatch(r"[\w./+-]+", named, re.ASCII):
            raise InputError("cannot stand in a hook's text, expected letters, digits and _./+-", where=named)
        text = text.replace(DEFAULT[file], named)
    known = journal.files.get(str(folder / file), "")
    mode = 0o755 if file.startswith("metasched-") or text.startswith("#!") else 0o644
    write = Write(folder / file, text, mode, known, file in SETTINGS)
    if (folder / file).exists() and write.kept:
        left.append(write.kept)
    return write


def daemon_table(path: Path, before: str, name: str, table: list[str]) -> list[Step]:
    """The cluster's table in the daemon's settings, which are written as they are deployed where there are none.

    Parameters
    ----------
    path : of the settings.
    before : how the comment begins that the table stands below where they are deployed.
    name : the cluster's, in the table.
    table : its lines.
    """
    if not path.exists():
        text = read_text(deployed() / "metasched.toml")
        start = text.index(f"# {before};")
        end = text.index("\n\n", start)
        text = f"{text[:start]}# {before}; several may be named.\n" + "\n".join(table) + text[end:]
        return [Write(path, text, 0o644, settings=True)]
    there = path.read_text(encoding="utf-8", errors="replace")
    if re.search(rf'(?m)^\s*name\s*=\s*"{re.escape(name)}"', there):
        return []
    return [Add(path, table)]
