"""The sites of a grid: asked at once, left out with why, sent to, looked after, and never asked in a circle."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from metasched.client.connection import DaemonError, DeniedError
from metasched.records import InputError
from metasched.sites.grid import MOST_HOPS, Sites, answer_document
from metasched.sites.question import SitesQuestion
from metasched.sites.settings import SiteTable
from tests.sites.answers import answer, placement, waiting

QUESTION = SitesQuestion("cg", 900.0, data=0.0)


class Daemons:
    """Daemons of sites that answer what a test sets: a document, an error, or what a function says."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.asked = answers, []

    def __call__(
        self, table: SiteTable, method: str, path: str, document: Any = None, timeout: float | None = None
    ) -> Any:
        self.asked.append((table.name, method, path, document))
        found = self.answers[table.name]
        found = found(path, document) if callable(found) else found
        if isinstance(found, Exception):
            raise found
        return found


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def grid(daemons: Callable[..., Any], names: Sequence[str], clock: Clock | None = None, **fields: Any) -> Sites:
    tables = [SiteTable(name=name, url=f"http://{name}.invalid", deadline=5.0, **fields) for name in names]
    return Sites(tables, "0.1.0", ask=daemons, now=clock or Clock())


def names(sites: Sites, question: SitesQuestion = QUESTION) -> list[str]:
    return [each.offer.site for each in sites.rank(question).places]


def test_one_ranking_of_all_sites_and_why_others_are_left_out() -> None:
    daemons = Daemons(
        east=answer(placement(time=100.0)), west=answer(later=[waiting(wait=10.0, time=60.0)]),
        dead=RuntimeError("the daemon at x does not answer:\nrefused"), old={"placements": []},
        shut=InputError("the role agent may not do this"), full=answer(why="no model of cg yet"),
    )  # fmt: skip
    found = grid(daemons, ["east", "west", "dead", "old", "shut", "full"]).rank(QUESTION)
    assert [each.offer.site for each in found.places] == ["west", "east"]
    assert found.left_out == {
        "dead": "the daemon at x does not answer: refused",
        "old": "it answers without a format, as older versions do, expected 1",
        "shut": "it refuses the question: the role agent may not do this",
        "full": "no model of cg yet",
    }
    document = answer_document(QUESTION, found, "0.1.0")
    assert [each["site"] for each in document["sites"]] == ["west", "east"]
    assert not document["why"]


def test_a_site_that_hangs_costs_the_others_nothing_and_is_not_asked_more_and_more() -> None:
    ever = threading.Event()
    daemons = Daemons(east=answer(placement()), hangs=lambda path, document: ever.wait(60.0))
    sites = Sites(
        [SiteTable(name=name, url="http://x.invalid", deadline=0.1) for name in ("east", "hangs")], "0.1.0", ask=daemons
    )
    try:
        said = [sites.rank(QUESTION).left_out["hangs"] for _ in range(18)]
    finally:
        ever.set()
    assert said[0] == "it did not answer in time"
    assert said[-1] == "it has not answered earlier questions yet"
    assert sum(each[0] == "hangs" for each in daemons.asked) == 16


def test_a_question_passes_demands_on_and_nothing_of_the_grid() -> None:
    daemons = Daemons(east=answer(placement()))
    grid(daemons, ["east"]).rank(SitesQuestion("cg", 900.0, {"processors": [4]}, data=3.0, held_by=["east"]))
    asked = {"application": "cg", "problem_size": 900.0, "processors": [4], "later": True, "top": 5}
    assert daemons.asked == [("east", "POST", "/v1/rankings", asked)]


def test_another_version_is_used_and_said() -> None:
    found = grid(Daemons(east=answer(placement(), version="9.9")), ["east"]).rank(QUESTION)
    assert found.places[0].warnings == ("it runs metasched 9.9, here is 0.1.0",)


@pytest.mark.parametrize(
    "question",
    [SitesQuestion("cg", 9.0, sites=["nowhere"]), SitesQuestion("cg", 9.0, held_by=["nowhere"])],
)
def test_a_site_that_there_is_not_is_refused(question: SitesQuestion) -> None:
    with pytest.raises(InputError, match="no site nowhere, expected one of east"):
        grid(Daemons(), ["east"]).rank(question)


