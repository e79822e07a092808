"""``metasched submit``: submit a job to the cluster where it should complete first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from metasched.cli import output
from metasched.cli.configured import configuration
from metasched.cli.options import ConfigOption, JsonOption
from metasched.client.connection import ask_configured
from metasched.client.submission import choose
from metasched.records import InputError

if TYPE_CHECKING:
    from metasched.schedulers.contract import Source
    from metasched.schedulers.portable import Portable
    from metasched.schedulers.submission import Submission
    from metasched.service.configuration import Configuration

#: How long a cluster or the daemon may take to answer (s).
TIMEOUT = 5.0


def submit(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="-- ARGUMENTS", help="Arguments of the command that submits, such as sbatch, script included."
        ),
    ],
    to: Annotated[list[str] | None, typer.Option(help="Only this cluster of the configuration; repeatable.")] = None,
    through: Annotated[
        str, typer.Option(help="psij: submit with PSI/J, to Slurm and Grid Engine alike, and take sbatch's arguments.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the choice and submit nothing.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit a job to the configured cluster where it should complete first, with the command of its scheduler.

    The job names its application as for the hook: --comment=metasched:app=cg,n=1400 with sbatch, and
    -ac metasched=app=cg,n=1400 with Grid Engine's qsub. Completion is the wait, estimated from each queue, plus the
    predicted run time. Where there is no prediction in time the job is submitted unchanged.
    """
    if through not in ("", "psij"):
        raise InputError(f"--through is {through!r}, expected psij")
    settings = configuration(config)
    candidates = _candidates(settings, to, mixed=bool(through))
    portable = _portable(words) if through else None
    asked = portable.asked if portable else candidates[0].asked(words)
    ask = partial(ask_configured, settings.listen, timeout=TIMEOUT)
    choice = choose(asked, candidates, ask, output.to_stderr)
    source, partition, estimated = choice.source, choice.partition, choice.estimates
    if choice.why_unchanged:
        output.to_stderr(f"submitted unchanged: {choice.why_unchanged}")
    if not as_json:
        for each in estimated:
            output.err.print(
                f"metasched: {each.cluster}/{each.partition}: completion in {each.completion:.0f} s, of which "
                f"{each.wait:.0f} s in the queue", soft_wrap=True,
            )  # fmt: skip
    submission = source.submission(words, partition)
    status, said = (0, "") if dry_run else _handed(source, submission, portable, partition, capture=as_json)
    if as_json:
        estimates = [asdict(each) | {"completion": each.completion} for each in estimated]
        document: dict[str, Any] = {
            "chosen": next(iter(estimates), None),
            "estimates": estimates,
            "why_unchanged": choice.why_unchanged,
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
