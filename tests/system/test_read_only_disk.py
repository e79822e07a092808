"""A SQLite database on a disk that the system has made read-only, as after faults of it: one line names the cause."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(os.getuid() != 0 or shutil.which("unshare") is None, reason="only root may mount a disk"),
]
#: Mounts a disk at $0 that nobody else sees, and makes a database there before it becomes read-only.
MOUNTED = """
mount -t tmpfs tmpfs "$0" && "$1" -m metasched token add ann --role reader --database "$0/m.db" >"$2" &&
mount -o remount,ro "$0" && exec "$1" -m metasched token {} --database "$0/m.db"
"""


@pytest.mark.parametrize("verb", ["list", "revoke ann", "add bob --role reader"])
def test_a_database_on_a_disk_that_became_read_only_is_refused_with_the_cause(verb: str, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["unshare", "--mount", "sh", "-c", MOUNTED.format(verb), disk, sys.executable, tmp_path / "secret"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (tmp_path / "secret").read_text()
    assert (done.returncode, done.stdout) == (2, "")
    why = "cannot be opened: there is no such folder, no permission, or its disk is read-only"
    assert done.stderr == f"metasched: {disk}/m.db: {why}\n"
