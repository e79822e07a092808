"""Whether the hooks run: Lua's syntax by Slurm's own library, prolog and epilog as slurmctld runs them."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from metasched.doctor.findings import User
from metasched.store.files.whole_files import refusal

#: Names of Lua's library, in the order in which Slurm looks for it.
LIBRARIES = (
    *("liblua.so", "liblua-5.4.so", "liblua5.4.so", "liblua5.4.so.0", "liblua.so.5.4"),
    *("liblua-5.3.so", "liblua5.3.so", "liblua5.3.so.0", "liblua.so.5.3"),
    *("liblua-5.2.so", "liblua5.2.so", "liblua5.2.so.0", "liblua.so.5.2"),
    *("liblua-5.1.so", "liblua5.1.so", "liblua5.1.so.0", "liblua.so.5.1"),
)
#: How long prolog and epilog may take (s).
TIMEOUT = 15.0
#: A number that Slurm gives to no job.
NO_JOB = "0"


def lua_error(script: Path) -> str | None:
    """What is wrong with the syntax of a Lua script, empty where nothing is; None where there is no Lua to tell.

    The script is compiled and not run.
    """
    for name in LIBRARIES:
        with suppress(OSError):
            return _compiled(ctypes.CDLL(name), script)
    return None


def _compiled(lua: ctypes.CDLL, script: Path) -> str:
    lua.luaL_newstate.restype = ctypes.c_void_p
    lua.lua_tolstring.restype = ctypes.c_char_p
    lua.lua_tolstring.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    lua.lua_close.argtypes = [ctypes.c_void_p]
    state = lua.luaL_newstate()
    if hasattr(lua, "luaL_loadfilex"):
        lua.luaL_loadfilex.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
        failed = lua.luaL_loadfilex(state, os.fsencode(script), None)
    else:
        lua.luaL_loadfile.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        failed = lua.luaL_loadfile(state, os.fsencode(script))
    error = lua.lua_tolstring(state, -1, None) if failed else b""
    lua.lua_close(state)
    return (error or b"").decode(errors="replace")


def loaded_by(script: Path) -> Path | None:
    """The script of metasched that a site's own job_submit.lua loads, None where it loads none."""
    text = script.read_text(encoding="utf-8", errors="replace")
    if "/v1/placements" in text:
        return script
    found = re.search(r"""^[^-\n]*dofile[^"'\n]*["']([^"'\n]+\.lua)["']""", text, re.MULTILINE)
    return Path(found[1]) if found else None


def called_by(script: Path, name: str) -> Path | None:
    """The hook of metasched that a site's own calls, itself where it is metasched's, None where it calls none."""
    if script.name == name:
        return script
    text = script.read_text(encoding="utf-8", errors="replace")
    found = re.search(rf"(?m)^[^#\n]*?(/[\w./-]+/{name})\b", text)
    return Path(found[1]) if found else None


def fails(words: Sequence[str], user: User, environment: Mapping[str, str] | None = None) -> str:
    """Why a hook fails as slurmctld runs it, as its user and with Slurm's variables alone; empty where it does not."""
    other = {} if os.geteuid() != 0 else {"user": user.uid, "group": user.group, "extra_groups": sorted(user.groups)}
    try:
        done = subprocess.run(  # noqa: S603
            list(words), env=dict(environment or {}), capture_output=True, stdin=subprocess.DEVNULL, cwd="/",
            timeout=TIMEOUT, check=False, text=True, errors="replace", **other,
        )  # type: ignore[call-overload]  # fmt: skip
    except OSError as error:
        return f"{words[0]} cannot be run: {refusal(error)}"
    except subprocess.TimeoutExpired:
        return f"{words[0]} takes longer than {TIMEOUT:g} s"
    if done.returncode == 0:
        return ""
    said = " ".join((done.stderr or done.stdout).split())[-300:]
    return f"{words[0]} fails with status {done.returncode}{f': {said}' if said else ''}"
