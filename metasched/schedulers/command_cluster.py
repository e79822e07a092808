"""The common part of all clusters with a batch scheduler: commands, submission, and the rights of the daemon's user."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from metasched.schedulers.commands import Commands
from metasched.schedulers.submission import JobRequest, Submission

_log = logging.getLogger(__name__)


class CommandCluster:
    """A cluster whose scheduler is queried by its commands; see :class:`metasched.schedulers.contract.Source`.

    Parameters
    ----------
    name : the cluster's name, in placements and in runs.
    partitions : names of the partitions that jobs may be sent to, all where empty.
    platform : what its models are kept by; the name where empty.
    commands : of its scheduler.
    """

    kind: str
    #: The command that submits a job.
    command: str
    #: Reads the requests from the words of that command, and adds a partition to the words.
    _asked_for: Callable[[Sequence[str]], JobRequest]
    _placed: Callable[[Sequence[str], str], list[str]]

    def __init__(self, name: str, partitions: Sequence[str], platform: str, commands: Commands) -> None:
        self.name = name
        self._wanted = tuple(partitions)
        self._platform = platform or name
        self._commands = commands
        self._operates: bool | None = None

    def asked(self, words: Sequence[str]) -> JobRequest:
        """The requests as options of its submit command; see the contract."""
        return self._asked_for(words)

    def submission(self, words: Sequence[str], partition: str = "") -> Submission:
        """Its submit command with the chosen partition; if that is empty, with the partition in the words."""
        handed = self._placed(words, partition) if partition else words
        return Submission((self.command, *handed), self._commands.environment)

    def _may_release(self) -> bool:
        """Whether our user may let others' jobs go that were bound to nodes; asked until it is known."""
        if self._operates is None:
            try:
                self._operates = self._is_operator()
            except (RuntimeError, KeyError) as error:
                _log.info("it is unknown whether jobs of %s may be released: %s", self.name, error)
        return bool(self._operates)

    def _is_operator(self) -> bool:
        """Whether the scheduler lets our user change others' jobs; never where jobs are bound to no nodes."""
        return False
