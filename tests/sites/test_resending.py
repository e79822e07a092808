"""A job that is sent elsewhere is never lost and never runs twice, whatever fails or is killed at whatever moment."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metasched.client.connection import DeniedError
from metasched.schedulers.portable import portable
from metasched.sites import resendable_jobs
from metasched.sites.question import SitesQuestion
from metasched.sites.resending import JobState, Resendable, UnclearError, resend
from tests.sites.answers import answer, placement, waiting
from tests.sites.test_grid import Clock, Daemons, grid


class KilledError(BaseException):
    """The command is killed."""


class World:
    """Two sites with a job each that may be held, wait, run, or have ended; the command that sends jobs elsewhere; and
    the grid's daemon as it is shipped. Each call of the command may be its last, before or after it has its effect."""

    def __init__(self) -> None:
        self.jobs: dict[tuple[str, str], JobState] = {("east", "1"): "waiting"}
        self.started: list[tuple[str, str]] = []
        self.kept: Resendable | None = None
        self.calls, self.fails_at, self.after, self.error = 0, -1, False, KilledError
        self.starts_at, self.down = -1, ""
        self.clock = Clock()
        daemons = Daemons(east=self._site("east", 3600.0), west=self._site("west", 0.0))
        self.grid = grid(daemons, ["east", "west"], self.clock)
        question = SitesQuestion("cg", 900.0, {"processors": [4]}, data=0.0)
        places = self.grid.rank(question).places
        self.uid = self.grid.sent.send(places, question).uid
        self.grid.sent.submitted(self.uid, "east", "1")
        self.kept = Resendable(self.uid)
        self.clock.now += 1000.0

    def _site(self, name: str, wait: float) -> Callable[[str, Any], Any]:
        def says(path: str, document: Any) -> Any:
            if path.startswith("/v1/waits"):
                return {"state": "waiting", "wait": 3600.0, "low": 3600.0, "high": 3700.0}
            return answer(later=[waiting(wait=wait)]) if wait else answer(placement())

        return says

    def _call(self, effect: Callable[[], Any]) -> Any:
        """One call, which may fail before or after its effect; a job that nothing holds may start meanwhile."""
        number, self.calls = self.calls, self.calls + 1
        if number == self.starts_at:
            self.start_all()
        if number == self.fails_at and not self.after:
            raise self.error
        found = effect()
        if number == self.fails_at:
            raise self.error
        return found

    def start_all(self) -> None:
        for each, state in self.jobs.items():
            if state == "waiting":
                self.jobs[each] = "started"
                self.started.append(each)

    def state_of(self, site: str, job: str) -> JobState:
        return self._call(lambda: self.jobs.get((site, job), "unknown"))

    def hold(self, site: str, job: str) -> None:
        self._call(lambda: self._change(site, job, "waiting", "held"))

    def release(self, site: str, job: str) -> None:
        self._call(lambda: self._change(site, job, "held", "waiting"))

    def cancel(self, site: str, job: str) -> None:
        def cancelled() -> None:
            assert self.jobs[site, job] == "held", "only what cannot start is cancelled"
            self.jobs[site, job] = "cancelled"

        self._call(cancelled)

    def submit_held(self, site: str, partition: str) -> tuple[str, float, float]:
        def submitted() -> tuple[str, float, float]:
            if site == self.down:
                raise RuntimeError("connection refused")
            number = f"{len(self.jobs) + 1}"
            self.jobs[site, number] = "held"
            return number, 0.0, 0.0

        return self._call(submitted)

    def _change(self, site: str, job: str, old: JobState, new: JobState) -> None:
        if self.jobs.get((site, job)) == old:
            self.jobs[site, job] = new

    def ask(self, method: str, path: str, document: Any) -> Any:
        return self._call(lambda: self._answered(method, path, document))

    def _answered(self, method: str, path: str, document: Any) -> Any:
        sent, uid = self.grid.sent, self.uid
        if path.endswith("/withdrawal"):
            found, ranking = self.grid.reconsider(uid)
            return found.as_dict() | {"sites": [each.as_dict() for each in ranking.places]}
        if method == "GET":
            return sent.find(uid).as_dict(self.clock.now)
        if document.get("stays"):
            return sent.stays(uid).as_dict(0.0)
        return sent.submitted(uid, document["site"], document["job"]).as_dict(0.0)

    def save(self, kept: Resendable | None) -> None:
        def saved() -> None:
            self.kept = kept

        self._call(saved)

    def attempt(self) -> str:
        """One run of the command; what came of it."""
        if self.kept is None:
            return ""
        try:
            return resend(self.kept, self, self.ask, self.save)
        except (KilledError, RuntimeError, DeniedError) as error:
            return f"failed: {type(error).__name__}"

    def check(self) -> None:
        assert len(self.started) <= 1, "the job runs twice"
        alive = [each for each, state in self.jobs.items() if state in ("waiting", "started")]
        assert len(alive) == 1, "the job is lost, or may run twice"
        found = self.grid.sent.find(self.uid)
        assert (found.state, (found.site, found.job)) == ("submitted", alive[0])
        assert self.kept is not None
        assert self.kept.step == "sent"


