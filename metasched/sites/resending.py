"""Withdraws a job that waits and submits it elsewhere: never lost, and never run twice.

A job is held before it is cancelled, so that it cannot start in between, and it is submitted elsewhere as a held one,
which is released once its number is known and recorded. Each step is written down before the next one begins, and can
be done again: whatever fails or is killed, the next attempt goes on from there. A submission whose number never came
back may leave a held job behind, which does not run; the result names the site.

======= ============================================ ================================================================
step    what is certain                              what is done next
======= ============================================ ================================================================
sent    it was submitted                             the grid's daemon says whether it should go, and notes that
leaves  the grid's daemon has noted that it leaves   it is held; one that has started stays, and is reported so
held    it is held at its site                       one that is not there any more was cancelled by somebody else
cancels it was held just now                         it is cancelled
gone    it is at its site no more                    it is submitted elsewhere, held; where none takes it, again later
there   it is held elsewhere, its number known       the number is reported, and it is released
======= ============================================ ================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from metasched.client.connection import DeniedError
from metasched.records import InputError
from monitors.one_line import one_line

Step = Literal["sent", "leaves", "held", "cancels", "gone", "there"]
#: States of a job by its scheduler: pending, held, started (it runs, has ended, or is another job), cancelled, unknown.
JobState = Literal["waiting", "held", "started", "cancelled", "unknown"]


@dataclass(frozen=True, slots=True)
class Resendable:
    """A job that may be sent elsewhere.

    Parameters
    ----------
    uid : what names it at the grid's daemon.
    step : what is certain of it.
    site, job : where it is, and its number there.
    data, seconds : of what was brought there (GB, s).
    unclear : sites that may hold it without having said its number.
    """

    uid: str
    step: Step = "sent"
    site: str = ""
    job: str = ""
    data: float = 0.0
    seconds: float = 0.0
    unclear: tuple[str, ...] = ()


class SiteOperations(Protocol):
    """The operations at sites; each raises RuntimeError if a site cannot be reached or refuses."""

    def state_of(self, site: str, job: str) -> JobState:
        """What the site's scheduler says of a job."""

    def hold(self, site: str, job: str) -> None:
        """Keep a waiting job from starting; nothing happens to one that runs."""

    def release(self, site: str, job: str) -> None:
        """Let a held job start when its turn comes; nothing happens to one that is not held."""

    def cancel(self, site: str, job: str) -> None:
        """End a job that waits or is held, before it has run."""

    def submit_held(self, site: str, partition: str) -> tuple[str, float, float]:
        """Transfer the data and submit the job as a held one: its number, the data (GB) and the duration (s).

        Raises
        ------
        UnclearError : when the site was reached, and may hold the job or not.
        """


class UnclearError(RuntimeError):
    """A site may have accepted a job, or not: it was reached, and its answer did not come back."""


#: Asks the grid's daemon: method, path, document.
Ask = Callable[[str, str, Any], Any]


def resend(job: Resendable, operations: SiteOperations, ask: Ask, save: Callable[[Resendable | None], None]) -> str:
    """Perform all possible steps of moving a job to another site; return the result in one line.

    Parameters
    ----------
    job : as it was saved last.
    operations : work at the sites.
    ask : the grid's daemon.
    save : keeps the job safely; None for one that needs no more looking after.

    Raises
    ------
    RuntimeError, InputError : when a site or the daemon does not answer or refuses; to be tried again.
    """
    return _Attempt(job, operations, ask, save).result()


