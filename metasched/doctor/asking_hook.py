"""Checks of a hook that asks the daemon about jobs and reports none: files, settings, and whether it is answered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from metasched.doctor.findings import Finding, User
from metasched.doctor.hook_settings import check_settings
from metasched.doctor.hooks import fails

#: Asks the daemon for its health, beside the hooks of all schedulers.
SHARED = "metasched_hooks.py"


def check_asking_hook(
    name: str, folder: Path, files: Sequence[str], user: User, socket: str | None, scheduler: str
) -> Iterator[Finding]:
    """Check a hook in its folder, by the names of its files without those of settings, and its folder in deploy."""
    found = [why for each in (*files, SHARED) if (why := user.may(folder / each, "r"))]
    for why in found:
        yield Finding(f"{name}: hook", "wrong", why, f"metasched setup {scheduler}")
    if found:
        return
    yield from check_settings(name, folder / "hooks.conf", user, socket, scheduler)
    words = ["/usr/bin/python3", "-IS", str(folder / SHARED), "--check"]
    if why := fails(words, user):
        yield Finding(f"{name}: hook", "wrong", why, f"run it as {user.name}: {' '.join(words)}")
    else:
        yield Finding(f"{name}: hook", "well", f"{folder}, reaches the daemon as {user.name}")