def whole_way() -> int:
    world = World()
    assert world.attempt() == "it is at west now, as job 2"
    world.check()
    assert world.jobs == {("east", "1"): "cancelled", ("west", "2"): "waiting"}
    assert world.grid.sent.find(world.uid).resent == 1
    return world.calls


CALLS, SUBMITS = 21, 14


def test_a_job_goes_to_the_other_site_and_stays_there() -> None:
    assert whole_way() == CALLS


@pytest.mark.parametrize("error", [KilledError, RuntimeError, DeniedError("denied")], ids=repr)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("fails_at", range(CALLS))
def test_a_job_is_neither_lost_nor_run_twice_whatever_fails(fails_at: int, after: bool, error: Any) -> None:
    outcomes = set()
    for starts_at in range(-1, CALLS + 6):
        world = World()
        world.fails_at, world.after, world.error, world.starts_at = fails_at, after, error, starts_at
        for _ in range(5):
            world.attempt()
            assert len(world.started) <= 1
        world.check()
        outcomes.add(world.grid.sent.find(world.uid).site)
    # Where it starts before it is held it stays, otherwise it goes; back where the other site does not answer.
    refused = fails_at == SUBMITS and error is not KilledError
    assert outcomes == ({"east"} if refused else {"east", "west"})


def test_a_job_that_no_site_takes_is_tried_again_until_one_does() -> None:
    world = World()
    world.down = "west"
    # Its old site takes it back where no other does.
    assert world.attempt() == "it is at east now, as job 2"
    world.check()
    world = World()
    submit = world.submit_held

    def refuse(site: str, partition: str) -> tuple[str, float, float]:
        raise RuntimeError("refused")

    world.submit_held = refuse  # type: ignore[method-assign]
    assert world.attempt() == "no site takes it now; it is tried again"
    assert world.kept is not None
    assert world.kept.step == "gone"
    assert world.grid.sent.find(world.uid).state == "withdrawing"
    assert world.grid.sent.open() == []  # so that nobody takes its absence for its end
    world.submit_held = submit  # type: ignore[method-assign]
    assert world.attempt() == "it is at west now, as job 2"
    world.check()


def test_a_submission_that_was_not_reported_is_reported_by_the_next_attempt() -> None:
    world = World()
    world.uid = world.grid.sent.send(world.grid.sent.find(world.uid).places, SitesQuestion("cg", 900.0, data=0.0)).uid
    world.kept = Resendable(world.uid, site="east", job="1")
    assert world.attempt().startswith("it stays at east: it was submitted ")
    found = world.grid.sent.find(world.uid)
    assert (found.state, found.site, found.job) == ("submitted", "east", "1")
    world.clock.now += 1000.0
    assert world.attempt() == "it is at west now, as job 2"
    world.check()