def test_grids_that_ask_each_other_in_a_circle_are_refused_and_shown() -> None:
    made: dict[str, Sites] = {}

    def ask_grid(name: str) -> Callable[[str, Any], Any]:
        def answered(path: str, document: Any) -> Any:
            assert path == "/v1/sites/rankings"
            question = SitesQuestion("cg", 900.0, data=document["data"], via=document["via"], within=document["within"])
            return answer_document(question, made[name].rank(question), "0.1.0")

        return answered

    east = [SiteTable(name="here", url="http://e"), SiteTable(name="west", url="http://w", grid=True)]
    west = [SiteTable(name="there", url="http://t"), SiteTable(name="east", url="http://e", grid=True)]
    made["west"] = Sites(west, "0.1.0", ask=Daemons(there=answer(placement(time=50.0)), east=ask_grid("east")))
    made["east"] = Sites(east, "0.1.0", ask=Daemons(here=answer(placement(time=90.0)), west=ask_grid("west")))
    found = made["east"].rank(QUESTION)
    assert [(each.offer.site, each.offer.cluster) for each in found.places] == [("west", "there/c/p"), ("here", "c/p")]
    inner = made["west"].rank(SitesQuestion("cg", 900.0, data=0.0, via=[made["east"].uid]))
    assert "in a cycle" in inner.left_out["east"]
    with pytest.raises(InputError, match="in a cycle"):
        made["east"].rank(SitesQuestion("cg", 900.0, via=["a", made["east"].uid]))
    with pytest.raises(InputError, match="went through"):
        made["east"].rank(SitesQuestion("cg", 900.0, via=MOST_HOPS * ["a"]))


def send(sites: Sites, number: str = "7", question: SitesQuestion = QUESTION) -> str:
    uid = sites.sent.send(sites.rank(question).places).uid
    sites.sent.submitted(uid, "east", number)
    return uid


def look_later(seconds: float, sites: Sites, clock: Clock) -> None:
    """Look what has become of the jobs when some time has passed (s)."""
    clock.now += seconds
    sites.outcomes.look()


def test_a_job_that_was_sent_counts_until_the_site_knows_of_it() -> None:
    clock = Clock()
    daemons = Daemons(east=answer(placement(time=100.0, processors=8)), west=answer(placement(time=150.0)))
    sites = grid(daemons, ["east", "west"], clock)
    send(sites)
    assert names(sites) == ["west", "east"]
    clock.now += 7.0  # the site's knowledge is 5 s old
    assert names(sites) == ["east", "west"]


def test_outcomes_come_back_by_the_clock_of_the_site_and_teach_its_score() -> None:
    clock, jobs = Clock(), []
    outcome = {"job": "7", "start": 1e6 + 60.0, "execution_time": 240.0, "exit_status": 0}

    def answers(path: str, document: Any) -> Any:
        return jobs if path.startswith("/v1/placements") else answer(placement(time=100.0))

    sites = grid(Daemons(east=answers), ["east"], clock)
    uid = send(sites)
    jobs += [{"made_at": 1e6, "outcome": outcome}, {"made_at": "x", "outcome": {}}, None, 7]
    look_later(320.0, sites, clock)
    found = sites.sent.newest(1)[0]
    assert (found.uid, found.state, found.took) == (uid, "ended", 300.0)
    assert sites.rank(QUESTION).places[0].trust.multiplier > 1.1
    assert sites.status()[0]["trust"]["outcomes"] == 1


@pytest.mark.parametrize("unheard", [DeniedError("the token has expired"), DaemonError("no queue is known yet")])
def test_a_job_without_advice_is_looked_for_in_the_queue(unheard: Exception) -> None:
    clock, queue = Clock(), {"job": "7", "state": "running"}
    faults = [unheard]

    def answers(path: str, document: Any) -> Any:
        if path.startswith("/v1/rankings"):
            return answer(placement(time=100.0))
        if path.startswith("/v1/placements"):
            return []
        return faults.pop() if faults else dict(queue) or InputError("no job 7 in the queue")

    sites = grid(Daemons(east=answers), ["east"], clock)
    send(sites)
    look_later(80.0, sites, clock)  # which says nothing of the job
    look_later(10.0, sites, clock)
    assert sites.sent.newest(1)[0].state == "submitted"
    queue.clear()
    look_later(20.0, sites, clock)
    assert (sites.sent.newest(1)[0].state, sites.sent.newest(1)[0].took) == ("ended", 100.0)


