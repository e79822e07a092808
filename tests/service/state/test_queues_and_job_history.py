"""What the daemon expects of jobs that name no problem size, and how long they wait; and who is shown it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import insert
from waiting import until

from metasched.history.job_log import job_key
from metasched.history.log_formats import read_log
from metasched.history.queue import QueuedJob
from metasched.history.waits import WaitErrors
from metasched.jobs import EndedJob
from metasched.placement.clusters.partition import Partition
from metasched.placement.clusters.state import ClusterState
from metasched.records import InputError
from metasched.service.app import make_app
from metasched.service.clock import Clock
from metasched.service.daemon import Daemon
from metasched.service.dashboard import pages
from metasched.service.learning import accounting
from metasched.service.learning.accounting import Accounting
from metasched.service.state import job_history
from metasched.service.state.job_history import JobHistory
from metasched.service.state.queues import Queues
from metasched.service.state.sized_jobs import SizedJobs
from metasched.store.database.engine import writing
from metasched.store.database.store import Store
from metasched.store.database.tables import WaitErrorsRow, table
from metasched.store.errors import StoreError
from metasched.store.pseudonyms import key_location
from tests.service.daemons import headers_for, running

PARTITIONS = (Partition(ClusterState.make("c/p", ["n1", "n2"], processors=2), "c", "c", "p"),)
DAY = 86_400.0


def job(number: int, *, user: str = "ada", started: float | None = None, ran: float | None = None) -> QueuedJob:
    return QueuedJob(
        f"{number}", frozenset("p"), 4, 7200.0, ran, ("n1", "n2") if ran is not None else (), submitted=1e6,
        started=started, planned=None if ran is not None else 1e6 + 7200.0, user=user, name="solve",
    )  # fmt: skip


def past(count: int = 20) -> list[str]:
    """Jobs of ada that ran for about ten minutes of the two hours they asked for."""
    rows = [f"{n},{9e5 + 900.0 * n},{600 + n},4,7200,ada,solve,p,5,COMPLETED" for n in range(count)]
    return ["job,submit_time,run_time,processors,requested_time,user,name,partition,wait,state", *rows]


@pytest.fixture
def history(tmp_path: Path) -> Iterator[JobHistory]:
    with Store.open(tmp_path / "site.db") as store:
        made = JobHistory(store)
        made.take("c", read_log(past()))
        yield made


def full(now: float = 1e6) -> tuple[Partition, ...]:
    """The partition with all of its processors taken."""
    return (Partition(ClusterState.make("c/p", ["n1", "n2"], processors=0), "c", "c", "p"),)


def test_run_times_are_learned_from_what_was_imported_and_again_after_a_restart(history: JobHistory) -> None:
    again = JobHistory(history._store)
    again.restore(rest=0.0)
    answer = [each.predict("ada", 4, 7200.0, 1e6, name="solve", partition="p") for each in (history, again)]
    assert [590 <= each["run_time"] <= 630 for each in answer] == [True, True]
    assert answer[1]["complete"]
    assert (
        answer[0]["reason"]
        == "the last 9 jobs of this user with the same name, size and limit took 10.2 min to 10.3 min"
    )
    with pytest.raises(InputError, match="no jobs of elsewhere are known, expected one of 'c'"):
        history.predict("ada", 4, 7200.0, 1e6, cluster="elsewhere")


def test_a_job_counts_as_in_the_partition_and_account_of_its_users_last_one(tmp_path: Path) -> None:
    """Who asks for a job by its name alone need not know what its accounting says beside it."""
    rows = [
        f"{n},{9e5 + 900.0 * n},{(60, 3000)[n % 2]},4,7200,ada,{('fast', 'slow')[n % 2]},p,grant7" for n in range(24)
    ]
    rows += [f"{99},{9.9e5},5,4,7200,bob,slow,q,other"]
    head = "job,submit_time,run_time,processors,requested_time,user,name,partition,account"
    with Store.open(tmp_path / "site.db") as store:
        known = JobHistory(store)
        known.take("c", read_log([head, *rows]))
        again = JobHistory(store)
        again.restore(rest=0.0)
        for each in (known, again):
            for name, took in (("fast", 60.0), ("slow", 3000.0)):
                told = each.predict("ada", 4, 7200.0, 1e6, name=name)
                assert told["run_time"] == pytest.approx(took, rel=0.05)
                assert "with the same name, size and limit" in told["reason"]
                assert told == each.predict("ada", 4, 7200.0, 1e6, name=name, partition="p", account="grant7")
                assert told != each.predict("ada", 4, 7200.0, 1e6, name=name, partition="q")
            each.note("c", [replace(job(100), account="next")], 1e6)
            assert "same name" not in each.predict("ada", 4, 7200.0, 1e6, name="fast")["reason"]
            each.forget(["ada"])
            assert "same name" not in each.predict("ada", 4, 7200.0, 1e6, name="fast")["reason"]


def test_the_script_that_the_queue_names_is_learned_and_stored(history: JobHistory) -> None:
    for number in range(100, 112):
        script, runs = (("fast.sh", 60.0), ("slow.sh", 5000.0))[number % 2]
        begin = 1e6 + 6000.0 * number
        seen = replace(job(number, started=begin, ran=0.0), submitted=begin, name="run", executable=script)
        history.note("c", [seen], begin)
        assert history.ended("c", f"{number}", begin, begin + runs, "COMPLETED")
    again = JobHistory(history._store)
    again.restore(rest=0.0)
    for each in (history, again):
        fast, slow = (
            each.predict("ada", 4, 7200.0, 1.68e6, name="run", executable=script, partition="p")["run_time"]
            for script in ("fast.sh", "slow.sh")
        )
        assert fast == pytest.approx(60.0, rel=0.1)
        assert slow == pytest.approx(5000.0, rel=0.1)


def test_a_wait_follows_from_what_is_expected_of_the_jobs_ahead(history: JobHistory) -> None:
    queues = Queues(history, history._store.wait_errors)
    runs, waits = job(100, started=1e6 - 60.0, ran=60.0), job(101)
    (seen,) = queues.put("c", full(), [runs, waits], 1e6)
    answer = queues.job("101", 1e6)
    assert answer is not None
    assert 400 < answer["wait"] < 700  # not the two hours that Slurm goes by
    assert answer["low"] <= answer["wait"] <= answer["high"]
    assert answer["scheduler_wait"] == 7200.0
    more = queues.one_more("p", 4, 7200.0)
    assert 1000 < more["wait"] < 1400
    assert float(seen.state.queue_wait.at(4)) == pytest.approx(more["wait"])
    with pytest.raises(InputError, match="5 processors are requested"):
        queues.one_more("p", 5, 7200.0)
    with pytest.raises(InputError, match="no partition q, expected one of p"):
        queues.one_more("q", 1, 7200.0)
    assert queues.job("102", 1e6) is None


def test_one_more_job_waits_for_those_that_run_even_where_no_other_waits(history: JobHistory) -> None:
    queues = Queues(history, history._store.wait_errors)
    queues.put("c", full(), [job(100, started=1e6 - 60.0, ran=60.0)], 1e6)
    assert 400 < queues.one_more("p", 4, 7200.0)["wait"] < 700
    queues.put("c", PARTITIONS, [], 1e6)
    assert queues.one_more("p", 4, 7200.0)["wait"] == 0.0


def test_two_schedulers_may_have_partitions_and_jobs_of_one_name(history: JobHistory) -> None:
    queues = Queues(history, history._store.wait_errors)
    queues.put("c", full(), [job(100, started=1e6 - 60.0, ran=60.0), job(101)], 1e6)
    queues.put("d", PARTITIONS, [job(101, user="bob"), job(102)], 1e6)
    assert [[each["job"] for each in queues.waiting(1e6, source=name)] for name in ("c", "d", None)] == [
        ["101"], ["101", "102"], ["101", "101", "102"]
    ]  # fmt: skip
    assert [(queues.job("101", 1e6, name) or {})["user"] for name in ("c", "d", None)] == ["ada", "bob", "ada"]
    assert [queues.one_more("p", 4, 7200.0, name)["cluster"] for name in ("c", "d", None)] == ["c", "d", "c"]
    assert queues.one_more("p", 1, 60.0, "d")["wait"] == queues.job("102", 1e6, "d")["wait"] * 2  # type: ignore[index]


def test_jobs_that_wait_are_listed_in_their_order_without_those_that_run(history: JobHistory) -> None:
    queues = Queues(history, history._store.wait_errors)
    queues.put("c", full(), [job(1, started=1e6, ran=0.0), job(9), job(3, user="bob")], 1e6)
    assert [each["job"] for each in queues.waiting(1e6)] == ["9", "3"]
    assert [each["job"] for each in queues.waiting(1e6, lambda user: user == "bob")] == ["3"]
    assert queues.job("9", 1e6, shown=lambda user: user == "bob") is None
    assert queues.job("9", 1e6, "elsewhere") is None
    running, near, far = (queues.job(number, 1e6) for number in ("1", "9", "3"))
    assert running is not None
    assert near is not None
    assert far is not None
    assert (running["state"], running["wait"], near["state"]) == ("running", 0.0, "waiting")
    assert near["wait"] < far["wait"]
    later = queues.job("9", 1e6 + 100.0)
    assert later is not None
    assert later["wait"] == pytest.approx(near["wait"] - 100.0)


@pytest.mark.parametrize(
    ("restored", "held", "wait"), [(True, False, 5000.0), (False, False, 553.0), (True, True, 553.0)]
)
def test_what_forecasts_missed_moves_the_next(history: JobHistory, restored: bool, held: bool, wait: float) -> None:
    """Nothing is learned from those made before past jobs were known, nor of jobs that were held meanwhile."""
    if restored:
        history.restore(rest=0.0)
    queues = Queues(history, history._store.wait_errors)
    for number in range(1000, 1030):
        runs = job(1, started=1e6 - 60.0, ran=60.0)
        queues.put("c", full(), [runs, job(number)], 1e6)
        if held:
            queues.put("c", full(), [runs, replace(job(number), ready=False)], 1e6 + 10.0)
        queues.put("c", full(), [runs, job(number, started=1e6 + 5000.0, ran=1.0)], 1e6 + 5001.0)
    queues.put("c", full(), [runs, job(2000)], 1e6)
    answer = queues.job("2000", 1e6)
    assert answer is not None
    assert answer["wait"] == pytest.approx(wait, rel=0.2)


def missed(queues: Queues, first: int = 1000) -> None:
    """Thirty jobs wait far longer than is forecast."""
    for number in range(first, first + 30):
        runs = job(1, started=1e6 - 60.0, ran=60.0)
        queues.put("c", full(), [runs, job(number)], 1e6)
        queues.put("c", full(), [runs, job(number, started=1e6 + 5000.0, ran=1.0)], 1e6 + 5001.0)


def test_what_forecasts_missed_outlives_a_restart(history: JobHistory) -> None:
    history.restore(rest=0.0)
    kept = history._store.wait_errors
    queues = Queues(history, kept)
    missed(queues)
    queues.save()
    again = Queues(history, kept)
    again.restore()
    for each in (queues, again):
        each.put("c", full(), [job(1, started=1e6 - 60.0, ran=60.0), job(2000)], 1e6)
    first, second = queues.job("2000", 1e6), again.job("2000", 1e6)
    assert first is not None
    assert second is not None
    assert first["wait"] == pytest.approx(5000.0, rel=0.2)
    assert [second[name] for name in ("wait", "low", "high")] == pytest.approx(
        [first[name] for name in ("wait", "low", "high")], rel=1e-5
    )


def test_errors_of_forecasts_that_could_not_be_saved_are_saved_the_next_time(
    history: JobHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.restore(rest=0.0)
    kept = history._store.wait_errors
    queues = Queues(history, kept)
    missed(queues)

    def refuses(_: object) -> None:
        raise StoreError("is locked by another process", where="site.db")

    with monkeypatch.context() as locked:
        locked.setattr(kept, "save", refuses)
        with pytest.raises(StoreError):
            queues.save()
    assert kept.all() == {}
    queues.save()
    assert [*kept.all()] == ["c"]
    monkeypatch.setattr(kept, "save", refuses)
    queues.save()  # nothing was learned since


def test_a_daemon_stores_what_forecasts_missed_when_it_stops_and_reads_it_when_it_starts(tmp_path: Path) -> None:
    waits = []
    for started in range(2):
        with running(tmp_path, learned=False) as made:
            until(lambda daemon=made: daemon.job_history.ready)
            if not started:
                missed(made.queues)
            made.queues.put("c", full(), [job(1, started=1e6 - 60.0, ran=60.0), job(2000)], 1e6)
            waits.append((made.queues.job("2000", 1e6) or {})["wait"])
    assert waits == pytest.approx([5000.0, 5000.0], rel=0.2)  # 7,140 by the limit of the job ahead


@pytest.mark.parametrize(
    "changed",
    [
        {"low": 0.4},
        {"high": 0.6},
        {"missed": -1.0},
        {"missed_corrected": float("inf")},
        {"ratios": [[]]},
        {"ratios": [[0.5], [], [], [], [], [], [float("nan")]]},
        {"ratios": 3},
        {"low": "a"},
    ],
)
def test_errors_of_forecasts_that_nobody_wrote_down_are_learned_anew(
    history: JobHistory, changed: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    kept, sound = history._store.wait_errors, WaitErrors().as_dict()
    assert WaitErrors.of(sound).as_dict() == sound
    with writing(history._store.engine) as connection:
        connection.execute(insert(table(WaitErrorsRow)), {"scheduler": "c", "document": sound | changed})
    assert kept.all() == {}
    assert "queue of c: the errors of waits" in caplog.text


def test_a_queue_that_cannot_be_told_is_not_an_empty_one(history: JobHistory) -> None:
    queues = Queues(history, history._store.wait_errors)
    assert [float(each.state.queue_wait.at(4)) for each in queues.put("c", full(), None, 1e6)] == [0.0]
    assert (queues.heard(), queues.heard("c")) == (False, False)
    (seen,) = queues.put("c", full(), [job(100, started=1e6 - 60.0, ran=60.0), job(101)], 1e6)
    (again,) = queues.put("c", full(), None, 1e6 + 30.0)
    assert float(again.state.queue_wait.at(4)) == float(seen.state.queue_wait.at(4)) > 0.0
    answer, later = queues.job("101", 1e6), queues.job("101", 1e6 + 30.0)
    assert answer is not None
    assert later is not None
    assert later["wait"] == pytest.approx(answer["wait"] - 30.0)
    assert (queues.heard(), queues.heard("c"), queues.heard("d")) == (True, True, False)


def test_what_was_in_the_queue_when_the_daemon_started_is_expected_again_once_past_jobs_are_known(
    history: JobHistory,
) -> None:
    again = JobHistory(history._store)
    queues = Queues(again, again._store.wait_errors)
    queue = [job(100, started=1e6 - 60.0, ran=60.0), job(101)]
    queues.put("c", full(), queue, 1e6)
    for wait in (7140.0, 550.0):
        answer = queues.job("101", 1e6)
        assert answer is not None
        assert answer["wait"] == pytest.approx(wait, rel=0.1)
        again.restore(rest=0.0)
        queues.put("c", full(), queue, 1e6)


def test_a_database_without_its_key_is_served_and_its_users_stay_unknown(
    history: JobHistory, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = key_location(tmp_path / "site.db")
    key.unlink()
    again = JobHistory(history._store)
    again.restore(rest=0.0)
    (seen,) = Queues(again, again._store.wait_errors).put(
        "c", full(), [job(100, started=1e6 - 60.0, ran=60.0), job(101)], 1e6
    )
    assert float(seen.state.queue_wait.at(4)) > 0.0
    assert again.called("ada") != history.called("ada")
    assert JobHistory(history._store).called("ada") == again.called("ada")
    assert [each.getMessage() for each in caplog.records] == [
        f"{key} is gone: users of past jobs stay unknown, and a new key hides those of later ones"
    ]


def test_jobs_without_a_limit_are_expected_by_what_such_jobs_took(tmp_path: Path) -> None:
    head, *rows = [line.replace(",7200,", ",,") for line in past()]
    endless = replace(job(100, started=1e6, ran=0.0), limit=None)
    with Store.open(tmp_path / "site.db") as store:
        made = JobHistory(store)
        for row in rows:  # as accounting is asked now and then: each of these logs has no other limit
            made.take("c", read_log([head, row]))
        again = JobHistory(store)
        again.restore(rest=0.0)
        for each in (made, again):
            each.note("c", [endless], 1e6)
            assert np.mean(each.left("c")(endless)) == pytest.approx(610.0, rel=0.05)
            asked = each.predict("ada", 4, 7200.0, 1e6, name="solve", partition="p")
            assert asked["run_time"] == pytest.approx(610.0, rel=0.05)
            assert asked["time_limit"] < 0.02
        assert made.ended("c", "100", 1e6, 1e6 + 60.0, "COMPLETED")
        assert np.isnan(store.past_jobs.log(["c"]).requested_time).all()


def test_when_a_job_was_submitted_is_known_of_those_that_run_where_they_were_seen_waiting(history: JobHistory) -> None:
    history.note("c", [job(300)], 1e6)
    history.note("c", [replace(job(300, started=1e6 + 500.0, ran=1.0), submitted=None)], 1e6 + 501.0)
    assert history.ended("c", "300", 1e6 + 500.0, 1e6 + 560.0, "COMPLETED")
    history.note("c", [replace(job(301, started=1e6 + 700.0, ran=1.0), submitted=None)], 1e6 + 701.0)
    assert history.ended("c", "301", 1e6 + 700.0, 1e6 + 760.0, "COMPLETED")
    log = history._store.past_jobs.log(["c"])
    np.testing.assert_array_equal(log.submit_time[-2:], [1e6, 1e6 + 700.0])
    np.testing.assert_array_equal(log.wait[-2:], [500.0, np.nan])
    assert history.ends("c") == (9e5 + 5.0 + 600.0, 1e6 + 760.0)


def test_a_job_that_its_epilog_tells_of_is_learned_and_stored_once(history: JobHistory) -> None:
    known = Accounting(history, Queues(history, history._store.wait_errors), Clock())
    history.note("c", [job(200, user="bob", started=1e6, ran=10.0)], 1e6 + 10.0)
    ended = EndedJob("c", "200", "", "p", ("n1",), 4, 1e6, 1e6 + 90.0, 0)
    known.ended(ended)
    known.ended(ended)  # nobody knows it any more
    assert history._store.past_jobs.count() == 21
    accounted = ["JobIDRaw|User|Submit|Start|ElapsedRaw|AllocCPUS|State", "200|bob|1000000|1000000|90|4|COMPLETED",
                 "201|bob|1000000|1000100|80|4|FAILED"]  # fmt: skip
    assert history.take("c", read_log(accounted)) == 1  # the second was too short for the queue to tell of it
    assert job_key("200", 1e6) in history._clusters["c"].ended
    assert history.predict("bob", 4, 7200.0, 1.1e6, name="solve", partition="p")["run_time"] < 200


def test_numbers_that_the_queue_the_epilog_or_accounting_tell_of_are_stored(history: JobHistory) -> None:
    queued = replace(job(200, user="bob", started=1e6, ran=10.0), numbers="-n=400")
    history.note("c", [queued, job(201, user="bob", started=1e6, ran=10.0)], 1e6 + 10.0)
    known = Accounting(history, Queues(history, history._store.wait_errors), Clock())
    known.ended(EndedJob("c", "200", "", "p", ("n1",), 4, 1e6, 1e6 + 90.0, 0, numbers="script:N==7"))
    known.ended(EndedJob("c", "201", "", "p", ("n1",), 4, 1e6, 1e6 + 90.0, 0))
    accounted = [
        "JobIDRaw|User|Submit|Start|ElapsedRaw|AllocCPUS|SubmitLine",
        "200|bob|1000000|1000000|90|4|sbatch x -n 9", "201|bob|1000000|1000000|90|4|sbatch -n 4 x -n 500",
    ]  # fmt: skip
    assert history.take("c", read_log(accounted)) == 0
    assert history._store.past_jobs.log(["c"]).named("numbers")[-2:] == ["-n=400 script:N==7", "-n=500"]


def test_a_job_whose_number_came_again_does_not_end_the_one_that_the_queue_reported(history: JobHistory) -> None:
    history.note("c", [job(300, user="eve", started=1e6, ran=10.0)], 1e6 + 10.0)
    again = EndedJob("c", "300", "", "p", ("n1",), 4, 1e6 + 900.0, 1e6 + 905.0, 0)
    Accounting(history, Queues(history, history._store.wait_errors), Clock()).ended(again)
    assert history._store.past_jobs.count() == 20
    assert history.ended("c", "300", 1e6 + 0.4, 1e6 + 60.0, "")


def test_a_job_whose_prolog_notes_its_start_late_ends_as_long_after_it_as_slurm_says(history: JobHistory) -> None:
    history.note("c", [job(300, user="eve", started=1e6, ran=10.0)], 1e6 + 10.0)
    assert history.ended("c", "300", 1e6 + 30.0, 1e6 + 60.0, "")
    assert history._store.past_jobs.log(["c"]).run_time[-1] == 60.0


def test_a_job_that_is_put_back_into_the_queue_or_vanishes_teaches_nothing(history: JobHistory) -> None:
    history.note("c", [job(300, user="eve", started=1e6, ran=10.0)], 1e6 + 10.0)
    history.note("c", [job(300, user="eve")], 1e6 + 50.0)
    assert not history.ended("c", "300", 1e6, 1e6 + 60.0, "")
    history.note("c", [], 1e6 + 60.0)
    history.note("c", [], 1e6 + DAY)
    assert history._clusters["c"].known == {}
    assert history._clusters["c"].numbers == {}


def test_who_is_forgotten_is_as_if_never_seen(history: JobHistory) -> None:
    history.take("c", read_log([past()[0], "99,900000,60,4,7200,bob,solve,p,5,"]))
    assert history.forget(["ada"]) == 20
    again = JobHistory(history._store)
    again.restore(rest=0.0)
    for each in (history, again):
        assert each.take("c", read_log(past())) == 0  # as accounting tells of the last days after a start
        assert "of others" in each.predict("ada", 4, 7200.0, 1e6, name="solve", partition="p")["reason"]
        users = {entry[0].user for entry in each._clusters["c"].ended.values() if entry is not None}
        assert users == {history.called("bob")}
    assert history.forget(["bob"]) == 1
    assert "nothing is known" in history.predict("ada", 4, 7200.0, 1e6)["reason"]
    assert not any(history._clusters["c"].ended.values())


def test_accounting_corrects_what_was_learned_of_an_end_that_its_epilog_could_not_tell(history: JobHistory) -> None:
    for number in range(200, 230):
        begin = 1e6 + 900.0 * number
        history.note("c", [replace(job(number, started=begin, ran=1.0), submitted=begin)], begin + 1.0)
        assert history.ended("c", f"{number}", begin, begin + 20.0, "" if number % 2 else "FAILED")
    head = "JobIDRaw|User|Submit|Start|ElapsedRaw|AllocCPUS|TimelimitRaw|State"
    rows = [f"{n}|ada|{1e6 + 900 * n:.0f}|{1e6 + 900 * n:.0f}|20|4|120|FAILED" for n in range(200, 230)]
    again = JobHistory(history._store)
    for _ in range(2):  # it is told of more than once
        assert history.take("c", read_log([head, *rows])) == 0
    again.restore(rest=0.0)
    chances = [
        each.predict("ada", 4, 7200.0, 1.3e6, name="solve", partition="p")["early_failure"] for each in (history, again)
    ]
    assert chances[0] == pytest.approx(chances[1], abs=0.05)
    assert chances[1] > 0.4


class AccountedJob:
    """A scheduler whose accounting tells of jobs."""

    name = "c"

    def __init__(self) -> None:
        self.asked: list[float] = []

    def accounted(self, since: float, until: float | None = None) -> object:
        assert until is None
        self.asked.append(since)
        return read_log(past(22))


def test_accounting_is_asked_only_for_what_ended_since(history: JobHistory) -> None:
    history.restore(rest=0.0)
    source, known = AccountedJob(), Accounting(history, Queues(history, history._store.wait_errors), Clock(lambda: 1e6))
    known.catch_up(source)  # type: ignore[arg-type]
    known.catch_up(source)  # type: ignore[arg-type]
    assert history._store.past_jobs.count() == 22
    assert source.asked[0] == 9e5 + 900.0 * 19 + 5 + 619 - accounting.LATE
    assert source.asked[1] == pytest.approx(1e6 - accounting.LATE, abs=5.0)


def test_accounting_is_asked_for_the_last_days_where_the_newest_job_ended_in_the_future(history: JobHistory) -> None:
    history.restore(rest=0.0)
    day, passed = [8e5], [0.0]
    clock = Clock(lambda: day[0], lambda: passed[0])
    source, known = AccountedJob(), Accounting(history, Queues(history, history._store.wait_errors), clock)
    for hour in (8e5, 8e5 + 120.0, 8e5 - 7200.0, 8e5 - 7080.0):  # before the third the clock is set back
        day[0], passed[0] = hour, passed[0] + 120.0
        clock.mind()
        known.catch_up(source)  # type: ignore[arg-type]
    since = [each + accounting.LATE for each in source.asked]
    assert since == [8e5 - accounting.REACH, 8e5, 8e5 - 7200.0, 8e5 - 7200.0]


class YearsOfAccounting:
    """A scheduler on which a job ended in each of some weeks, counted back from a time, and never before."""

    name = "c"
    week = 7 * DAY

    def __init__(self, now: float, weeks: Collection[int], *, fails: bool = False) -> None:
        self.ends = {now - self.week * (week + 0.5): week for week in weeks}
        self.now, self.fails, self.asked = now, fails, list[tuple[float, float | None]]()

    def accounted(self, since: float, until: float | None = None) -> object:
        self.asked.append((since, until))
        if self.fails and until is not None:
            raise RuntimeError("the database is too slow")
        rows = [
            f"{week},{end - 65.0},60,4,7200,ada,solve,p,5,COMPLETED"
            for end, week in self.ends.items() if since < end <= (until or self.now)
        ]  # fmt: skip
        return read_log([past()[0], *rows]) if rows else None


def read_back(history: JobHistory, source: YearsOfAccounting, times: int, weeks: int) -> None:
    queues = Queues(history, history._store.wait_errors)
    known = Accounting(history, queues, Clock(lambda: source.now), weeks * source.week)
    for _ in range(times):
        known.catch_up(source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("there", "weeks", "kept", "asked"),
    [
        (range(30), 20, 20, 19),  # what is older than what is kept is not asked for
        (range(5), 20, 5, 12),  # eight empty weeks: there was nothing before
        ([0, 8, 9], 20, 3, 17),  # seven are a pause
        ([0, 9], 20, 1, 8),
        ([], 20, 0, 8),
    ],
)
def test_older_jobs_are_read_a_week_at_a_time_every_other_time(
    there: Collection[int], weeks: int, kept: int, asked: int, tmp_path: Path
) -> None:
    with Store.open(tmp_path / "site.db") as store:
        history = JobHistory(store)
        history.restore(rest=0.0)
        source = YearsOfAccounting(2e8, there)
        read_back(history, source, 60, weeks)
        older = [each for each in source.asked if each[1] is not None]
        assert (store.past_jobs.count(), len(older)) == (kept, asked)
        assert all(until is None for _, until in source.asked[::2])
        assert [until - since for since, until in older] == [source.week] * asked  # type: ignore[operator]
        assert [since for since, _ in older[:-1]] == [until for _, until in older[1:]]
        history.follow(rest=0.0)
        assert len(history._clusters["c"].ended) == kept if kept else not history.knows("c")


def test_after_a_restart_older_jobs_are_read_before_those_that_are_stored_and_in_gaps(tmp_path: Path) -> None:
    with Store.open(tmp_path / "site.db") as store:
        first = JobHistory(store)
        first.restore(rest=0.0)
        source = YearsOfAccounting(2e8, range(40))
        source.now -= 5 * source.week
        read_back(first, source, 8, 30)
        source.now = 2e8  # nobody asked for five weeks
        assert store.past_jobs.count() == 5
        again = JobHistory(store)
        again.restore(rest=0.0)
        source.asked.clear()
        read_back(again, source, 60, 30)
        older = [(round((2e8 - until) / source.week, 1), until) for _, until in source.asked if until is not None]
        assert [week for week, _ in older[:6]] == [1.0, 2.0, 3.0, 4.0, 5.0, 9.5]  # those between are there
        assert store.past_jobs.count() == 30


def test_a_scheduler_that_cannot_tell_of_older_jobs_is_asked_for_them_once(tmp_path: Path) -> None:
    with Store.open(tmp_path / "site.db") as store:
        history = JobHistory(store)
        history.restore(rest=0.0)
        source = YearsOfAccounting(2e8, range(9), fails=True)
        read_back(history, source, 5, 30)
        assert [until is None for _, until in source.asked] == [True, False, True, True, True]
        assert store.past_jobs.count() == 1


def test_what_another_daemon_stores_is_learned_once(history: JobHistory) -> None:
    follower = JobHistory(history._store)
    follower.follow()
    assert not follower.knows("c")
    follower.restore(rest=0.0)
    taught = follower.predict("ada", 4, 7200.0, 2e6, name="solve", partition="p")["run_time"]
    history.take("c", read_log(past(60)))
    history.take("d", read_log(past(3)))
    follower.follow()
    assert follower.knows("d")
    after = follower.predict("ada", 4, 7200.0, 2e6, cluster="c", name="solve", partition="p")["run_time"]
    assert after > taught + 20.0  # the newer jobs ran for longer
    assert len(follower._clusters["c"].ended) == 60


def answers(history: JobHistory) -> list[dict[str, Any]]:
    """What is predicted of jobs of ada and of somebody else."""
    asked = {"cluster": "c", "name": "solve", "partition": "p"}
    return [history.predict(user, 4, 7200.0, 2e6, **asked) for user in ("ada", "bob", "eve")]  # type: ignore[arg-type]


def imported(history: JobHistory, *rows: str) -> None:
    """Store jobs as another process does."""
    history._store.past_jobs.add(read_log([past()[0], *rows]), "c", history.called)


OLDER = [f"o{n},{1e5 + 900.0 * n},{4000 + n},4,7200,{'ada' if n % 2 else 'bob'},solve,p,5,COMPLETED" for n in range(40)]


def test_jobs_that_are_imported_later_are_learned_in_the_order_of_time(history: JobHistory) -> None:
    history.restore(rest=0.0)
    queue = [job(100, user="bob", started=1e6 - 60.0, ran=60.0), job(101, user="bob")]
    history.note("c", queue, 1e6)
    before = history.left("c")(queue[1])
    imported(history, *OLDER)
    history.follow(rest=0.0)
    again = JobHistory(history._store)
    again.restore(rest=0.0)
    again.note("c", queue, 1e6)
    assert answers(history) == answers(again)
    assert answers(history)[0]["run_time"] < 1000.0  # the older jobs of ada count less
    assert answers(history)[1]["run_time"] > 3900.0
    assert np.mean(history.left("c")(queue[1])) > np.mean(before) + 2000.0
    assert [history.left("c")(each) for each in queue] == [again.left("c")(each) for each in queue]
    assert history.ended("c", "100", 1e6 - 60.0, 1e6 + 30.0, "COMPLETED")


def test_older_jobs_are_learned_at_most_now_and_then_and_newer_ones_at_once(history: JobHistory) -> None:
    history.restore(rest=0.0)
    imported(history, *OLDER[:20])
    history.follow(rest=0.0)
    imported(history, *OLDER[20:])
    imported(history, f"n1,{1.1e6},6000,4,7200,eve,solve,p,5,COMPLETED")
    fresh = history._clusters["c"]
    history.follow(rest=0.0)
    assert history._clusters["c"] is fresh
    assert (len(fresh.ended), answers(history)[2]["run_time"]) == (41, pytest.approx(6000.0, rel=0.05))
    history.follow(rest=0.0)
    assert len(history._clusters["c"].ended) == 41
    history.follow(rest=0.0, again=0.0)
    assert len(history._clusters["c"].ended) == 61
    known = history._clusters["c"]
    history.follow(rest=0.0, again=0.0)
    assert history._clusters["c"] is known  # nothing was stored since


def test_what_happens_while_all_is_learned_again_is_not_lost(
    history: JobHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.restore(rest=0.0)
    running = [job(number, user="eve", started=1e6, ran=10.0) for number in (100, 101, 102)]
    history.note("c", running, 1e6 + 10.0)
    imported(history, *OLDER)
    happens = iter(
        [
            lambda: history.ended("c", "100", 1e6, 1e6 + 60.0, "COMPLETED"),
            lambda: history.note("c", [*running[1:], job(103, user="eve")], 1e6 + 70.0),
            lambda: history.forget(["bob"]),
        ]
    )
    monkeypatch.setattr(job_history.time, "sleep", lambda _: next(happens, lambda: None)())
    history.follow(rest=1e-9)
    assert next(happens, None) is None
    known = history._clusters["c"]
    assert {entry[1].number for entry in known.known.values()} == {"101", "102", "103"}
    assert job_key("100", 1e6) in known.ended
    assert history.called("bob") not in {entry[0].user for entry in known.ended.values() if entry is not None}
    assert "of this user" not in answers(history)[1]["reason"]
    assert history.ended("c", "101", 1e6, 1e6 + 80.0, "COMPLETED")
    assert "of this user" in answers(history)[2]["reason"]


@pytest.mark.parametrize("reading", ["forgotten", "log"])
def test_who_is_forgotten_while_their_jobs_are_read_is_not_learned(
    history: JobHistory, monkeypatch: pytest.MonkeyPatch, reading: str
) -> None:
    """What accounting tells is compared with the database before it is learned, and what others store is read there."""
    history.restore(rest=0.0)
    rows = [f"e{n},{1.1e6 + 900.0 * n},4000,4,7200,eve,solve,p,5,FAILED" for n in range(20)]
    read = getattr(history._store.past_jobs, reading)

    def read_and_forget(*asked: Any, **more: Any) -> Any:
        found = read(*asked, **more)
        assert history.forget(["eve"]) == 20
        return found

    if reading == "log":
        imported(history, *rows)
    monkeypatch.setattr(history._store.past_jobs, reading, read_and_forget)
    if reading == "log":
        history.follow(rest=0.0)
    else:
        history.take("c", read_log([past()[0], *rows]))
    eve, nobody = (history.predict(user, 4, 7200.0, 2e6, name="solve", partition="p") for user in ("eve", "nobody"))
    assert eve == nobody
    assert "of others" in eve["reason"]
    assert not [each for each in history._clusters["c"].ended.values() if each is not None]


def test_what_is_imported_is_learned_though_as_many_jobs_were_forgotten_before(history: JobHistory) -> None:
    history.restore(rest=0.0)
    history.forget(["ada"])
    imported(history, *(f"n{n},{1.1e6 + 900.0 * n},6000,4,7200,eve,solve,p,5,COMPLETED" for n in range(20)))
    history.follow(rest=0.0)
    assert answers(history)[2]["run_time"] == pytest.approx(6000.0, rel=0.05)


def test_a_job_that_accounting_tells_of_again_after_a_restart_is_learned_once(history: JobHistory) -> None:
    again = JobHistory(history._store)
    again.restore(rest=0.0)
    before = answers(again)
    again.take("c", read_log(past()))
    assert (answers(again), len(again._clusters["c"].ended)) == (before, 20)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("waits"), learned=False) as made:
        made.job_history.take("c", read_log(past()))
        now = made.clock.now()
        made.queues.put("c", full(), [job(100, started=now, ran=1.0), job(101), job(102, user="<b>bob")], now)
        yield made


def _as(daemon: Daemon, role: str, user: str | None = None) -> TestClient:
    name = f"{role} {user}"
    known = {token.name for token in daemon.store.tokens.all()}
    if name in known:
        daemon.store.tokens.revoke(name)
    return TestClient(make_app(daemon), headers=headers_for(daemon, name, role, user=user))


def test_users_are_shown_their_own_jobs_and_what_follows_from_them(daemon: Daemon) -> None:
    ada, admin = _as(daemon, "reader", "ada"), _as(daemon, "admin")
    assert [each["job"] for each in ada.get("/v1/waits").json()] == ["101"]
    assert [each["job"] for each in admin.get("/v1/waits").json()] == ["101", "102"]
    assert [each["job"] for each in admin.get("/v1/waits?cluster=c").json()] == ["101", "102"]
    assert admin.get("/v1/waits?cluster=unheard").status_code == 503
    assert [client.get("/v1/waits/102").status_code for client in (ada, admin)] == [404, 200]
    assert [admin.get(f"/v1/waits/103?cluster={name}").status_code for name in ("c", "unheard")] == [404, 503]
    question = {"user": "ada", "processors": 4, "requested_time": 7200, "name": "solve", "partition": "p"}
    assert 590 < ada.post("/v1/history/predictions", json=question).json()["run_time"] < 630
    assert ada.post("/v1/history/predictions", json=question | {"user": "bob"}).status_code == 403
    answer = ada.post("/v1/waits", json=question).json()
    assert answer["wait"] > 600
    assert answer["low"] <= answer["wait"] <= answer["high"]
    assert ada.post("/v1/waits", json=question | {"user": "", "processors": 400}).status_code == 422
    daemon.job_history.take("d", read_log(past()))  # of another cluster, which does not have the partition
    assert ada.post("/v1/waits", json=question).json()["run_time"] == answer["run_time"] < 700
    assert ada.post("/v1/history/forget", json={"user": "bob"}).status_code == 403


def test_a_model_is_asked_for_the_platform_of_the_users_last_partition(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    partitions: list[str] = []
    numbers: list[str] = []

    def predict(sized: SizedJobs, expected: dict[str, Any], name: str, processors: int, **more: Any) -> dict[str, Any]:
        partitions.append(more["partition"])
        numbers.append(more["numbers"])
        return expected

    monkeypatch.setattr(SizedJobs, "predict", predict)
    ada = _as(daemon, "reader", "ada")
    question = {"user": "ada", "processors": 4, "requested_time": 7200, "name": "solve", "cluster": "c"}
    for more in ({}, {"partition": "q", "numbers": "-n=400"}):
        assert ada.post("/v1/history/predictions", json=question | more).status_code == 200
    assert (partitions, numbers) == (["p", "q"], ["", "-n=400"])
    assert ada.post("/v1/history/predictions", json=question | {"numbers": "run.sh\n"}).status_code == 422


def test_the_dashboard_shows_jobs_that_wait_and_nothing_in_them_comes_alive(daemon: Daemon) -> None:
    page = _as(daemon, "admin").get("/").text
    assert "Pending jobs" in page
    assert "<b>bob" not in page
    assert pages.content(daemon, daemon.clock.now(), pages.NOBODY)["waiting"] == []
