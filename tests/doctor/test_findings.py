"""Who may do what with files, beside the letters in which ``ls`` shows their modes."""

from __future__ import annotations

import pwd
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from metasched.doctor import findings
from metasched.doctor.findings import User

OWNER, MEMBER, OTHER = User("owner", 7, frozenset({1})), User("member", 8, frozenset({3, 9})), User("x", 9, frozenset())


@pytest.mark.parametrize("kind", [stat.S_IFREG, stat.S_IFDIR])
def test_rights_are_the_letters_of_the_mode(kind: int) -> None:
    for mode in range(0o1000):
        letters = stat.filemode(kind | mode)[1:]
        found: Any = SimpleNamespace(st_mode=kind | mode, st_uid=7, st_gid=9)
        for place, user in enumerate((OWNER, MEMBER, OTHER)):
            allowed = "".join(right if user._has(found, right) else "-" for right in "rwx")
            assert allowed == letters[3 * place : 3 * place + 3]
        root = "".join(right if User("root", 0, frozenset({0}))._has(found, right) else "-" for right in "rwx")
        assert root == ("rwx" if "x" in letters or kind == stat.S_IFDIR else "rw-")


def test_what_a_user_may_not_do_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path.resolve() / "folder" / "file"
    rights = {inner.parent: "x", inner: ""}

    def has(user: User, found: Any, right: str) -> bool:
        return right in rights.get(found, "rwx")

    def status(place: Path) -> Any:
        if place == inner and not rights[inner]:
            raise OSError("Odd")
        return place

    monkeypatch.setattr(User, "_has", has)
    monkeypatch.setattr(findings, "os", SimpleNamespace(stat=status))
    assert OTHER.may(inner, "r") == f"{inner}: odd"
    for had, wanted, refused in (
        ("w", "r", "read it"), ("r", "w", "write it"), ("r", "rx", "run it"), ("r", "rw", "read and write it"),
        ("w", "wx", "write in it"), ("r", "x", "enter"), ("r", "rwx", "use it"),
    ):  # fmt: skip
        rights[inner] = had
        assert OTHER.may(inner, wanted) == f"{inner} does not allow x to {refused}"
        assert OTHER.may(inner, had) == ""
    rights[inner.parent] = "rw"
    assert OTHER.may(inner, "r") == f"{inner.parent} does not allow x to enter"


def test_users_are_named_by_name_or_number_with_all_their_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    ann = SimpleNamespace(pw_name="ann", pw_uid=7, pw_gid=70)
    monkeypatch.setattr(pwd, "getpwnam", {"ann": ann}.__getitem__)
    monkeypatch.setattr(pwd, "getpwuid", {7: ann}.__getitem__)
    members = {1: ["ann"], 2: ["bob"], 3: []}
    groups = [SimpleNamespace(gr_gid=number, gr_mem=names) for number, names in members.items()]
    monkeypatch.setattr("grp.getgrall", lambda: groups)
    assert User.named("ann") == User.named("7") == User("ann", 7, frozenset({1, 70}), 70)
    with pytest.raises(KeyError):
        User.named("bob")
