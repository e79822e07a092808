"""A job spelled in options of sbatch that have a counterpart with every scheduler."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from metasched.records import InputError
from metasched.schedulers.submission import JobRequest, directives
from metasched.slurm_times import span

#: Texts that can be written into a script unchanged; PSI/J would change others.
_PLAIN = re.compile(r"[\w@%+=:,./-]{1,1000}", re.ASCII)
#: The option of sbatch for an array, which it takes shortened too.
_ARRAY = re.compile(r"-a.*|--ar(?:r(?:ay?)?)?(?:=.*)?")


@dataclass(frozen=True, slots=True)
class Portable:
    """A job that every scheduler can take.

    Parameters
    ----------
    asked : its mark, number of processes and partitions.
    script, arguments : what is run.
    comment : with the mark.
    name : of the job.
    time_limit : of the job (s); None where it has none.
    output : the file of what it prints, whose folder exists where it runs.
    """

    asked: JobRequest
    script: Path
    arguments: tuple[str, ...]
    comment: str
    name: str
    time_limit: float | None
    output: Path

    @property
    def context(self) -> str:
        """The mark as a variable of Grid Engine, whose jobs have no comment; empty if there is none."""
        mark = self.comment.partition("metasched:")[2]
        return f"metasched={mark}" if mark else ""

    @property
    def is_array(self) -> bool:
        """Whether the script asks for an array of jobs, in a line for Slurm or for Grid Engine."""
        script = str(self.script)
        return "-t" in directives(script, "#$") or any(map(_ARRAY.fullmatch, directives(script, "#SBATCH")))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}, expected options of {self.usage}")


def portable(words: Sequence[str]) -> Portable:
    """The job of some words of sbatch: those that have a counterpart with every scheduler.

    Raises
    ------
    InputError : when they hold another option, or no script that can be run.

    Examples
    --------
    >>> job = portable(["-n", "4", "-t", "10", "--comment=metasched:app=cg,n=900", "/bin/true", "-n", "9"])
    >>> job.asked.processors, job.time_limit, job.arguments
    (4, 600.0, ('-n', '9'))
    >>> portable(["--gres=gpu", "/bin/true"])
    Traceback (most recent call last):
    metasched.records.errors.InputError: unrecognized arguments: --gres=gpu, expected options of ...
    """
    parser = _Parser(add_help=False, allow_abbrev=False, usage="sbatch: -n, -p, -t, -J, -o, --comment, and a script")
    parser.add_argument("-n", "--ntasks", type=int, default=1)
    parser.add_argument("-p", "--partition", default="")
    parser.add_argument("-t", "--time", default="")
    parser.add_argument("-J", "--job-name", default="")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--comment", default="")
    parser.add_argument("script", type=Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options, unknown = parser.parse_known_args(words)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    script = options.script.absolute()
    if not script.is_file() or not os.access(script, os.X_OK):
        raise InputError("is not an executable file, expected a script with chmod +x", where=str(options.script))
    name = options.job_name or script.name
    output = (options.output or Path(f"{name}.out")).absolute()
    for what, value in (("--comment", options.comment), ("--job-name", name), ("--partition", options.partition)):
        if value and not _PLAIN.fullmatch(value):
            raise InputError(
                f"{what} is {value!r}, expected letters, digits and @%+=:,./_-, which PSI/J leaves as they are"
            )
    limit = span(options.time) if options.time else None
    if options.time and limit is None:
        raise InputError(f"--time is {options.time!r}, expected minutes or HOURS:MINUTES:SECONDS")
    if options.ntasks < 1:
        raise InputError(f"--ntasks is {options.ntasks}, expected a positive number")
    partitions = tuple(each for each in options.partition.split(",") if each)
    asked = JobRequest(options.comment, options.ntasks, partitions)
    return Portable(asked, script, tuple(options.arguments), options.comment, name, limit, output)
