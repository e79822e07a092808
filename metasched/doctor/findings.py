"""What a check of the installation found: one line on how things are, and one on what to do."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from metasched.store.files.whole_files import refusal

#: well: as it should be; watch: works, but somebody should look; wrong: does not work.
State = Literal["well", "watch", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check.

    Parameters
    ----------
    check : what was examined, in a word or two.
    state : well, watch or wrong.
    found : how it is.
    remedy : what to do about it; empty where it is well.
    """

    check: str
    state: State
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class User:
    """A user of the system by number, with the groups that count for permissions."""

    name: str
    uid: int
    groups: frozenset[int]
    group: int = 0

    @classmethod
    def named(cls, name: str) -> User:
        """The user of a name, or of a number.

        Raises
        ------
        KeyError : when there is none.
        """
        found = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
        groups = {each.gr_gid for each in grp.getgrall() if found.pw_name in each.gr_mem}
        return cls(found.pw_name, found.pw_uid, frozenset(groups | {found.pw_gid}), found.pw_gid)

    @classmethod
    def named_or_own(cls, name: str) -> User:
        """The user of a name, ours where there is none."""
        try:
            return cls.named(name)
        except KeyError:
            return cls.named(f"{os.geteuid()}")

    def may(self, path: str | os.PathLike[str], rights: str) -> str:
        """Why the user has not these rights (of "rwx") on a path; empty where they have.

        Every folder on the way must let the user through. Access control lists are not considered.
        """
        whole = Path(path).resolve()
        for place, wanted in [*((folder, "x") for folder in reversed(whole.parents)), (whole, rights)]:
            try:
                found = os.stat(place)
            except OSError as error:
                return f"{place}: {refusal(error)}"
            if not all(self._has(found, right) for right in wanted):
                return f"{place} does not allow {self.name} to {_SAID.get(wanted, 'use it')}"
        return ""

    def _has(self, found: os.stat_result, right: str) -> bool:
        if self.uid == 0:
            return right != "x" or stat.S_ISDIR(found.st_mode) or bool(found.st_mode & 0o111)
        bit = {"r": 4, "w": 2, "x": 1}[right]
        shift = 6 if found.st_uid == self.uid else 3 if found.st_gid in self.groups else 0
        return bool(found.st_mode >> shift & bit)


_SAID = {"x": "enter", "r": "read it", "w": "write it", "rx": "run it", "rw": "read and write it", "wx": "write in it"}