def test_a_job_that_vanishes_before_it_ran_was_cancelled_and_teaches_nothing() -> None:
    clock, site = Clock(), Falsifier()
    sites = grid(Daemons(east=site), ["east"], clock)
    uid = send(sites)
    look_later(30.0, sites, clock)
    site.shown = False
    look_later(10.0, sites, clock)
    assert sites.sent.find(uid).state == "unknown"
    assert sites.status()[0]["trust"]["outcomes"] == 0
    assert sites.status()[0]["warnings"] == []


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        ({"state": "running"}, []),
        (InputError("no job 7 in the queue"), []),
        (InputError("no job 7 in the queue"), ["7"]),
    ],
)
@pytest.mark.parametrize("now_at", ["east", "west", "forgotten"])
def test_what_a_site_says_of_a_job_that_has_left_it_meanwhile_is_passed_over(
    said: Any, reported: list[str], now_at: str
) -> None:
    clock = Clock()
    outcomes = [
        {"made_at": 40.0, "outcome": {"job": job, "start": 50.0, "execution_time": 900.0, "exit_status": 0}}
        for job in reported
    ]

    def leave() -> None:
        if now_at == "forgotten":
            del sites.sent._jobs[uid]
        else:
            sites.sent.submitted(uid, now_at, "9")

    def east(path: str, document: Any) -> Any:
        if path.startswith("/v1/rankings"):
            return answer(placement(time=100.0))
        if path.startswith("/v1/waits/7"):
            leave()
            return said
        if path.startswith("/v1/placements") and clock.now > 1050.0:
            if outcomes:
                leave()
            return outcomes
        return []

    sites = grid(Daemons(east=east, west=answer(placement(time=150.0))), ["east", "west"], clock)
    uid = send(sites)
    sites.sent.seen(sites.sent.find(uid), running=True)
    other = send(sites, "8")
    sites.sent.withdraw(sites.sent.find(uid), sites.rank(QUESTION).places)
    sites.sent.stays(uid)
    look_later(60.0, sites, clock)
    assert sites.sent.find(other).seen_at is None
    if now_at != "forgotten":
        found = sites.sent.find(uid)
        assert (found.state, found.site, found.job, found.seen_at) == ("submitted", now_at, "9", None)
    assert [each["trust"]["outcomes"] for each in sites.status()] == [0, 0]


def test_a_job_that_was_submitted_elsewhere_while_sites_were_asked_is_not_withdrawn_from_there() -> None:
    clock = Clock()

    def east(path: str, document: Any) -> Any:
        if path.startswith("/v1/waits/"):
            sites.sent.submitted(uid, "west", "9")
            return {"state": "waiting", "wait": 5000.0, "low": 4000.0, "high": 6000.0}
        return answer(placement(time=100.0))

    sites = grid(Daemons(east=east, west=answer(placement(time=150.0))), ["east", "west"], clock)
    uid = send(sites)
    sites.sent._jobs[uid] = replace(sites.sent.find(uid), question=QUESTION)
    clock.now += 1000.0
    with pytest.raises(InputError, match="expected it to be submitted still"):
        sites.reconsider(uid)
    assert (sites.sent.find(uid).state, sites.sent.find(uid).site) == ("submitted", "west")


def test_jobs_of_the_same_number_at_two_schedulers_of_a_site_are_told_apart() -> None:
    clock, jobs = Clock(), []
    both = {name: {"scheduler": name, "partition": "p", "free": 8, "processors": 16, "age": 5.0} for name in ("a", "b")}

    def answers(path: str, document: Any) -> Any:
        if path.startswith("/v1/rankings"):
            return answer(placement("a", time=100.0), placement("b", time=120.0), clusters=both)
        return jobs if path.startswith("/v1/placements") else {"state": "waiting"}

    daemons = Daemons(east=answers)
    sites = grid(daemons, ["east"], clock)
    uid = send(sites)
    assert sites.sent.find(uid).place.offer.scheduler == "a"

    def outcome(scheduler: str, seconds: float) -> dict[str, Any]:
        ended = {"job": "7", "scheduler": scheduler, "start": 1e6, "execution_time": seconds, "exit_status": 0}
        return {"made_at": 1e6, "outcome": ended}

    jobs.append(outcome("b", 10.0))
    look_later(320.0, sites, clock)
    assert sites.sent.find(uid).state == "submitted"
    assert daemons.asked[-1][2] == "/v1/waits/7?cluster=a"
    jobs += [outcome("a", 300.0), outcome("a", 20.0)]  # the newest first: numbers are given again
    sites.outcomes.look()
    assert (sites.sent.find(uid).state, sites.sent.find(uid).took) == ("ended", 300.0)


