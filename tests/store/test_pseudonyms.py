"""What users are called, and the key that hides them: who makes it, who may read it, and what is refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from metasched.records import InputError
from metasched.store.pseudonyms import KEY_BYTES, Pseudonyms, key_location, pseudonyms_of, read_key


def test_only_names_are_replaced_and_only_under_a_key() -> None:
    hidden, plain = Pseudonyms(b"secret"), Pseudonyms(None)
    assert (hidden.hides, plain.hides) == (True, False)
    called = hidden("ada")
    assert (hidden(called), hidden(""), plain("ada")) == (called, "", "ada")
    assert hidden(f"{called}0") not in (called, f"{called}0")
    assert len({hidden("ada"), hidden("bob"), Pseudonyms(b"other")("ada")}) == 3


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "history.key"
    assert read_key(path) is None
    assert not path.exists()
    key = read_key(path, make=True)
    assert key is not None
    assert len(key) == KEY_BYTES
    assert path.read_text() == f"{key.hex()}\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (read_key(path, make=True), read_key(path)) == (key, key)
    assert os.listdir(tmp_path) == ["history.key"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_key_that_root_makes_belongs_to_the_owner_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    os.chown(folder, 1234, 2345)
    read_key(folder / "history.key", make=True)
    made = (folder / "history.key").stat()
    assert (made.st_uid, made.st_gid) == (1234, 2345)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610, 0o601])
def test_a_key_that_anybody_else_may_touch_is_refused(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "history.key"
    read_key(path, make=True)
    path.chmod(mode)
    with pytest.raises(InputError, match=r"history\.key: may be read by others, expected mode 0600"):
        read_key(path)


@pytest.mark.parametrize("text", ["", "ab" * (KEY_BYTES - 1), "ab" * (KEY_BYTES + 1), "AB" * KEY_BYTES, "x" * 64])
def test_what_is_no_key_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "history.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(InputError, match=r"history\.key: is no key, expected 64 hexadecimal digits"):
        read_key(path)
    path.unlink()
    path.mkdir(mode=0o700)
    with pytest.raises(InputError, match=r"history\.key: "):
        read_key(path)


@pytest.mark.parametrize(
    ("known", "plain", "has_key", "found"),
    [
        (None, None, False, "hides"),
        (None, False, False, "hides"),
        (None, True, False, "plain"),
        ("ada", None, False, "plain"),
        ("ada", True, False, "plain"),
        ("ada", False, False, "users go by their names in the database, expected --plain-users"),
        ("user-0123456789abcdef", None, True, "hides"),
        ("user-0123456789abcdef", False, True, "hides"),
        ("user-0123456789abcdef", True, True, "users are hidden in the database, expected no --plain-users"),
        ("user-0123456789abcdef", None, False, "KEY: is gone, expected the key that users of the past are hidden by"),
    ],
)
def test_users_are_called_as_they_are_called_already(
    known: str | None, plain: bool | None, has_key: bool, found: str, tmp_path: Path
) -> None:
    database = tmp_path / "site.db"
    key = key_location(database)
    if has_key:
        read_key(key, make=True)
    jobs: Any = SimpleNamespace(any_user=lambda: known)
    if found in ("hides", "plain"):
        assert pseudonyms_of(jobs, database, plain=plain).hides == (found == "hides")
        assert key.exists() == (found == "hides")
    else:
        with pytest.raises(InputError) as refused:
            pseudonyms_of(jobs, database, plain=plain)
        assert str(refused.value) == found.replace("KEY", str(key))
        assert key.exists() == has_key