def test_a_held_job_whose_number_is_lost_is_told_of() -> None:
    world = World()
    submit = world.submit_held

    def lose(site: str, partition: str) -> tuple[str, float, float]:
        submit(site, partition)
        raise UnclearError("no number")

    world.submit_held = lose  # type: ignore[method-assign]
    left = "; west and east may also have a held job of its name, to be cancelled there"
    assert world.attempt() == f"no site takes it now; it is tried again{left}"
    world.submit_held = submit  # type: ignore[method-assign]
    assert world.attempt() == f"it is at west now, as job 4{left}"
    assert [state for state in world.jobs.values() if state != "cancelled"] == ["held", "held", "waiting"]
    world = World()
    world.fails_at, world.after = SUBMITS, True
    world.attempt()
    assert (
        world.attempt()
        == "it is at west now, as job 3; west may also have a held job of its name, to be cancelled there"
    )
    assert world.kept is not None
    assert world.kept.unclear == ()


def test_a_job_that_somebody_else_cancels_or_releases_is_not_sent_again() -> None:
    world = World()
    hold = world.hold

    def hold_and_lose(site: str, job: str) -> None:
        hold(site, job)
        world.jobs[site, job] = "cancelled"

    world.hold = hold_and_lose  # type: ignore[method-assign]
    assert world.attempt() == "it stays at east, where it is no longer pending"
    assert [*world.jobs] == [("east", "1")]


@pytest.mark.parametrize("shown", ["cancelled", "unknown"])
def test_a_held_job_that_its_user_cancels_before_the_next_attempt_is_not_sent_again(shown: JobState) -> None:
    left_alone = 0
    for fails_at in range(CALLS):
        world = World()
        world.fails_at, world.after, world.error = fails_at, True, RuntimeError
        world.attempt()
        if world.kept is not None and world.kept.step == "held":
            assert world.jobs == {("east", "1"): "held"}
            world.jobs["east", "1"] = shown
            assert world.attempt() == "it stays at east, where somebody else cancelled it"
            assert [*world.jobs] == [("east", "1")]
            assert world.grid.sent.find(world.uid).state == "submitted"  # until its site says how it ended
            left_alone += 1
    assert left_alone == 2


def test_jobs_that_have_ended_or_are_forgotten_need_no_looking_after() -> None:
    world = World()
    world.grid.sent.ended(world.grid.sent.find(world.uid), 60.0)
    assert world.attempt() == "it is ended"
    assert world.kept is None
    world = World()
    world.grid.sent._jobs.clear()
    assert world.attempt() == "the grid's daemon knows nothing of it"
    assert world.kept is None


def test_a_daemon_that_forgets_a_job_on_its_way_does_not_lose_it() -> None:
    reached = set()
    for forgets_at in range(3, CALLS):
        world = World()
        world.fails_at, world.error = forgets_at, RuntimeError
        world.attempt()
        world.grid.sent._jobs.clear()
        for _ in range(4):
            world.attempt()
        alive = [each for each, state in world.jobs.items() if state in ("waiting", "started")]
        assert len(alive) == 1
        reached.add(alive[0][0])
    assert "east" in reached


def test_files_keep_the_job_with_its_script_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\necho first\n")
    script.chmod(0o755)
    job = portable(["-n", "4", "-t", "90", "--comment=metasched:app=cg,n=900,steps=5", str(script)])
    assert resendable_jobs.kept_files() == []
    resendable_jobs.keep(Resendable("0a", site="east", job="7"), job, [script], "there", ["east"], "/grid.sock")
    script.write_text("#!/bin/sh\necho changed\n")
    (found,) = map(resendable_jobs.kept_job, resendable_jobs.kept_files())
    assert (found.job.asked, found.job.name, found.job.output) == (job.asked, job.name, job.output)
    assert "first" in found.job.script.read_text()
    assert os.access(found.job.script, os.X_OK)
    assert (found.paths, found.folder, found.held_by, found.daemon) == ((script,), "there", ("east",), "/grid.sock")
    with resendable_jobs.alone() as first, resendable_jobs.alone() as second:
        assert (first, second) == (True, False)
    broken = resendable_jobs.folder() / "0b.json"
    broken.write_text("{}")
    with pytest.raises(ValueError, match=r"0b\.json"):
        resendable_jobs.kept_job(broken)
    resendable_jobs.drop("0a")
    resendable_jobs.drop("0b")
    assert resendable_jobs.kept_files() == []