def test_a_site_cannot_claim_that_a_job_had_ended_while_it_still_showed_it() -> None:
    clock, jobs = Clock(), []

    def answers(path: str, document: Any) -> Any:
        if path.startswith("/v1/rankings"):
            return answer(placement(time=100.0))
        return jobs if path.startswith("/v1/placements") else {"job": "7", "state": "running"}

    sites = grid(Daemons(east=answers), ["east"], clock)
    send(sites)
    for _ in range(20):
        look_later(30.0, sites, clock)
    claimed = {"job": "7", "start": 1e6, "execution_time": 100.0, "exit_status": 0}
    jobs.append({"made_at": 1e6, "outcome": claimed})
    sites.outcomes.look()
    assert (sites.sent.newest(1)[0].state, sites.sent.newest(1)[0].took) == ("ended", 600.0)
    assert sites.rank(QUESTION).places[0].trust.multiplier > 1.3


class Falsifier:
    """A site that says that jobs start at once, and shows them in its queue for ever."""

    def __init__(self) -> None:
        self.shown, self.numbers = True, 0

    def __call__(self, path: str, document: Any) -> Any:
        if path.startswith("/v1/rankings"):
            return answer(placement(time=100.0))
        if path.startswith("/v1/placements"):
            return []
        return {"job": "7", "state": "waiting", "wait": 0.0, "low": 0.0} if self.shown else InputError("no job 7")


