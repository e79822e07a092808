"""What the hooks of all schedulers have in common: hooks.conf, its deadline, and the jobs that an epilog keeps."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from metasched.doctor.findings import Finding, User
from metasched.plain_numbers import number_of

#: Where prolog and epilog keep jobs, by default.
STATE = "/var/lib/metasched/hooks"
#: Longest deadline that the hooks take (s).
LONGEST = 2.0
#: What to do about jobs that are not delivered.
TELL = "run metasched-epilog --tell; see its output and the daemon's log"


def read_settings(path: Path) -> dict[str, str]:
    """What hooks.conf says, as the hooks read it (``settings`` in metasched_hooks.py); nothing where there is none."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return {}
    pairs = ([os.fsdecode(part.strip()) for part in line.partition(b"=")] for line in lines)
    return {key: value for key, equals, value in pairs if equals and not key.startswith("#")}


def deadline_of(conf: Mapping[str, str]) -> float:
    """The deadline that hooks.conf sets (s), NaN where it is no number.

    >>> deadline_of({}), deadline_of({"deadline": "0_5"})
    (0.2, nan)
    """
    text = conf.get("deadline", "0.2")
    try:
        return float(text) if re.fullmatch("[0-9.eE+-]+", text) else math.nan
    except ValueError:
        return math.nan


def undelivered(state: Path) -> str:
    """How many jobs an epilog keeps in its folder, in words; empty where there are none."""
    waiting, refused = len([*state.glob("ended.*.json")]), len([*state.glob("ended.*.refused")])
    kinds = ((waiting, "not delivered"), (refused, "refused"))
    found = ", ".join(f"{number_of(count, 'job')} {what}" for count, what in kinds if count)
    return found and f"{found} in {state}"


def switched_off(check: str, path: Path, conf: Mapping[str, str]) -> Iterator[Finding]:
    """The file that stops all hooks, if it is there."""
    off = conf.get("off", path.parent / "metasched.off")
    if os.path.exists(off):
        yield Finding(check, "watch", f"{off} exists: all hooks are switched off", f"remove it: rm {off}")


def check_settings(name: str, path: Path, user: User, socket: str | None, scheduler: str) -> Iterator[Finding]:
    """Whether hooks.conf fits the daemon's configuration, and the user of the hook may use what it names."""
    check = f"{name}: hooks.conf"
    if why := user.may(path, "r"):
        yield Finding(
            check, "wrong", why, f"copy deploy/{scheduler}/hooks.conf to {path.parent}, readable by {user.name}"
        )
        return
    conf = read_settings(path)
    problems = []
    if conf.get("cluster") != name:
        problems.append((f"cluster = {conf.get('cluster', '')}", f"cluster = {name}, as in the daemon's configuration"))
    if "socket" in conf:
        if socket is None or Path(conf["socket"]).resolve() != Path(socket).resolve():
            problems.append((f"socket = {conf['socket']}", f"socket = {socket or 'none: use address and token_file'}"))
        elif not Path(conf["socket"]).exists():
            problems.append((f"socket = {conf['socket']} does not exist", "start the daemon"))
        elif why := user.may(conf["socket"], "rw"):
            problems.append(
                (why, f"usermod -aG GROUP {user.name}, GROUP being the socket's, and restart the scheduler")
            )
    elif "token_file" not in conf:
        problems.append(("neither socket nor token_file is set", "set one of them"))
    elif why := user.may(conf["token_file"], "r"):
        problems.append((why, f"make it readable by {user.name} only"))
    deadline = deadline_of(conf)
    if not 0.0 < deadline <= LONGEST:
        problems.append((f"deadline = {conf['deadline']}", f"set at most {LONGEST:g} s, the scheduler waits"))
    for found, expected in problems:
        yield Finding(check, "wrong", f"{path}: {found}", expected)
    if not problems:
        canary = "".join(f", {key} = {value}" for key, value in conf.items() if key.startswith("canary_"))
        yield Finding(check, "well", f"{path}, deadline {1000 * deadline:.0f} ms{canary}")
    yield from switched_off(check, path, conf)
