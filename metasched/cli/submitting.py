"""``metasched submit``: submit a job to the cluster where it should complete first."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from metasched.cli import output
from metasched.cli.options import ConfigOption, JsonOption
from metasched.cli.service import configuration
from metasched.placement.clusters.queue_wait import QueueWait
from metasched.records import InputError
from metasched.service.configuration import Configuration

if TYPE_CHECKING:
    from metasched.schedulers.contract import Source
    from metasched.schedulers.portable import Portable
    from metasched.schedulers.submission import JobRequest, Submission
    from metasched.service.advice.completion import Estimate

#: How long a cluster or the daemon may take to answer (s), and how long the choice may take in all.
TIMEOUT, DEADLINE = 5.0, 10.0
#: Names of partitions: what could be anything else in a command line is not chosen.
_NAME = re.compile(r"[A-Za-z0-9_][\w.+-]{0,254}", re.ASCII)

Found = TypeVar("Found")


def submit(
    words: Annotated[
        list[str], typer.Argument(metavar="-- ARGUMENTS", help="Arguments of sbatch or qsub, script included.")
    ],
    to: Annotated[list[str] | None, typer.Option(help="Only this cluster of the configuration; repeatable.")] = None,
    through: Annotated[
        str, typer.Option(help="psij: submit with PSI/J, to Slurm and Grid Engine alike, and take sbatch's arguments.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the choice and submit nothing.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit a job to the configured cluster where it should complete first, with sbatch or qsub.

    The job names its application as for the hook: --comment=metasched:app=cg,n=1400 with sbatch, and
    -ac metasched=app=cg,n=1400 with qsub. Completion is the wait, estimated from each queue, plus the predicted run
    time. Where there is no prediction in time the job is submitted unchanged.
    """
    if through not in ("", "psij"):
        raise InputError(f"--through is {through!r}, expected psij")
    settings = configuration(config)
    candidates = _candidates(settings, to, mixed=bool(through))
    portable = _portable(words) if through else None
    asked = portable.asked if portable else candidates[0].asked(words)
    answering: list[Source] = []
    try:
        estimated, why = _within(DEADLINE, lambda: _estimates(settings, asked, candidates, answering)), ""
    except (RuntimeError, InputError) as error:
        estimated, why = [], str(error)
    if estimated:
        source = next(each for each in candidates if each.name == estimated[0].cluster)
        partition = "" if len(asked.partitions) == 1 else estimated[0].partition
    else:
        source, partition = (answering or candidates)[0], ""
        why = why or asked.why_no_mark or "the daemon has no model of the application"
        output.to_stderr(f"submitted unchanged: {why}")
    if not as_json:
        for each in estimated:
            output.err.print(
                f"metasched: {each.cluster}/{each.partition}: completion in {each.completion:.0f} s, of which "
                f"{each.wait:.0f} s in the queue", soft_wrap=True,
            )  # fmt: skip
    submission = source.submission(words, partition)
    status, said = (0, "") if dry_run else _handed(source, submission, portable, partition, capture=as_json)
    if as_json:
        document: dict[str, Any] = {
            "chosen": asdict(estimated[0]) | {"completion": estimated[0].completion} if estimated else None,
            "estimates": [asdict(each) | {"completion": each.completion} for each in estimated],
            "why_unchanged": why,
            "words": words if portable else list(submission.words[1:]),
            "said": said,
            "status": status,
        }
        output.print_json(document)
    elif said:
        output.say(said)
    raise typer.Exit(status)


def _candidates(settings: Configuration, to: Sequence[str] | None, *, mixed: bool) -> list[Source]:
    """The clusters that a job can be submitted to, of one kind unless kinds may be mixed; sbatch's if none is known."""
    from metasched.schedulers.slurm.source import SlurmSource
    from metasched.service.sources import sources

    every = sources(settings, timeout=TIMEOUT, powered=False)
    names = [each.name for each in every]
    for name in to or ():
        if name not in names:
            raise InputError(f"--to is {name!r}, expected one of {', '.join(names) or 'no cluster is configured'}")
    found = [each for each in every if not to or each.name in to]
    if len({each.kind for each in found}) > 1 and not mixed:
        listed = ", ".join(f"{each.name} ({each.kind})" for each in found)
        raise InputError(f"clusters take different arguments: {listed}; expected --to for one kind, or --through psij")
    return found or [SlurmSource("", timeout=TIMEOUT)]


def _portable(words: Sequence[str]) -> Portable:
    from metasched.schedulers.portable import portable
    from metasched.schedulers.psij import require

    require()
    return portable(words)


def _within(seconds: float, compute: Callable[[], Found]) -> Found:
    """The result of a computation within a time limit (s); failures are RuntimeErrors or InputErrors."""
    found: list[Found] = []
    wrong: list[Exception] = []

    def work() -> None:
        try:
            found.append(compute())
        except Exception as error:
            wrong.append(error)

    # Nobody waits at the end for a thread of this kind, whatever it still waits for.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if found:
        return found[0]
    if not wrong:
        raise RuntimeError(f"no choice within {seconds:g} s")
    if isinstance(wrong[0], RuntimeError | InputError):
        raise wrong[0]
    raise RuntimeError(f"an answer cannot be used: {type(wrong[0]).__name__} {wrong[0]}")


def _estimates(
    settings: Configuration, asked: JobRequest, candidates: Sequence[Source], answering: list[Source]
) -> list[Estimate]:
    """When the job would be done where, soonest first; the clusters that answer are noted meanwhile."""
    from metasched.client.connection import ask_configured
    from metasched.placement.clusters.partition_queues import queue_waits
    from metasched.service.advice.completion import estimates

    mark = asked.mark
    if mark is None and len(candidates) == 1:
        return []
    count = (mark.processors if mark else None) or asked.processors
    waits: dict[tuple[str, str], QueueWait] = {}
    silent, too_small = "", False
    for each in candidates:
        try:
            partitions = each.partitions()
            answering.append(each)
            found = queue_waits(partitions, each.queue())
        except RuntimeError as error:
            silent = str(error)
            output.to_stderr(f"{each.name} is left out: {silent}")
            continue
        if mark is None:
            return []
        for partition in partitions:
            if partition.name not in (asked.partitions or found) or not _NAME.fullmatch(partition.name):
                continue
            if partition.total is not None and partition.total < count:
                too_small = True
            else:
                waits[each.name, partition.name] = found[partition.name]
    if mark is None:
        return []
    if not waits:
        open_to_it = f"no partition that is open to the job has {count} processors" if too_small else ""
        raise RuntimeError(silent or open_to_it or "no partition is open to the job")

    def daemon(method: str, path: str, document: Any) -> Any:
        return ask_configured(settings.listen, method, path, document, timeout=TIMEOUT)

    return estimates(daemon, mark.application, mark.problem_size, count, waits)


def _handed(
    source: Source, submission: Submission, portable: Portable | None, partition: str, *, capture: bool
) -> tuple[int, str]:
    from metasched.schedulers.psij import handed_over
    from metasched.schedulers.submission import NOT_FOUND, hand_over

    try:
        if portable is not None:
            return 0, handed_over(portable, source, partition)
        return hand_over(submission, capture=capture)
    except RuntimeError as error:
        output.to_stderr(str(error))
        return 1 if portable else NOT_FOUND, ""