def falsified(minutes: int, clock: Clock, **answers: Any) -> tuple[Sites, list[str]]:
    """A grid that sends a job every two minutes, and where they went; all other jobs end as predicted."""
    sites = grid(Daemons(**answers), [*answers], clock)
    went = []
    for number in range(minutes // 2):
        uid = sites.sent.send(sites.rank(QUESTION).places).uid
        went.append(sites.sent.find(uid).site)
        sites.sent.submitted(uid, went[-1], f"{number}")
        look_later(120.0, sites, clock)
    return sites, went


def test_a_site_that_falsifies_its_queue_is_noticed_while_its_jobs_still_wait() -> None:
    clock = Clock()

    def honest(path: str, document: Any) -> Any:
        return answer(later=[waiting(wait=60.0, time=100.0)]) if path.startswith("/v1/rankings") else []

    sites, went = falsified(60, clock, liar=Falsifier(), honest=honest)
    assert went[0] == "liar"
    assert went[-10:] == 10 * ["honest"]
    found = sites.status()[0]
    assert found["trust"]["multiplier"] > 2.0
    assert found["trust"]["outcomes"] == went.count("liar")
    assert found["warnings"] == [f"{went.count('liar')} jobs take longer than it said"]
    places = {each.offer.site: each for each in sites.rank(QUESTION).places}
    assert places["liar"].warnings == tuple(found["warnings"])
    assert not places["honest"].warnings


def test_a_site_whose_jobs_are_within_its_interval_is_not_doubted() -> None:
    clock = Clock()
    sites = grid(Daemons(east=Falsifier()), ["east"], clock)
    send(sites)
    look_later(124.0, sites, clock)  # it said 80 to 125 s
    assert (sites.status()[0]["trust"]["outcomes"], sites.status()[0]["warnings"]) == (0, [])
    look_later(2.0, sites, clock)
    assert sites.status()[0]["trust"]["outcomes"] == 1


@pytest.mark.parametrize("leaves", ["resent", "withdrawn", "vanished"])
def test_a_job_that_left_its_site_overdue_still_counts_against_it(leaves: str) -> None:
    clock, site = Clock(), Falsifier()
    sites = grid(Daemons(east=site, west=answer(placement(time=150.0))), ["east", "west"], clock)
    uid = send(sites)
    look_later(1000.0, sites, clock)
    if leaves == "resent":
        sites.sent.withdraw(sites.sent.find(uid), sites.rank(QUESTION).places)
        assert sites.sent.known(["east"])["east"].trust.outcomes == 1
        sites.sent.submitted(uid, "west", "9")
    elif leaves == "withdrawn":
        sites.sent.withdrawn(uid)
    else:
        site.shown = False
        look_later(5000.0, sites, clock)  # between two looks: when it ended is not known well enough
        assert sites.sent.find(uid).state == "unknown"
    known = sites.sent.known(["east", "west"])
    assert (known["east"].trust.outcomes, known["west"].trust.outcomes) == (1, 0)
    assert known["east"].trust.multiplier > 1.3


@pytest.mark.parametrize(
    ("looks", "warned"),
    [
        ([30.0, 70.0], True),
        # When it was looked for first it may have ended: nobody looked, or it ran for a moment only.
        ([30.0], False), ([90.0], False), ([], False),
    ],
    ids=str,
)  # fmt: skip
def test_a_site_that_does_not_show_a_job_while_it_should_have_it_is_warned_of(looks: list[float], warned: bool) -> None:
    clock, site = Clock(), Falsifier()
    site.shown = False
    sites = grid(Daemons(east=site), ["east"], clock)
    uid = send(sites)
    sent = clock.now
    for each in (*looks, 3700.0):
        clock.now = sent + each
        sites.outcomes.look()
    look_later(3700.0, sites, clock)
    assert sites.sent.find(uid).state == "unknown"
    assert sites.rank(QUESTION).places[0].warnings == (warned * ("it never showed 1 job that it had accepted",))
    clock.now += 8 * 86_400.0
    assert not sites.rank(QUESTION).places[0].warnings


def test_all_jobs_of_a_site_are_looked_for_in_turn_and_a_slow_site_leaves_time_for_the_others() -> None:
    clock, looked = Clock(), []

    def says(seconds: float) -> Callable[[str, Any], Any]:
        def answers(path: str, document: Any) -> Any:
            if path.startswith("/v1/waits/"):
                clock.now += seconds
                looked.append(path.partition("?")[0])
                return {"state": "running"}
            return [] if path.startswith("/v1/placements") else answer(placement(time=100.0))

        return answers

    sites = grid(Daemons(east=says(0.0)), ["east"], clock)
    for number in range(120):
        send(sites, f"{number}")
    for _ in range(3):
        sites.outcomes.look()
    assert {*looked} == {f"/v1/waits/{number}" for number in range(120)}
    slow = grid(Daemons(east=says(2.9)), ["east"], clock)
    for number in range(50):
        send(slow, f"{number}")
    looked.clear()
    began = clock.now
    slow.outcomes.look()
    assert clock.now - began < 15.0
    for _ in range(20):
        slow.outcomes.look()
    assert {*looked} == {f"/v1/waits/{number}" for number in range(50)}


@pytest.mark.parametrize(("age", "ended"), [(90_000.0, False), (320.0, True), (0.0, True), (float("nan"), False)])
def test_the_outcome_of_an_earlier_job_of_the_same_number_is_not_taken_for_its_own(age: float, ended: bool) -> None:
    clock = Clock()
    outcome = {"job": "7", "start": 1e6, "execution_time": 300.0, "exit_status": 0}

    def answers(path: str, document: Any) -> Any:
        if path.startswith("/v1/placements"):
            return [{"made_at": 1e6, "age": age, "outcome": outcome}]
        return {"state": "waiting"} if path.startswith("/v1/waits/") else answer(placement(time=100.0))

    sites = grid(Daemons(east=answers), ["east"], clock)
    uid = send(sites)
    look_later(320.0, sites, clock)
    assert sites.sent.find(uid).state == ("ended" if ended else "submitted")


def test_a_job_took_no_longer_than_it_has_been_known() -> None:
    clock = Clock()
    claimed = {"made_at": 1e6 - 3600.0, "outcome": {"job": "7", "start": 1e6, "execution_time": 90.0, "exit_status": 0}}

    def answers(path: str, document: Any) -> Any:
        return [claimed] if path.startswith("/v1/placements") else answer(placement(time=100.0))

    sites = grid(Daemons(east=answers), ["east"], clock)
    uid = send(sites)
    look_later(95.0, sites, clock)  # the site's clock was set by an hour between the submission and the start
    assert sites.sent.find(uid).took == 95.0


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (5e3 + 7200.0, 7200.0),
        (5e3 - 90.0, -90.0),
        *((said, None) for said in (5e3 + 59.0, None, "late", float("nan"), float("inf"), 1e300, True)),
    ],
    ids=str,
)
def test_a_clock_that_is_off_is_shown_and_changes_nothing(said: Any, shown: float | None) -> None:
    tables = [SiteTable(name="east", url="http://east.invalid", deadline=5.0)]
    daemons = Daemons(east=answer(placement(), time=said))
    sites = Sites(tables, "0.1.0", ask=daemons, now=Clock(), wall=lambda: 5e3)
    without = grid(Daemons(east=answer(placement())), ["east"]).rank(QUESTION)
    assert sites.rank(QUESTION).places == without.places
    assert sites.status()[0]["clock"] == (None if shown is None else pytest.approx(shown))


