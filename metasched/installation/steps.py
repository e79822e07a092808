"""Steps of an installation: what each would do, whether it is done already, and how it is undone.

A file of the site is never replaced. What is written is noted with its digest, so that undoing removes what was written
and keeps what somebody has changed since. It is noted before it is written, so that an installation that is interrupted
anywhere is undone as well, or completed by the next one.
"""

from __future__ import annotations

import grp
import hashlib
import json
import os
import pwd
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from metasched.store.files.whole_files import write_bytes_atomically, write_text_atomically

#: Around lines that are added to a file of the site.
BEGIN, END = "metasched: begin", "metasched: end"


@dataclass
class Journal:
    """What was installed: digests of files by path, files that lines were added to, folders, memberships, settings.

    Settings are a scheduler's own, each with what it was before. A file that was about to be renewed has the digests of
    both texts, with a blank between them.
    """

    path: Path
    files: dict[str, str] = field(default_factory=dict)
    blocks: dict[str, str] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    members: list[tuple[str, str]] = field(default_factory=list)
    settings: list[dict[str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path) -> Journal:
        """The journal of what was installed into a folder, an empty one where nothing was."""
        path = folder / "installed.json"
        return cls(path, **json.loads(path.read_text(encoding="utf-8")) if path.exists() else {})

    def write(self) -> None:
        """Write the journal to its file, all of it or nothing."""
        document = {name: value for name, value in vars(self).items() if name != "path"}
        write_text_atomically(self.path, json.dumps(document, indent=1) + "\n")

    def keep(self) -> None:
        """Write the journal if its folder is there; the first step makes it."""
        if self.path.parent.is_dir():
            self.write()


class Step(Protocol):
    """One step; ``description`` says what it does, empty where there is nothing to do."""

    @property
    def description(self) -> str:
        """What it does, empty where there is nothing to do."""

    def do(self, journal: Journal) -> None:
        """Note in the journal how to undo the step, and carry it out."""


@dataclass(frozen=True)
class Write:
    """Write a file of ours; one that is there and that we have not written, or that was changed since, stays.

    ``settings`` are files for the site to change: they are written once.
    """

    path: Path
    text: str
    mode: int
    known: str = ""
    settings: bool = False

    @property
    def description(self) -> str:
        """What it does, empty where there is nothing to do."""
        if not self.path.exists():
            return f"write {self.path}"
        there = self.path.read_text(encoding="utf-8", errors="replace")
        if there == self.text or self.settings:
            return ""
        return f"renew {self.path}" if digest(there) in self.known.split() else ""

    @property
    def kept(self) -> str:
        """What to say of a file that stays though it is not what it should be."""
        if self.settings or self.description or self.path.read_text(encoding="utf-8", errors="replace") == self.text:
            return ""
        return f"{self.path} was changed by hand and is left as it is"

    def do(self, journal: Journal) -> None:
        """Note in the journal how to undo the step, and carry it out."""
        place = str(self.path)
        journal.files[place] = " ".join([*journal.files.get(place, "").split(), digest(self.text)])
        journal.keep()
        write_text_atomically(self.path, self.text, self.mode)
        journal.files[place] = digest(self.text)


@dataclass(frozen=True)
class Add:
    """Add lines at the end of a file of the site, between two comments; a file that is not there is made."""

    path: Path
    lines: Sequence[str]
    comment: str = "#"

    @property
    def description(self) -> str:
        """What it does, empty where there is nothing to do."""
        return f"add to {self.path}: {'; '.join(self.lines)}"

    def do(self, journal: Journal) -> None:
        """Note in the journal how to undo the step, and carry it out."""
        # A file of the site may be in any encoding.
        before = self.path.read_bytes() if self.path.exists() else b""
        between = "" if before.endswith(b"\n") or not before else "\n"
        block = "".join(f"{line}\n" for line in (f"{self.comment} {BEGIN}", *self.lines, f"{self.comment} {END}"))
        journal.blocks.setdefault(str(self.path), "there" if self.path.exists() else "made")
        journal.keep()
        write_bytes_atomically(self.path, before + f"{between}{block}".encode())


@dataclass(frozen=True)
class Folder:
    """Create a folder that belongs to a user."""

    path: Path
    owner: str
    mode: int

    @property
    def description(self) -> str:
        """What it does, empty where there is nothing to do."""
        return "" if self.path.is_dir() else f"create {self.path}, owner {self.owner}, mode {self.mode:04o}"

    def do(self, journal: Journal) -> None:
        """Note in the journal how to undo the step, and carry it out."""
        missing = [each for each in (self.path, *self.path.parents) if not each.exists()]
        journal.folders += [str(each) for each in reversed(missing) if str(each) not in journal.folders]
        journal.keep()
        self.path.mkdir(parents=True)
        self.path.chmod(self.mode)
        if os.geteuid() == 0:
            found = pwd.getpwnam(self.owner)
            os.chown(self.path, found.pw_uid, found.pw_gid)


@dataclass(frozen=True)
class Join:
    """Add a user to a group."""

    user: str
    group: str

    @property
    def description(self) -> str:
        """What it does, empty where there is nothing to do."""
        try:
            there, primary = grp.getgrnam(self.group), pwd.getpwnam(self.user).pw_gid
        except KeyError:
            return ""
        inside = self.user in there.gr_mem or primary == there.gr_gid
        return "" if inside or self.user == "root" else f"add {self.user} to the group {self.group}"

    def do(self, journal: Journal) -> None:
        """Note in the journal how to undo the step, and carry it out."""
        if [self.user, self.group] not in map(list, journal.members):
            journal.members.append((self.user, self.group))
        journal.keep()
        subprocess.run(["usermod", "-aG", self.group, self.user], check=True, timeout=60)  # noqa: S603, S607


def install(steps: Iterable[Step], journal: Journal) -> None:
    """Carry out the steps that are not done, and note each before the next."""
    for step in steps:
        if step.description:
            step.do(journal)
            journal.keep()


def undoing(journal: Journal) -> list[str]:
    """What undoing an installation would do, in order."""
    lines = [
        f"set {each['key']} of {each['place'].replace(':', ' ')} back to {each['before'] or 'nothing'}"
        for each in reversed(journal.settings)
    ]
    lines += [f"remove {user} from the group {group}" for user, group in journal.members]
    lines += [f"remove the added lines from {path}" for path in journal.blocks]
    for path, known in journal.files.items():
        there = Path(path)
        if there.exists():
            same = digest(there.read_text(encoding="utf-8", errors="replace")) in known.split()
            lines.append(f"remove {path}" if same else f"keep {path}, which was changed by hand")
    return lines + [f"remove {path} if it is empty" for path in reversed(journal.folders)]


def undo(journal: Journal, set_back: Callable[[dict[str, str]], object] | None) -> None:
    """Undo an installation: what was changed by hand since stays.

    Parameters
    ----------
    journal : of the installation.
    set_back : undoes a scheduler's setting, unless it was changed since. It goes first: what is called must be there.

    Raises
    ------
    RuntimeError : when the scheduler does not answer; nothing is removed then.
    """
    while journal.settings and set_back is not None:
        set_back(journal.settings[-1])
        journal.settings.pop()
        journal.write()
    for user, group in journal.members:
        subprocess.run(["gpasswd", "-d", user, group], check=False, timeout=60, capture_output=True)  # noqa: S603, S607
    for path, how in journal.blocks.items():
        there = Path(path)
        if there.exists():
            left = without_block(there.read_bytes())
            if left or how == "there":
                write_bytes_atomically(there, left)
            else:
                there.unlink()
    for path, known in journal.files.items():
        there = Path(path)
        if there.exists() and digest(there.read_text(encoding="utf-8", errors="replace")) in known.split():
            there.unlink()
    journal.path.unlink(missing_ok=True)
    for path in reversed(journal.folders):
        if Path(path).is_dir() and not any(Path(path).iterdir()):
            Path(path).rmdir()


def without_block(text: bytes) -> bytes:
    """A text without the lines that were added to it; where their end is not marked any more, they stay."""
    kept, added = list[bytes](), list[bytes]()
    for line in text.splitlines(keepends=True):
        if line.rstrip().endswith(BEGIN.encode()):
            kept, added = [*kept, *added], [line]
        elif line.rstrip().endswith(END.encode()) and added:
            added = []
        else:
            (added or kept).append(line)
    return b"".join([*kept, *added])


def digest(text: str) -> str:
    """What a text is known by."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
