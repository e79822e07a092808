"""``metasched submit``: hand a job to the Slurm cluster on which it should be done soonest."""

from __future__ import annotations

import os
import subprocess
from dataclasses import asdict
from typing import Annotated, Any

import typer

from metasched.cli import output
from metasched.cli.options import ConfigOption, JsonOption
from metasched.cli.service import configuration
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.records import InputError
from metasched.service.configuration import Configuration, SlurmCluster


def submit(
    words: Annotated[list[str], typer.Argument(metavar="-- SBATCH ARGUMENTS...", help="Arguments of sbatch.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the choice and submit nothing.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit a job with sbatch to the configured Slurm cluster where it should complete first.

    The job names its application as for the hook: --comment=metasched:app=cg,n=1400. Completion is the wait, estimated
    from each queue, plus the predicted run time. Where there is no prediction the job is submitted unchanged.
    """
    settings = configuration(config)
    try:
        estimated, why = _estimates(settings, words), ""
    except (RuntimeError, InputError) as error:
        estimated, why = [], str(error)
    cluster = next((each for each in settings.slurm if estimated and each.name == estimated[0].cluster), None)
    handed = list(words)
    if cluster is not None and not _named(words):
        handed.insert(0, f"--partition={estimated[0].partition}")
    if cluster is None:
        output.to_stderr(f"submitted unchanged: {why or 'no model of the application, or no mark in the comment'}")
    elif not as_json:
        for each in estimated:
            output.err.print(
                f"metasched: {each.cluster}/{each.partition}: completion in {each.completion:.0f} s, of which "
                f"{each.wait:.0f} s in the queue", markup=False, soft_wrap=True,
            )  # fmt: skip
    status, said = (0, "") if dry_run else _sbatch(cluster or _first(settings), handed, capture=as_json)
    if as_json:
        document: dict[str, Any] = {
            "chosen": None if cluster is None else asdict(estimated[0]) | {"completion": estimated[0].completion},
            "estimates": [asdict(each) | {"completion": each.completion} for each in estimated],
            "why_unchanged": why,
            "words": handed,
            "said": said,
            "status": status,
        }
        output.print_json(document)
    raise typer.Exit(status)


def _estimates(settings: Configuration, words: list[str]) -> list[Any]:
    from metasched.client.connection import ask_configured
    from metasched.placement.clusters.partition_queues import queue_waits
    from metasched.schedulers.slurm.source import SlurmSource
    from metasched.schedulers.slurm.submission import asked_for
    from metasched.service.advice.completion import estimates

    asked = asked_for(words)
    if asked.mark is None or not settings.slurm:
        return []
    waits: dict[tuple[str, str], QueueWait] = {}
    silent = ""
    for each in settings.slurm:
        source = SlurmSource(each.name, each.partitions, configuration=each.configuration, timeout=TIMEOUT)
        try:
            found = queue_waits(source.partitions(), source.queue())
        except RuntimeError as error:
            silent = str(error)
            output.to_stderr(f"{each.name} is left out: {silent}")
            continue
        waits |= {(each.name, name): wait for name, wait in found.items() if name in (asked.partitions or found)}
    if not waits:
        raise RuntimeError(silent or "no partition is open to the job")

    def daemon(method: str, path: str, document: Any) -> Any:
        return ask_configured(settings.listen, method, path, document, timeout=TIMEOUT)

    mark = asked.mark
    return estimates(daemon, mark.application, mark.problem_size, mark.processors or asked.processors, waits)


#: How long a cluster or the daemon may take to answer (s).
TIMEOUT = 5.0


def _named(words: list[str]) -> bool:
    from metasched.schedulers.slurm.submission import asked_for

    return len(asked_for(words).partitions) == 1


def _first(settings: Configuration) -> SlurmCluster | None:
    """The cluster that an unchanged job goes to: the first that answers, else the one of the environment."""
    from metasched.schedulers.slurm.commands import Commands

    for each in settings.slurm:
        try:
            Commands(each.configuration, TIMEOUT).run("scontrol", "ping")
        except RuntimeError:
            continue
        return each
    return None


def _sbatch(cluster: SlurmCluster | None, words: list[str], *, capture: bool) -> tuple[int, str]:
    environment = dict(os.environ)
    if cluster is not None and cluster.configuration:
        environment["SLURM_CONF"] = cluster.configuration
    try:
        done = subprocess.run(  # noqa: S603
            ["sbatch", *words],  # noqa: S607
            env=environment, stdout=subprocess.PIPE if capture else None, check=False, text=True, errors="replace",
        )  # fmt: skip
    except OSError as error:
        output.to_stderr(f"sbatch cannot be run: {error.strerror}")
        return 127, ""
    return done.returncode, (done.stdout or "").strip()
