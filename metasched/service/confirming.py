"""Runs that wait for their scheduler to say how the job ended.

When Slurm's epilog runs, a job that was cancelled looks like one that succeeded: its state is settled only later. To
learn from it would teach that the application is quicker than it is. So a run of a job that seems to have gone well is
stored at once, but learned from only when the scheduler says that it completed; until then it counts as not learnable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock

from metasched.service.outcomes import Concluded
from metasched.service.sources import Source

#: What counts as the exit status of a job that its scheduler ended, as if by SIGTERM.
ENDED_BY_SCHEDULER = 143


class Waiting:
    """Concluded jobs that wait for confirmation."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources: Mapping[str, Source] = {source.name: source for source in sources}
        self._waiting: dict[str, Concluded] = {}
        self._lock = Lock()

    def concerns(self, scheduler: str) -> bool:
        """Whether jobs of a scheduler can be confirmed at all."""
        return scheduler in self._sources

    def add(self, concluded: Concluded) -> None:
        """Let one wait."""
        with self._lock:
            self._waiting[concluded.record.uid] = concluded

    def confirm(self, settle: Callable[[Concluded], object]) -> None:
        """Ask the schedulers, once for all that wait, and settle those whose end is known.

        Raises
        ------
        RuntimeError
            When a scheduler does not answer; its jobs go on waiting.
        """
        with self._lock:
            waiting = list(self._waiting.values())
        for name, source in self._sources.items():
            own = [each for each in waiting if each.record.run.extra["scheduler"] == name]
            if not own:
                continue
            completed = source.completed([each.record.run.extra["job"] for each in own])
            for each in own:
                sure = completed.get(each.record.run.extra["job"], True)
                if sure is None:
                    continue
                settle(each if sure else _ended(each))
                with self._lock:
                    del self._waiting[each.record.uid]


def _ended(concluded: Concluded) -> Concluded:
    return replace(
        concluded,
        record=replace(concluded.record, exit_status=ENDED_BY_SCHEDULER, learnable=False),
        outcome=concluded.outcome | {"exit_status": ENDED_BY_SCHEDULER},
    )
