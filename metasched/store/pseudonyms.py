"""What users are called where their names are not to be kept: a digest under a key that stays on this host.

Without the key nobody can tell whose jobs they are, not even by trying all names; whoever has it can ask by name.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

from metasched.records import InputError
from metasched.store.database.engine import default_location
from metasched.store.database.past_jobs import PastJobs
from metasched.store.files.user_folders import data_folder
from metasched.store.files.whole_files import refusal

_log = logging.getLogger(__name__)

#: Bytes of a key.
KEY_BYTES = 32
_HASHED = re.compile("user-[0-9a-f]{16}")


class Pseudonyms:
    """What users are called.

    Parameters
    ----------
    key : secret; users go by their names where it is None.

    Examples
    --------
    >>> Pseudonyms(b"secret")("ada")
    'user-3c30486140e27f6f'
    >>> Pseudonyms(None)("ada")
    'ada'
    """

    def __init__(self, key: bytes | None) -> None:
        self._key = key

    @property
    def hides(self) -> bool:
        """Whether names of users and jobs are replaced by pseudonyms."""
        return self._key is not None

    def __call__(self, user: str) -> str:
        """What a user is called; a name that is hidden already stays as it is."""
        if self._key is None or not user or is_hidden(user):
            return user
        digest = hmac.new(self._key, user.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        return f"user-{digest[:16]}"


def is_hidden(user: str) -> bool:
    """Whether that is no name but what a user is called instead."""
    return _HASHED.fullmatch(user) is not None


def key_location(database: str | os.PathLike[str] | None) -> Path:
    """Where the key lies: beside a SQLite file, else in the user's data folder."""
    named = default_location() if database is None else os.fspath(database)
    path = named.removeprefix("sqlite:///")
    return (data_folder() if "://" in path else Path(path).parent) / "history.key"


def read_key(path: Path, *, make: bool = False) -> bytes | None:
    """The key in a file that only its owner may read; None where there is none and none is to be made.

    A key that root makes belongs to whom its folder belongs to, as the database does.

    Raises
    ------
    InputError : when it may not be read or made, others may read it, or it is no key.
    """
    try:
        if make and not path.exists():
            _make(path)
        if not path.exists():
            return None
        if path.stat().st_mode & 0o077:
            raise InputError("may be read by others, expected mode 0600", where=str(path))
        text = path.read_bytes().strip()
    except OSError as error:
        raise InputError(refusal(error), where=str(path)) from None
    if re.fullmatch(rb"[0-9a-f]{%d}" % (2 * KEY_BYTES), text) is None:
        raise InputError(f"is no key, expected {2 * KEY_BYTES} hexadecimal digits", where=str(path))
    return bytes.fromhex(text.decode())


def _make(path: Path) -> None:
    """Make a key, unless somebody else does so first; nobody ever reads half of one."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".history.", suffix=".key")  # of mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_hex(KEY_BYTES).encode() + b"\n")
            if os.geteuid() == 0:
                folder = os.stat(path.parent)
                os.fchown(file.fileno(), folder.st_uid, folder.st_gid)
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


def pseudonyms_of(
    jobs: PastJobs, database: str | os.PathLike[str] | None, *, plain: bool | None = None, renew: bool = False
) -> Pseudonyms:
    """What users are called in a database; by pseudonyms where nobody is called yet.

    Parameters
    ----------
    jobs : the past jobs in the database.
    database : its path or URL.
    plain : whether users are to go by their names; as those go that are there already where None.
    renew : whether a new key is made, and a warning logged, where that of those that are there already is gone: these
        stay unknown.

    Raises
    ------
    InputError : when those that are there already go otherwise, or their key is gone or cannot be used.
    """
    known, key = jobs.any_user(), key_location(database)
    hidden = not plain if known is None else is_hidden(known)
    if plain is not None and hidden == plain:
        raise InputError("users are hidden in the database, expected no --plain-users" if hidden else
                         "users go by their names in the database, expected --plain-users")  # fmt: skip
    if not hidden:
        return Pseudonyms(None)
    found = read_key(key, make=known is None)
    if found is None and not renew:
        raise InputError("is gone, expected the key that users of the past are hidden by", where=str(key))
    if found is None:
        found = read_key(key, make=True)
        _log.warning("%s is gone: users of past jobs stay unknown, and a new key hides those of later ones", key)
    return Pseudonyms(found)
