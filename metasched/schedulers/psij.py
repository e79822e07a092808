"""Submits jobs with PSI/J (https://exaworks.org/psij), which spells one job for several schedulers.

PSI/J's own class for Slurm is used as it is. It has none for Grid Engine: that one lies in
``metasched/schedulers/grid_engine/psij_executor.py``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from metasched.jobs import read_mark
from metasched.records import InputError
from metasched.schedulers.submission import Asked
from metasched.slurm_times import span

if TYPE_CHECKING:
    from metasched.schedulers.contract import Source

#: What PSI/J writes into a script as it is; it would change anything else.
_PLAIN = re.compile(r"[\w@%+=:,./-]{1,1000}", re.ASCII)
#: The class of PSI/J, and its attribute for the mark, by the kind of scheduler.
EXECUTORS = {"slurm": ("slurm", "slurm.comment"), "grid_engine": ("", "gridengine.ac")}


@dataclass(frozen=True, slots=True)
class Portable:
    """A job that every scheduler of PSI/J can take.

    Parameters
    ----------
    asked : its mark, number of processes and partitions.
    script, arguments : what is run.
    comment : with the mark.
    name : of the job.
    time_limit : of the job (s); None where it has none.
    output : the file of what it prints, whose folder exists where it runs.
    """

    asked: Asked
    script: Path
    arguments: tuple[str, ...]
    comment: str
    name: str
    time_limit: float | None
    output: Path


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}, expected options of {self.usage}")


def require() -> None:
    """Raise InputError where PSI/J is not installed."""
    if importlib.util.find_spec("psij") is None:
        raise InputError("--through psij needs psij-python: pip install 'metasched[psij]'")


def portable(words: Sequence[str]) -> Portable:
    """The job of some words of sbatch: those that have a counterpart with every scheduler.

    Raises
    ------
    InputError
        When they hold another option, or no script that can be run.

    Examples
    --------
    >>> job = portable(["-n", "4", "-t", "10", "--comment=metasched:app=cg,n=900", "/bin/true", "-n", "9"])
    >>> job.asked.processors, job.time_limit, job.arguments
    (4, 600.0, ('-n', '9'))
    >>> portable(["--gres=gpu", "/bin/true"])
    Traceback (most recent call last):
    metasched.records.InputError: unrecognized arguments: --gres=gpu, expected options of ...
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
        raise InputError("is no file that can be run, expected a script with chmod +x", where=str(options.script))
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
    asked = Asked(read_mark(options.comment), options.ntasks, partitions)
    return Portable(asked, script, tuple(options.arguments), options.comment, name, limit, output)


def handed_over(job: Portable, source: Source, partition: str = "") -> str:
    """Submit a job to a cluster by PSI/J; its number there.

    Parameters
    ----------
    job : what is submitted.
    source : the cluster.
    partition : where it is to run; as the job says where it is empty.

    Raises
    ------
    InputError
        For a scheduler that jobs are not handed to by PSI/J.
    RuntimeError
        When the scheduler does not take it, or answers something else than a number.
    """
    if source.kind not in EXECUTORS:
        raise InputError(f"PSI/J hands no jobs to {source.kind} here, expected one of {', '.join(EXECUTORS)}")
    import psij

    # PSI/J hands our environment to the commands that it calls.
    os.environ.update(source.submission(()).environment)
    name, marked = EXECUTORS[source.kind]
    attributes = psij.JobAttributes(queue_name=partition or ",".join(job.asked.partitions) or None)
    if job.time_limit is not None:
        attributes.duration = timedelta(seconds=job.time_limit)
    mark = job.comment
    if source.kind == "grid_engine":
        # Its jobs have no comment, and a context only of variables.
        said = mark.partition("metasched:")[2]
        mark = f"metasched={said}" if said else ""
    if mark:
        attributes.set_custom_attribute(marked, mark)
    spec = psij.JobSpec(
        executable=str(job.script),
        arguments=list(job.arguments),
        name=job.name,
        directory=Path.cwd(),
        stdout_path=job.output,
        stderr_path=job.output,
        resources=psij.ResourceSpecV1(process_count=job.asked.processors),
        attributes=attributes,
        launcher="single",
    )
    handed = psij.Job(spec)
    try:
        _executor(name).submit(handed)
    except psij.SubmitException as error:
        raise RuntimeError(f"{source.name} does not take the job: {' '.join(str(error).split())[:500]}") from None
    except OSError as error:
        raise RuntimeError(f"{error.filename} cannot be run: {error.strerror}") from None
    return str(handed.native_id)


def _executor(name: str) -> Any:
    import psij

    if name:
        return psij.JobExecutor.get_instance(name)
    from metasched.schedulers.grid_engine.psij_executor import executor

    return executor()
