"""What workflow systems ask about a task: the partition that it should go to, and for how long it may run there.

A workflow must go on without a daemon. So each answer has a deadline, and where there is no sound one the task gets
what the workflow says itself. Loads nothing but the standard library.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from metasched.client.advice import TIMEOUT, Advice, advice

#: How long an answer counts (s): one task asks for several resources, which should agree.
FRESH = 30.0

Choice = TypeVar("Choice")
#: The problem size of a task by its wildcards.
Size = Callable[[Any], float]


class Workflow:
    """Asks the daemon for the tasks of one workflow.

    Parameters
    ----------
    address : a URL, or the path of the daemon's Unix socket.
    partition, minutes : what a task gets without advice.
    partitions : those that tasks may be sent to, all that the daemon knows where empty.
    token, verify, timeout : as :func:`metasched.client.advice` takes them.

    Examples
    --------
    In a Snakefile, for a rule with the wildcard ``n``:

    >>> tasks = Workflow("/nowhere/metasched.sock", partition="batch", minutes=60)
    >>> runtime = tasks.minutes("cg", lambda wildcards: float(wildcards["n"]))
    >>> runtime({"n": "1400"}, threads=4, attempt=2)
    120
    """

    def __init__(
        self,
        address: str,
        *,
        partition: str,
        minutes: int,
        partitions: tuple[str, ...] = (),
        token: str | None = None,
        verify: str | bool = True,
        timeout: float = TIMEOUT,
    ) -> None:
        self._address = address
        self._partition, self._minutes, self._partitions = partition, minutes, partitions
        self._link: dict[str, Any] = {"token": token, "verify": verify, "timeout": timeout}
        self._answers: dict[tuple[str, float, int, tuple[str, ...]], tuple[float, Advice | None]] = {}

    def partition(self, application: str, size: Size) -> Callable[..., str]:
        """A resource of Snakemake, ``slurm_partition``: where a task runs, whose N ``size`` makes of its wildcards."""

        def resource(wildcards: Any, threads: int) -> str:
            found = self._ask(application, size(wildcards), threads)
            return found.partition if found is not None and found.partition else self._partition

        return resource

    def minutes(self, application: str, size: Size) -> Callable[..., int]:
        """A resource of Snakemake: how long a task may run (min), as ``runtime``.

        A task that is tried again was perhaps advised too little: it gets what the workflow says, times the attempt.
        """

        def resource(wildcards: Any, threads: int, attempt: int) -> int:
            found = self._ask(application, size(wildcards), threads) if attempt == 1 else None
            if found is None or found.time_limit is None:
                return self._minutes * attempt
            return math.ceil(found.time_limit / 60.0)

        return resource

    def choose(
        self, application: str, problem_size: float, processors: int, choices: Mapping[str, Choice], otherwise: Choice
    ) -> Choice:
        """What a task should use of the labels that represent partitions, such as those of Parsl's executors.

        Parameters
        ----------
        application, problem_size, processors : of the task.
        choices : by the name of the partition.
        otherwise : what is chosen without advice.

        Examples
        --------
        >>> tasks = Workflow("/nowhere/metasched.sock", partition="batch", minutes=60)
        >>> tasks.choose("cg", 1400, 4, {"fast": "htex_fast", "slow": "htex_slow"}, "htex_slow")
        'htex_slow'
        """
        found = self._ask(application, problem_size, processors, tuple(choices))
        return otherwise if found is None else choices.get(found.partition, otherwise)

    def _ask(
        self, application: str, problem_size: float, processors: int, partitions: tuple[str, ...] = ()
    ) -> Advice | None:
        partitions = partitions or self._partitions
        key, now = (application, problem_size, processors, partitions), time.monotonic()
        asked, found = self._answers.get(key, (-math.inf, None))
        if now - asked > FRESH:
            demands: dict[str, Any] = {"processors": [processors]}
            if partitions:
                demands["partitions"] = list(partitions)
            found = advice(self._address, application, problem_size, **self._link, **demands)
            self._answers[key] = time.monotonic(), found
        return found
