"""The plan of a setup: what is to be done for a scheduler to ask the daemon."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from metasched.installation.deployed import deployed
from metasched.installation.steps import Add, Folder, Journal, Step, Write
from metasched.records import InputError
from metasched.store.files.whole_files import read_text
from metasched.validation import parse_toml

#: The Slurm cluster that the deployed configuration of the daemon names as an example.
EXAMPLE = "cluster"
#: The folder of the files that all schedulers' hooks share, and the files with settings of the site.
SHARED = dict.fromkeys(("metasched_hooks.py", "metasched_advice.py", "metasched_numbers.py"), "hooks")
#: The folder that the text of some files names.
DEFAULT = {
    "metasched_pbs.py": "/etc/pbs/metasched", "admission_rule.pl": "/etc/oar/metasched",
    "metasched.conf": "/etc/condor/metasched",
}  # fmt: skip
SETTINGS = frozenset({"rules.lua", "hooks.conf", "load-sensor.conf"})


@dataclass
class Plan:
    """Steps, and what is left to the administrator since the site says otherwise.

    Parameters
    ----------
    scheduler : the folder of its files in deploy.
    folder : where they are installed.
    name : the cluster's name in the daemon's configuration and in hooks.conf.
    daemon_conf : path of the daemon's configuration; None where the daemon is on another host.
    socket : the daemon's Unix socket.
    state : folder where the hooks keep jobs; empty where they keep none.

    Attributes
    ----------
    journal : of an earlier installation into the folder.
    steps : in their order; the first makes the folder.
    left : what the administrator has to do.
    then : commands to run afterwards.
    """

    scheduler: str
    folder: Path
    name: str
    daemon_conf: Path | None
    socket: str = ""
    state: str = ""
    journal: Journal = field(init=False)
    steps: list[Step] = field(init=False)
    left: list[str] = field(default_factory=list, init=False)
    then: list[str] = field(default_factory=lambda: ["systemctl restart metasched", "metasched doctor"], init=False)

    def __post_init__(self) -> None:
        self.journal = Journal.of(self.folder)
        self.steps = [Folder(self.folder, "root", 0o755)]

    def add_hooks(self, files: Sequence[str], **values: str) -> dict[str, Write]:
        """Install the files of the hooks.

        Parameters
        ----------
        files : their names.
        values : further ones that hooks.conf is to hold, where they are not empty.

        Raises
        ------
        InputError : when the folder cannot stand in the text of a file.
        """
        return {file: self.add_file(self.folder, file, **values) for file in files}

    def add_file(self, into: Path, file: str, **values: str) -> Write:
        """Install one file; one that was changed by hand is left, and so is what changes in it.

        Parameters
        ----------
        into : its folder; where it names the folder of the hooks, that is written into it.
        file : its name in deploy.
        values : see :meth:`add_hooks`.
        """
        text = read_text(deployed() / SHARED.get(file, self.scheduler) / file)
        if file == "hooks.conf":
            values |= {"socket": self.socket, "cluster": self.name, "state": self.state}
            for line in (f"{key} = {value}" for key, value in values.items() if value):
                key = line.partition(" ")[0]
                text = re.sub(rf"(?m)^(# )?{key} = .*$", lambda _, line=line: line, text, count=1)  # type: ignore[misc]
        if file in DEFAULT:
            self.check_folder()
            text = text.replace(DEFAULT[file], str(self.folder))
        mode = 0o755 if file.startswith("metasched-") or text.startswith("#!") else 0o644
        return self.add_write(into / file, text, mode, settings=file in SETTINGS)

    def check_folder(self) -> None:
        """Check that the folder can be named in hooks and in a scheduler's configuration.

        Raises
        ------
        InputError : when it has other characters than those.
        """
        if not re.fullmatch(r"[\w./+-]+", str(self.folder), re.ASCII):
            raise InputError(
                "cannot be written into a hook, expected letters, digits and _./+-", where=str(self.folder)
            )

    def add_write(self, path: Path, text: str, mode: int = 0o644, *, settings: bool = False) -> Write:
        """Write a file, unless it was changed by hand since an earlier installation.

        Parameters
        ----------
        path, text, mode : of the file.
        settings : whether it is one that the site is expected to change.
        """
        write = Write(path, text, mode, self.journal.files.get(str(path), ""), settings)
        if path.exists() and write.kept:
            self.left.append(write.kept)
        self.steps.append(write)
        return write

    def add_table(self, before: str, kind: str, **values: str) -> None:
        """Add the cluster's table to the daemon's configuration, which is written as deployed where there is none.

        Parameters
        ----------
        before : how the comment begins that stands above the table where it is deployed.
        kind : the name of the table.
        values : besides the cluster's name, where they are not empty.

        Raises
        ------
        InputError : when the configuration cannot be read.
        """
        path = self.daemon_conf
        if path is None:
            return
        given = {"name": self.name} | {key: value for key, value in values.items() if value}
        table = [f"[[{kind}]]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items())]
        if not path.exists():
            text = read_text(deployed() / "metasched.toml")
            example = _block(text, "A Slurm cluster")
            quiet = [line if line.startswith("#") else f"# {line}" for line in example.splitlines()]
            text = text.replace(example, "\n".join(quiet))
            own = "\n".join([f"# {before}; several may be named.", *table])
            text = text.replace(_block(text, before), own)
            self.steps.append(Write(path, text, 0o644, settings=True))
            return
        tables = parse_toml(read_text(path), where=str(path))
        if self.name not in [each.get("name") for each in tables.get(kind, [])]:
            self.steps.append(Add(path, table))
        if (kind, self.name) != ("slurm", EXAMPLE) and any(
            (each.get("name"), each.get("configuration", "")) == (EXAMPLE, "") for each in tables.get("slurm", [])
        ):
            self.left.append(
                f'in {path}, remove [[slurm]] name = "{EXAMPLE}", the example that it was deployed with, unless there '
                "is a cluster of this name"
            )


def _block(text: str, before: str) -> str:
    """The lines from a comment that begins so up to an empty one."""
    start = text.index(f"# {before};")
    return text[start : text.index("\n\n", start)]
