"""Where the files are that an administrator installs: beside the source, or where a package put them."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from metasched.records import InputError


def deployed() -> Path:
    """The folder with metasched.toml, the units, and slurm/.

    Raises
    ------
    InputError : when they are not installed.

    Examples
    --------
    >>> (deployed() / "slurm" / "job_submit.lua").is_file()
    True
    """
    beside = Path(__file__).resolve().parents[2] / "deploy"
    places = (beside, Path(sysconfig.get_path("data")) / "share" / "metasched", Path("/usr/share/metasched"))
    for place in places:
        if (place / "slurm" / "job_submit.lua").is_file():
            return place
    raise InputError(
        f"the hooks are not installed, expected slurm/job_submit.lua in one of {', '.join(map(str, places))}"
    )
