"""Reading and writing whole files, so that no reader ever sees half of one.

A file is written beside its destination, flushed to the disk, and then renamed over it: readers see the old text or the
new, never a part. Devices and pipes, such as ``/dev/null``, are written to and never replaced. Whatever the file system
refuses comes back as an :class:`InputError` that names the file.
"""

from __future__ import annotations

import gzip
import os
import stat
import tempfile
import zlib
from contextlib import suppress
from io import BufferedIOBase
from pathlib import Path

from metasched.records import InputError

#: Most bytes that are read of a file, unpacked, so that neither endless devices nor a few packed bytes fill the memory.
MOST_BYTES = 512 * 2**20
#: Bytes that are read at a time: a process whose memory is limited may not have room for the most at once.
PIECE = 2**20


def read_text(path: str | os.PathLike[str], most: int | None = None) -> str:
    """Read a text file in UTF-8, with or without a byte order mark; unpack it first when its name ends in ``.gz``.

    Raises
    ------
    InputError : when there is no such file, it is a directory, it may not be read, has more bytes than ``most`` (by
        default :data:`MOST_BYTES`), or what it holds is not UTF-8 (or not gzip).
    """
    path, most = Path(path), MOST_BYTES if most is None else most
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            data = _start(file, most + 1)
        text = data.decode("utf-8-sig") if len(data) <= most else None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"byte {data[error.start]:#04x} is not UTF-8", where=f"{path}, row {line}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"is not a whole gzip file ({error})", where=str(path)) from None
    except (OSError, ValueError) as error:  # of the name, a ValueError, where no file could be called so
        raise InputError(refusal(error), where=str(path)) from None
    if text is None:
        raise InputError(f"has more than {most} bytes", where=str(path))
    return text


def write_text_atomically(path: str | os.PathLike[str], text: str, mode: int | None = None) -> None:
    """Write a text file in UTF-8, all of it or nothing.

    An existing file keeps its permissions, and its owner and group where we may give it away; a symbolic link is
    followed, so that the link stays one.

    Parameters
    ----------
    path : the file; its folder must exist.
    text : all that it shall hold.
    mode : permissions of the file, such as 0o600; None for those of the file that it replaces, else those of the umask.

    Raises
    ------
    InputError : when the folder does not exist or may not be written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "greeting.txt")
    ...     write_text_atomically(path, "hello")
    ...     path.read_text(), len(list(path.parent.iterdir()))
    ('hello', 1)
    """
    write_bytes_atomically(path, text.encode("utf-8"), mode)


def write_bytes_atomically(path: str | os.PathLike[str], data: bytes, mode: int | None = None) -> None:
    """Write a file, all of it or nothing, as :func:`write_text_atomically` does, whose parameters it takes.

    Raises
    ------
    InputError : when the folder does not exist or may not be written.
    """
    try:
        kind = _kind(path)
        if kind and not stat.S_ISREG(kind):
            if stat.S_ISDIR(kind):
                raise InputError("is a directory, expected a file", where=str(path))
            with open(path, "wb") as special:
                special.write(data)
            return
        target = Path(path).resolve()
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".part")
    except OSError as error:
        raise InputError(f"cannot be written: {refusal(error)}", where=str(path)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _as_before(target, temporary, mode)
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise InputError(f"cannot be written: {refusal(error)}", where=str(path)) from None
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check before long work that a file can be written after it; nothing is left behind.

    Raises
    ------
    InputError : when :func:`write_text_atomically` could not write it.
    """
    try:
        kind = _kind(path)
        if stat.S_ISDIR(kind):
            raise InputError("is a directory, expected a file", where=str(path))
        if not kind or stat.S_ISREG(kind):
            with tempfile.TemporaryFile(dir=Path(path).resolve().parent):
                pass
    except OSError as error:
        raise InputError(f"cannot be written: {refusal(error)}", where=str(path)) from None


def _start(file: BufferedIOBase, most: int) -> bytes:
    """What a file begins with, up to so many bytes."""
    pieces: list[bytes] = []
    while most > 0 and (piece := file.read(min(most, PIECE))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _kind(path: str | os.PathLike[str]) -> int:
    """The mode of what is there, links followed; 0 where nothing is."""
    with suppress(FileNotFoundError):
        return os.stat(path).st_mode
    return 0


def _as_before(target: Path, new: str, mode: int | None) -> None:
    """Give the new file the owner and group of the one it replaces, as far as we may, and its permissions.

    Where there is none its permissions are what the umask leaves.
    """
    try:
        before = target.stat()
    except OSError:
        mask = os.umask(0o077)
        os.umask(mask)
        os.chmod(new, 0o666 & ~mask if mode is None else mode)
        return
    for owner, group in ((-1, before.st_gid), (before.st_uid, -1)):
        with suppress(OSError):
            os.chown(new, owner, group)
    os.chmod(new, before.st_mode & 0o777 if mode is None else mode)


def refusal(error: OSError | ValueError) -> str:
    """What the file system says, in a few words; a ValueError where the name itself cannot be one."""
    return (getattr(error, "strerror", None) or str(error)).lower()
