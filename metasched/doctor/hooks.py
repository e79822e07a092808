"""Which of metasched's hooks a site's own call, and whether prolog and epilog run as slurmctld runs them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from metasched.doctor.findings import User
from metasched.store.files.whole_files import refusal

#: How long prolog and epilog may take (s).
TIMEOUT = 15.0
#: A number that Slurm gives to no job.
NO_JOB = "0"


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