def test_a_job_of_a_silent_site_is_kept_and_a_failed_one_teaches_nothing() -> None:
    daemons = Daemons(east=answer(placement(time=100.0)))
    sites = grid(daemons, ["east"])
    send(sites)
    daemons.answers["east"] = RuntimeError("silent")
    sites.outcomes.look()
    assert [job.state for job in sites.sent.open()] == ["submitted"]
    outcome = {"job": "7", "start": 50.0, "execution_time": 1.0, "exit_status": 9}
    daemons.answers["east"] = [{"made_at": 40.0, "outcome": outcome}]
    sites.outcomes.look()
    assert (sites.sent.newest(1)[0].state, sites.status()[0]["trust"]["outcomes"]) == ("failed", 0)


def test_transfers_teach_the_bandwidth() -> None:
    daemons = Daemons(east=answer(placement()))
    sites = grid(daemons, ["east"], bandwidth=100.0)
    uid = sites.sent.send(sites.rank(QUESTION).places).uid
    sites.sent.submitted(uid, "east", "7", gigabytes=1.0, seconds=8.0)
    assert {name: link.bandwidth for name, link in sites.links().items()} == {"east": 1000.0}


def test_what_was_not_sent_or_is_reported_twice_is_refused() -> None:
    sites = grid(Daemons(east=answer(placement())), ["east"])
    uid = sites.sent.send(sites.rank(QUESTION).places).uid
    with pytest.raises(InputError, match="no job"):
        sites.sent.submitted("0" * 32, "east", "1")
    with pytest.raises(InputError, match="expected one of east"):
        sites.sent.submitted(uid, "west", "1")
    sites.sent.withdrawn(uid)
    with pytest.raises(InputError, match="is withdrawn"):
        sites.sent.submitted(uid, "east", "1")
    assert not sites.sent.known(["east"])["east"].sent


def test_a_job_that_waits_is_reconsidered_and_one_on_its_way_stays_so() -> None:
    clock = Clock()
    waits = {"state": "waiting", "wait": 10.0, "low": 10.0, "high": 10.0}

    def east(path: str, document: Any) -> Any:
        return waits if path.startswith("/v1/waits/") else answer(placement(time=100.0))

    sites = grid(Daemons(east=east, west=answer(placement(time=150.0))), ["east", "west"], clock)
    uid = send(sites)
    with pytest.raises(InputError, match="is unknown"):
        sites.reconsider(uid)
    sites.sent.withdrawn(uid)
    uid = sites.sent.send(sites.rank(QUESTION).places, QUESTION).uid
    with pytest.raises(InputError, match="is chosen at east, expected one that waits at a site"):
        sites.reconsider(uid)
    sites.sent.submitted(uid, "east", "8")
    clock.now += 1000.0
    found, ranking = sites.reconsider(uid)
    assert (found.withdraw, sites.sent.find(uid).state) == (False, "submitted")
    assert [each.offer.site for each in ranking.places] == ["east", "west"]
    waits |= {"wait": 5000.0, "low": 4000.0, "high": 6000.0}
    table = sites.tables.pop("east")
    assert sites.reconsider(uid)[0].why == "that site is not configured any more"
    sites.outcomes.look()
    assert sites.sent.find(uid).state == "submitted"
    sites.tables["east"] = table
    found, _ = sites.reconsider(uid)
    assert (found.withdraw, sites.sent.find(uid).state) == (True, "withdrawing")
    waits |= {"state": "running"}
    found, ranking = sites.reconsider(uid)
    assert (found.withdraw, found.why) == (True, "it is being withdrawn")
    assert len(ranking.places) == 2
