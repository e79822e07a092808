"""The requests of a job before its submission, and the submission by an argument list, without a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from metasched.jobs import Mark, read_mark, understood_mark
from metasched.placement.clusters.partition import Holder
from metasched.records import DEFAULT_SETTINGS, InputError, Settings
from metasched.store.files.whole_files import refusal

#: Script text beyond this is not read (bytes).
MOST_SCRIPT = 65_536
#: What a shell would leave with where a command is not found.
NOT_FOUND = 127


@dataclass(frozen=True, slots=True)
class JobRequest:
    """The requests of a job.

    Parameters
    ----------
    comment : the comment that may hold its mark, or that mark in the form of a comment.
    processors : how many it asks for, each for one process.
    partitions : their names, empty if it names none.
    devices : whether it asks for GPUs or other generic resources. It is taken for none of its application then: where
        there are some is for its scheduler to say.
    holder : whose limits count for it.
    layout : processes per node and threads that it asks for, where its scheduler has words for them.
    """

    comment: str
    processors: int
    partitions: tuple[str, ...]
    devices: bool = False
    holder: Holder = field(default_factory=Holder)
    layout: Settings = DEFAULT_SETTINGS

    @property
    def settings(self) -> Settings:
        """The settings that its mark states, with its own layout where the mark states none."""
        stated = DEFAULT_SETTINGS if self.mark is None else self.mark.settings
        if stated.laid_out:
            return stated
        return replace(stated, processes_per_node=self.layout.processes_per_node, threads=self.layout.threads)

    @property
    def mark(self) -> Mark | None:
        """The mark that says what it is; None where there is none that counts."""
        return None if self.devices else read_mark(self.comment)

    @property
    def why_no_mark(self) -> str:
        """Why it has no mark that counts, empty where it has one."""
        if self.devices:
            return "it asks for GPUs or other generic resources"
        try:
            mark = understood_mark(self.comment)
        except InputError as error:
            return str(error)
        return "" if mark else "its comment does not name its application, expected metasched:app=NAME,n=SIZE"


@dataclass(frozen=True, slots=True)
class Submission:
    """A command that submits a job: its words, and variables besides ours."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def lines_of(path: str) -> list[str]:
    """The first lines of a file; none of what is no file, such as a pipe, which its scheduler's command has to read."""
    try:
        if not Path(path).is_file():
            return []
        with Path(path).open("rb") as file:
            return file.read(MOST_SCRIPT).decode(errors="replace").splitlines()
    except OSError:
        return []


def directives(script: str, prefix: str) -> list[str]:
    r"""The words of a script's lines that begin with a prefix, without lines whose quotes do not close.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
    ...     _ = file.write("#!/bin/sh\n#$ -q 'new' # fast\n#$ -N \"\n")
    ...     file.flush()
    ...     directives(file.name, "#$")
    ['-q', 'new']
    """
    found = []
    for line in lines_of(script):
        if line.startswith(prefix):
            try:
                found += shlex.split(line.removeprefix(prefix), comments=True)
            except ValueError:
                continue
    return found


def hand_over(submission: Submission, *, capture: bool) -> tuple[int, str]:
    """Run the command of a submission, which reads our standard input; its exit status, and what it prints.

    Parameters
    ----------
    submission : what is run.
    capture : whether what it prints is returned; it goes to our standard output otherwise.

    Raises
    ------
    RuntimeError : when it cannot be run.
    """
    try:
        done = subprocess.run(  # noqa: S603
            submission.words,
            env={**os.environ, **submission.environment},
            stdout=subprocess.PIPE if capture else None,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, ValueError) as error:
        raise RuntimeError(f"{submission.words[0]} cannot be run: {refusal(error)}") from None
    return done.returncode, (done.stdout or "").strip()
