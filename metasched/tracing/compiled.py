"""Programs in C that come with metasched, compiled with the user's compiler of MPI when they are first needed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from metasched.records import InputError
from metasched.store.files.user_folders import cache_folder

#: How long a compiler may take (s).
TIMEOUT = 120.0


def compiled(
    source: Path, compiler: str, options: Sequence[str], suffix: str = "", headers: Sequence[Path] = ()
) -> Path:
    """The program of a source, compiled once for each state of the source and its headers, and each compiler.

    Parameters
    ----------
    source : file in C.
    compiler : name or path of the compiler.
    options : of the compiler.
    suffix : of the program's name.
    headers : files of ours that the source includes.

    Raises
    ------
    InputError : when there is no such compiler, or it fails.
    """
    found = shutil.which(compiler)
    if found is None:
        raise InputError(f"{compiler} is not installed; on Debian: apt-get install libopenmpi-dev or libmpich-dev")
    # A link may come to name another compiler; wrappers of one name differ by their folder.
    named = "\0".join([found, os.path.realpath(found), *options])
    state = hashlib.sha256(b"".join(each.read_bytes() for each in (source, *headers)) + named.encode()).hexdigest()[:16]
    cache = cache_folder()
    target = cache / f"{source.stem}-{state}{suffix}"
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            made = Path(folder) / f"{source.stem}{suffix}"
            command = [found, *options, str(source), "-o", str(made)]
            try:
                done = subprocess.run(  # noqa: S603
                    command, capture_output=True, stdin=subprocess.DEVNULL, text=True, errors="replace",
                    timeout=TIMEOUT, check=False,
                )  # fmt: skip
            except (OSError, subprocess.TimeoutExpired) as error:
                raise InputError(f"{compiler} cannot build {source.name}: {error}") from None
            if done.returncode:
                raise InputError(f"{compiler} cannot build {source.name}: {done.stderr.strip()[-300:]}")
            if not made.is_file():
                raise InputError(f"{compiler} made no program of {source.name}")
            made.replace(target)
    return target
