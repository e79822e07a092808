"""The files of ``deploy/``, as an administrator copies them."""

from __future__ import annotations

import shutil
from pathlib import Path

DEPLOYED = Path(__file__).resolve().parents[2] / "deploy"


def copy_deployed(folder: Path, *rooms: str) -> None:
    """Copy the files of some folders of ``deploy/`` into one, without what Python may have compiled beside them."""
    for room in rooms:
        for path in (DEPLOYED / room).iterdir():
            if path.is_file():
                shutil.copy(path, folder)
