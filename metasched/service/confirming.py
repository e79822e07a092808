"""Jobs that wait for their scheduler to say how they ended, and when they were submitted.

When Slurm's epilog runs, a job that was cancelled looks like one that succeeded: its state is settled only later. To
learn from it would teach that the application is quicker than it is. So a run of a job that seems to have gone well is
stored at once, but learned from only when the scheduler says that it completed; until then it counts as not learnable.
The moment of submission tells which placement was the job's, where its comment does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from metasched.service.outcomes import Concluded
from metasched.service.sources import Source
from metasched.store.database import RecordedRun
from metasched.store.jobs import EndedJob, Fate

#: What counts as the exit status of a job that its scheduler ended, as if by SIGTERM.
ENDED_BY_SCHEDULER = 143


@dataclass(frozen=True, slots=True)
class Pending:
    """A job that waits: its number and scheduler, what was told of it, and its run where that is stored already."""

    scheduler: str
    number: str
    job: EndedJob | None = None
    stored: RecordedRun | None = None


class Waiting:
    """Jobs that wait for confirmation."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources: Mapping[str, Source] = {source.name: source for source in sources}
        self._waiting: dict[tuple[str, str], Pending] = {}
        self._lock = Lock()

    def concerns(self, scheduler: str) -> bool:
        """Whether jobs of a scheduler can be confirmed at all."""
        return scheduler in self._sources

    def add(self, pending: Pending) -> None:
        """Let one wait."""
        with self._lock:
            self._waiting[pending.scheduler, pending.number] = pending

    def confirm(self, settle: Callable[[Pending, Fate], object]) -> None:
        """Ask the schedulers, once for all that wait, and settle those whose end is known, in the order of numbers.

        A job that its scheduler has forgotten is taken to have completed.

        Raises
        ------
        RuntimeError
            When a scheduler does not answer; its jobs go on waiting.
        """
        with self._lock:
            waiting = sorted(self._waiting.values(), key=lambda each: (len(each.number), each.number))
        for name, source in self._sources.items():
            own = [each for each in waiting if each.scheduler == name]
            if not own:
                continue
            fates = source.fates([each.number for each in own])
            for each in own:
                fate = fates.get(each.number, Fate(completed=True))
                if fate.completed is None:
                    continue
                settle(each, fate)
                with self._lock:
                    del self._waiting[each.scheduler, each.number]


def ended_by_scheduler(concluded: Concluded) -> Concluded:
    """The same for a job that its scheduler ended: kept, and not learned from."""
    return replace(
        concluded,
        record=replace(concluded.record, exit_status=ENDED_BY_SCHEDULER, learnable=False),
        outcome=concluded.outcome | {"exit_status": ENDED_BY_SCHEDULER},
    )
