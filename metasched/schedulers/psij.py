"""Submits jobs with PSI/J (https://exaworks.org/psij), which spells one job for several schedulers.

PSI/J's own class for Slurm is used as it is. It has none for Grid Engine: that one lies in
``metasched/schedulers/grid_engine/psij_executor.py``.
"""

from __future__ import annotations

import importlib.util
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metasched.records import InputError
from metasched.schedulers.portable import Portable

if TYPE_CHECKING:
    from metasched.schedulers.contract import Source

#: The class of PSI/J, and its attribute for the mark, by the kind of scheduler.
EXECUTORS = {"slurm": ("slurm", "slurm.comment"), "grid_engine": ("", "gridengine.ac")}


def require() -> None:
    """Raise InputError where PSI/J is not installed."""
    if importlib.util.find_spec("psij") is None:
        raise InputError("--through psij needs psij-python: pip install 'metasched[psij]'")


def handed_over(job: Portable, source: Source, partition: str = "") -> str:
    """Submit a job to a cluster by PSI/J; its number there.

    Parameters
    ----------
    job : what is submitted.
    source : the cluster.
    partition : where it is to run; as the job says where it is empty.

    Raises
    ------
    InputError : for a scheduler that jobs are not handed to by PSI/J.
    RuntimeError : when the scheduler does not take it, or answers something else than a number.
    """
    if source.kind not in EXECUTORS:
        raise InputError(f"PSI/J cannot submit to {source.kind} here, expected one of {', '.join(EXECUTORS)}")
    import psij

    # PSI/J hands our environment to the commands that it calls.
    os.environ.update(source.submission(()).environment)
    name, marked = EXECUTORS[source.kind]
    attributes = psij.JobAttributes(queue_name=partition or ",".join(job.asked.partitions) or None)
    if job.time_limit is not None:
        attributes.duration = timedelta(seconds=job.time_limit)
    if mark := job.context if source.kind == "grid_engine" else job.comment:
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
        raise RuntimeError(f"{source.name} does not accept the job: {' '.join(str(error).split())[:500]}") from None
    except OSError as error:
        raise RuntimeError(f"{error.filename} cannot be run: {error.strerror}") from None
    return str(handed.native_id)


def _executor(name: str) -> Any:
    import psij

    if name:
        return psij.JobExecutor.get_instance(name)
    from metasched.schedulers.grid_engine.psij_executor import executor

    return executor()