class _Attempt:
    """One attempt to move a job: each step returns why the attempt ends with it, or nothing once the next is noted."""

    def __init__(
        self, job: Resendable, operations: SiteOperations, ask: Ask, save: Callable[[Resendable | None], None]
    ) -> None:
        self._job, self._operations, self._ask, self._save = job, operations, ask, save
        self._path = f"/v1/sites/jobs/{job.uid}"

    def result(self) -> str:
        """Perform all possible steps, from the one that was noted last; why the attempt ends."""
        steps: dict[Step, Callable[[], str]] = {
            "sent": self.leave, "leaves": self.hold, "held": self.cancel, "cancels": self.cancel,
            "gone": self.submit, "there": self.arrive,
        }  # fmt: skip
        while not (result := steps[self._job.step]()):
            pass
        return result

    def leave(self) -> str:
        """Ask whether a job that was submitted should go, which the daemon then notes."""
        known = None
        with _may_be_forgotten():
            known = self._ask("GET", self._path, None)
        if known is None:
            self._save(None)
            return "the grid's daemon knows nothing of it"
        if known["state"] == "chosen" and self._job.job:  # the report of its submission was lost, or is on its way
            known = self._report()
        if known["state"] not in ("submitted", "withdrawing"):
            self._save(None)
            return f"it is {known['state']}"
        answer = self._ask("POST", f"{self._path}/withdrawal", {})
        if not answer["withdraw"]:
            return f"it stays at {known['site']}: {one_line(str(answer['why']))}"
        return self._note(step="leaves", site=known["site"], job=known["job"])

    def hold(self) -> str:
        """Keep a job that leaves from starting."""
        if (state := self._state()) == "waiting":
            self._operations.hold(self._job.site, self._job.job)
            state = self._state()
        if state == "waiting":
            return f"it is pending at {self._job.site}, which does not hold it yet"
        if state != "held":
            # It has started, or somebody else has cancelled it: its site is asked about it as before.
            return self._stays("where it is no longer pending")
        return self._note(step="held")

    def cancel(self) -> str:
        """Cancel a job that is held, or leave it alone where its user has done so since: this may be days later."""
        state = self._state()
        if self._job.step == "held":
            if state in ("cancelled", "unknown"):
                return self._stays("where somebody else cancelled it")
            self._note(step="cancels")
        if state == "held":
            self._operations.cancel(self._job.site, self._job.job)
            state = self._state()
        if state in ("started", "waiting"):  # somebody has let it go
            return self._stays("where it was released")
        if state == "held":
            return f"it is held at {self._job.site}, which does not cancel it yet"
        return self._note(step="gone")

    def submit(self) -> str:
        """Submit a job that is gone elsewhere, held."""
        sites = [{"site": self._job.site, "partition": ""}]  # where it is forgotten there, but not here
        with _may_be_forgotten():
            sites = self._ask("POST", f"{self._path}/withdrawal", {})["sites"]
        for each in sites:
            known = self._job.unclear
            # If this is killed before the number is known, the site may hold the job.
            self._note(unclear=tuple(dict.fromkeys((*known, each["site"]))))
            try:
                number, data, seconds = self._operations.submit_held(each["site"], each["partition"])
            except UnclearError:
                continue
            except (RuntimeError, InputError):
                self._note(unclear=known)
                continue
            return self._note(step="there", site=each["site"], job=number, data=data, seconds=seconds, unclear=known)
        return f"no site takes it now; it is tried again{self._left_behind}"

    def arrive(self) -> str:
        """Report where a job is, and release it there."""
        job = self._job
        with _may_be_forgotten():
            self._report()
        if self._state() == "held":
            self._operations.release(job.site, job.job)
            if self._state() == "held":
                return f"it is held at {job.site}, which does not release it yet"
        result = f"it is at {job.site} now, as job {job.job}{self._left_behind}"
        self._note(step="sent", unclear=())
        return result

    @property
    def _left_behind(self) -> str:
        """What is to be said of sites that may hold the job as well."""
        sites = " and ".join(self._job.unclear)
        return f"; {sites} may also have a held job of its name, to be cancelled there" if sites else ""

    def _report(self) -> Any:
        """Report where the job is; what the daemon knows of it then."""
        job = self._job
        report = {"site": job.site, "job": job.job, "data": job.data, "seconds": job.seconds}
        return self._ask("PUT", self._path, report)

    def _state(self) -> JobState:
        return self._operations.state_of(self._job.site, self._job.job)

    def _note(self, **changes: Any) -> str:
        """Keep what is certain now; nothing ends with that."""
        self._job = replace(self._job, **changes)
        self._save(self._job)
        return ""

    def _stays(self, why: str) -> str:
        with _may_be_forgotten():
            self._ask("PUT", self._path, {"stays": True})
        self._note(step="sent")
        return f"it stays at {self._job.site}, {why}"


@contextmanager
def _may_be_forgotten() -> Iterator[None]:
    """Pass over that the daemon has forgotten a job, of which nothing is noted there then; not that it denies us."""
    try:
        yield
    except DeniedError:
        raise
    except InputError:
        pass
