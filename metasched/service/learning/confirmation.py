"""Jobs that wait for their scheduler to say how they ended, and what they were.

When Slurm's epilog runs, a job that was cancelled looks like one that succeeded: its state is settled only later. To
learn from it would teach that the application is quicker than it is. So a run of a job that seems to have gone well is
stored at once, but learned from only when the scheduler says that it completed; until then it counts as not learnable.
Where the scheduler has forgotten the job, it never does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from metasched.jobs import SAME_MOMENT, EndedJob, Fate, same_run
from metasched.schedulers.contract import Source
from metasched.service.learning.run_outcome import Concluded
from metasched.store.database.run_records import RecordedRun

_log = logging.getLogger(__name__)

#: What counts as the exit status of a job that its scheduler ended, as if by SIGTERM.
ENDED_BY_SCHEDULER = 143
#: So long after its end a job that is still not settled stays unconfirmed (s).
GIVE_UP = 86_400.0


@dataclass(frozen=True, slots=True)
class Pending:
    """A job that waits.

    Parameters
    ----------
    scheduler, number : of the job.
    ended : when (s).
    job, record : as it was reported; its run, where an earlier version of metasched kept only that.
    stored : whether its run is stored already.
    """

    scheduler: str
    number: str
    ended: float
    job: EndedJob | None = None
    record: RecordedRun | None = None
    stored: bool = False

    @classmethod
    def of(cls, job: EndedJob, *, stored: bool) -> Pending:
        """A job that waits as it was reported."""
        return cls(job.scheduler, job.job, job.end, job, stored=stored)

    @property
    def uid(self) -> str:
        """The uid of its run: a job that is run again waits once for each of its runs."""
        run = self.job or self.record
        assert run is not None  # noqa: S101
        return run.uid

    @property
    def started(self) -> float | None:
        """When its run started (s), None where that is not known."""
        if self.job is not None:
            return self.job.start
        return None if self.record is None else self.record.run.start_time

    def is_earlier_than(self, fate: Fate) -> bool:
        """Whether its scheduler speaks of a later run: the job was put back into the queue after this one.

        A run may be reported some seconds after its end, when the next one has started; and a scheduler may
        change the start of a run when its nodes have booted, or its end when they are free again, but never both.
        """
        if fate.started is None:
            return False
        later_start = self.started is not None and fate.started > self.started + SAME_MOMENT
        later_end = fate.ended is not None and fate.ended > self.ended + SAME_MOMENT
        return fate.started > self.ended + SAME_MOMENT or (later_start and later_end)

    def ran_otherwise(self, fate: Fate) -> bool:
        """Whether it stays open when this run began or ended.

        Its scheduler tells a later start, and that is about the run's end; or it tells a later start or an earlier end,
        and the loads of the nodes are those of a longer run, since the daemon was started again.
        """
        begun = self.started is not None and fate.started is not None and fate.started > self.started + SAME_MOMENT
        done = fate.ended is not None and fate.ended < self.ended - SAME_MOMENT
        if self.job is None:
            return begun or done
        return begun and fate.started is not None and fate.started > self.ended - SAME_MOMENT

    def is_of_another_job(self, fate: Fate) -> bool:
        """Whether its scheduler speaks of a job that was given its number after its end, and knows it no more.

        A job that is put back into the queue is dated again, too, but then it has run before.
        """
        return fate.first_run and fate.submitted is not None and fate.submitted > self.ended + SAME_MOMENT

    def is_later_than(self, fate: Fate) -> bool:
        """Whether its scheduler still speaks of an earlier run, or of an earlier job with its number."""
        return self.started is not None and fate.ended is not None and fate.ended < self.started - SAME_MOMENT


class Waiting:
    """The ended jobs whose outcome their scheduler has not confirmed yet."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = frozenset(source.name for source in sources)
        # By scheduler and number, then by the uid of the run.
        self._waiting: dict[tuple[str, str], dict[str, Pending]] = {}
        self._failed: set[str] = set()
        self._lock = Lock()

    def concerns(self, scheduler: str) -> bool:
        """Whether jobs of a scheduler can be confirmed at all."""
        return scheduler in self._sources

    def add(self, pending: Pending) -> None:
        """Queue a job until its scheduler confirms how it ended; a job as reported knows more than its stored run."""
        with self._lock:
            runs = self._waiting.setdefault((pending.scheduler, pending.number), {})
            if pending.job is not None or pending.uid not in runs:
                runs[pending.uid] = pending

    def holds(self, job: EndedJob) -> bool:
        """Whether this run of a job waits, whoever reported it: accounts of its times differ."""
        with self._lock:
            return any(
                each.started is not None and same_run((each.started, each.ended), job.span)
                for each in self._waiting.get((job.scheduler, job.job), {}).values()
            )

    def confirm(
        self,
        source: Source,
        settle: Callable[[Pending, Fate | None], object],
        silent: Callable[[str, Exception], object],
        now: float,
    ) -> None:
        """Ask a scheduler once for all of its jobs that wait, and settle those whose end is known.

        Whatever goes wrong with one job, the others are settled all the same.

        Parameters
        ----------
        source : the scheduler.
        settle : takes a job that waited and its fate, None where its scheduler has forgotten it or it has waited for
            too long; a job for which it raises is tried again.
        silent : takes the name of a scheduler that did not answer, and why; its jobs go on waiting.
        now : the present (s).
        """
        with self._lock:
            own = [each for (name, _), runs in self._waiting.items() if name == source.name for each in runs.values()]
        if not own:
            return
        try:
            fates = source.fates({each.number for each in own})
        except Exception as error:
            silent(source.name, error)
            return
        for each in own:
            late = now > each.ended + GIVE_UP
            fate = fates.get(each.number)
            if fate is not None and each.is_of_another_job(fate):
                fate = None
            if fate is not None and each.is_later_than(fate):
                fate = Fate(completed=None)
            if fate is not None and each.is_earlier_than(fate):
                fate = replace(fate, completed=False, started=None, ended=None, again=True)
            if fate is not None and fate.completed is None:
                if not late:
                    continue
                fate = None
            try:
                settle(each, fate)
            except Exception as error:
                if each.uid not in self._failed:
                    _log.error("job %s of %s could not be settled: %s", each.number, source.name, error)
                self._failed.add(each.uid)
                if not late:
                    continue
            with self._lock:
                self._failed.discard(each.uid)
                runs = self._waiting.get((each.scheduler, each.number), {})
                if runs.get(each.uid) is each:
                    del runs[each.uid]
                if not runs:
                    self._waiting.pop((each.scheduler, each.number), None)


def ended_by_scheduler(concluded: Concluded) -> Concluded:
    """The same for a job that its scheduler ended: kept, and not learned from."""
    return replace(
        concluded,
        record=replace(concluded.record, exit_status=ENDED_BY_SCHEDULER, learnable=False),
        outcome=concluded.outcome and replace(concluded.outcome, exit_status=ENDED_BY_SCHEDULER),
    )
