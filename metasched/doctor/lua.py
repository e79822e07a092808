"""The Lua that Slurm loads: whether it takes a script, and finds the modules that the hook needs."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

#: Names of Lua's library, in the order in which Slurm looks for it where its plugin does not name one.
LIBRARIES = (
    *("liblua.so", "liblua-5.4.so", "liblua5.4.so", "liblua5.4.so.0", "liblua.so.5.4"),
    *("liblua-5.3.so", "liblua5.3.so", "liblua5.3.so.0", "liblua.so.5.3"),
    *("liblua-5.2.so", "liblua5.2.so", "liblua5.2.so.0", "liblua.so.5.2"),
    *("liblua-5.1.so", "liblua5.1.so", "liblua5.1.so.0", "liblua.so.5.1"),
)
#: Where Slurm's plugins are, unless slurm.conf says so.
PLUGINS = ("/usr/lib64/slurm", "/usr/lib/slurm", "/usr/lib/*/slurm*", "/usr/local/lib*/slurm", "/opt/slurm/lib*/slurm")
PLUGIN = "job_submit_lua.so"
#: How long modules may take to load (s).
TIMEOUT = 15.0


def libraries_of(plugin_folders: str = "") -> Sequence[str]:
    """Names of Lua's library in Slurm's plugin, the one that it is linked with first.

    Parameters
    ----------
    plugin_folders : ``PluginDir`` of slurm.conf, empty where that does not set it.
    """
    own = [Path(folder) / PLUGIN for folder in plugin_folders.split(":") if folder]
    usual = [path for folder in PLUGINS for path in sorted(Path("/").glob(f"{folder[1:]}/{PLUGIN}"))]
    for plugin in own or usual:
        with suppress(OSError):
            names = re.findall(rb"\0(liblua[\w.-]*\.so[\w.]*)(?=\0)", plugin.read_bytes())
            if names:
                return tuple(dict.fromkeys(name.decode() for name in names))
    return LIBRARIES


def loadable(libraries: Sequence[str]) -> str | None:
    """The first of some libraries that is there; None where none is."""
    for name in libraries:
        with suppress(OSError):
            ctypes.CDLL(name)
            return name
    return None


def lua_error(script: Path, libraries: Sequence[str] = LIBRARIES) -> str | None:
    """What is wrong with the syntax of a Lua script, empty where nothing is; None where there is no Lua to tell.

    The script is compiled and not run.
    """
    name = loadable(libraries)
    return None if name is None else _compiled(ctypes.CDLL(name), script)


def missing_modules(library: str, modules: Sequence[str]) -> list[str]:
    """The modules that Lua does not find, or cannot load; in a process of its own, since they are run."""
    words = [sys.executable, "-m", "metasched.doctor.lua", library, *modules]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LUA_")}
    try:
        done = subprocess.run(  # noqa: S603
            words, capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False, env=clean
        )
    except (OSError, subprocess.TimeoutExpired):
        return [*modules]
    loaded = done.stdout.split()
    return [each for each in modules if each not in loaded]


def _compiled(lua: ctypes.CDLL, script: Path) -> str:
    state = _state(lua)
    if hasattr(lua, "luaL_loadfilex"):
        lua.luaL_loadfilex.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
        failed = lua.luaL_loadfilex(state, os.fsencode(script), None)
    else:
        lua.luaL_loadfile.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        failed = lua.luaL_loadfile(state, os.fsencode(script))
    error = lua.lua_tolstring(state, -1, None) if failed else b""
    lua.lua_close(state)
    return (error or b"").decode(errors="replace")


def _state(lua: ctypes.CDLL) -> ctypes.c_void_p:
    lua.luaL_newstate.restype = ctypes.c_void_p
    lua.lua_tolstring.restype = ctypes.c_char_p
    lua.lua_tolstring.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    lua.lua_close.argtypes = [ctypes.c_void_p]
    return ctypes.c_void_p(lua.luaL_newstate())


def _loads(lua: ctypes.CDLL, module: str) -> bool:
    """Whether a module is found and loaded, which runs it."""
    state = _state(lua)
    lua.luaL_openlibs.argtypes = [ctypes.c_void_p]
    lua.luaL_openlibs(state)
    lua.luaL_loadstring.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    if lua.luaL_loadstring(state, f"require('{module}')".encode()):
        return False
    if hasattr(lua, "lua_pcallk"):  # from 5.2 on
        lua.lua_pcallk.argtypes = [ctypes.c_void_p, *[ctypes.c_int] * 3, ctypes.c_ssize_t, ctypes.c_void_p]
        return not lua.lua_pcallk(state, 0, 0, 0, 0, None)
    lua.lua_pcall.argtypes = [ctypes.c_void_p, *[ctypes.c_int] * 3]
    return not lua.lua_pcall(state, 0, 0, 0)


if __name__ == "__main__":
    # Modules written in C find Lua among what the whole process knows.
    loaded = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
    for name in sys.argv[2:]:
        if _loads(loaded, name):
            print(name, flush=True)
