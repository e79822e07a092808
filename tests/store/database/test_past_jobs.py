"""Past jobs in the database: once each, gone when forgotten, and users hidden."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pytest
from command_line import call, refusal

from benchmarks.replay.made_log import as_csv, made_log
from metasched.history.log_formats import read_log
from metasched.records import InputError
from metasched.store.database.store import Store
from metasched.store.pseudonyms import is_hidden, key_location, pseudonyms_of, read_key

SACCT = """JobIDRaw|User|Account|JobName|Partition|Submit|Start|End|ElapsedRaw|AllocCPUS|TimelimitRaw|State
1|ada|phys|a|b|batch|2025-01-01T00:00:00|2025-01-01T00:01:00|2025-01-01T01:01:00|3600|4|120|COMPLETED
2|bob|phys|x|batch|2025-01-01T00:00:00|2025-01-01T00:01:00|2025-01-01T00:01:05|5|4|120|FAILED
2|bob|phys|x|batch|2025-01-01T01:00:00|2025-01-01T02:00:00|2025-01-01T04:00:00|7200|4|120|TIMEOUT
3|'; drop table runs|phys|$(a)|batch|2025-01-01T01:00:00|2025-01-01T02:00:00|2025-01-01T04:00:00|9|4||CANCELLED by 0
4|ada|phys|x|batch|2025-01-01T01:00:00|2025-01-01T02:00:00|Unknown|9|4|5|REQUEUED
5|ada|phys
"""


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "site.db")


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return call(capsys, "history", *arguments)


def test_a_log_comes_back_as_it_was_read(database: str) -> None:
    log = read_log(as_csv(made_log(300, seed=1)).splitlines())
    with Store.open(database) as store:
        assert (store.past_jobs.add(log, "c8"), store.past_jobs.add(log, "c8")) == (300, 0)
        assert store.past_jobs.add(log, "other") == 300  # the same numbers elsewhere are other jobs
        found, both = store.past_jobs.log(["c8"]), store.past_jobs.log()
        assert store.past_jobs.counts() == {"c8": 300, "other": 300}
    order = np.lexsort((log.run_time, log.submit_time))
    again = np.lexsort((found.run_time, found.submit_time))
    np.testing.assert_array_equal(found.run_time[again], log.run_time[order])
    np.testing.assert_array_equal(found.requested_time[again], log.requested_time[order])
    assert sorted(found.keys.tolist()) == sorted(log.keys.tolist())
    assert sorted(both.keys.tolist()) == sorted(2 * log.keys.tolist())
    assert [found.named("user")[row] for row in again] == [log.named("user")[row] for row in order]


@pytest.mark.parametrize("name", ["x\udcffy", "x\0y"])
def test_a_name_that_no_database_can_hold_keeps_no_job_from_being_stored(database: str, name: str) -> None:
    head, rest = "submit_time,run_time,processors,user,name", ["9,20,1,bob,plain"]
    log = read_log([head, f"0,60,4,{name},{name}", *rest])
    with Store.open(database) as store:
        assert (store.past_jobs.add(log, "c8"), store.past_jobs.add(log, "c8")) == (2, 0)
        assert store.past_jobs.log(["c8"]).named("name") == ["x?y", "plain"]


def test_two_jobs_that_are_alike_are_two_and_stay_two(database: str) -> None:
    log = read_log(["submit_time,run_time,processors", "0,5,1", "0,5,1"])
    with Store.open(database) as store:
        assert (store.past_jobs.add(log, ""), store.past_jobs.add(log, "")) == (2, 0)


def test_an_import_reports_what_there_was_and_hides_users(
    tmp_path: Path, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.txt").write_text(SACCT)
    fields = ("import", str(tmp_path / "log.txt"), "--cluster", "c8", "--database", database, "--json")
    document = json.loads(_run(capsys, *fields)[1])
    assert (document["jobs"], document["stored"], document["users"], document["hashed"]) == (4, 4, 3, True)
    assert document["states"] == {"COMPLETED": 1, "FAILED": 1, "TIMEOUT": 1, "CANCELLED": 1}
    assert document["wrong"]["listed in part, as a whole elsewhere"] == 1
    assert document["wrong"]["torn or unreadable"] == 1
    assert json.loads(_run(capsys, *fields)[1])["stored"] == 0
    with Store.open(database) as store:
        users = set(store.past_jobs.log().named("user"))
        called = pseudonyms_of(store.past_jobs, database)
    assert all(is_hidden(user) for user in users)
    assert called("ada") in users
    assert stat.S_IMODE(key_location(database).stat().st_mode) == 0o600
    assert _run(capsys, *fields, "--plain-users")[0] == 2


def test_a_user_who_is_forgotten_stays_forgotten(
    tmp_path: Path, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.txt").write_text(SACCT)
    fields = ("import", str(tmp_path / "log.txt"), "--database", database, "--json")
    assert _run(capsys, *fields)[0] == 0
    assert json.loads(_run(capsys, "forget", "--user", "bob", "--database", database, "--json")[1]) == {"forgotten": 2}
    assert json.loads(_run(capsys, *fields)[1])["stored"] == 0
    with Store.open(database) as store:
        assert sorted(store.past_jobs.log().named("state")) == ["CANCELLED", "COMPLETED"]


def test_of_arguments_only_numbers_are_stored_and_an_import_adds_those_that_were_not_known(
    tmp_path: Path, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log, known = tmp_path / "log.csv", ("--database", database, "--json")
    header, rows = "submit_time,run_time,processors,user,name", ["1,60,1,ada,x", "2,60,1,bob,x", "3,60,1,ada,x"]
    log.write_text("\n".join([header, *rows]))
    assert json.loads(_run(capsys, "import", str(log), *known)[1])["stored"] == 3
    assert _run(capsys, "forget", "--user", "bob", *known)[0] == 0
    arguments = ("case.in -n 400 --name eve", "-n 500", "case.in")
    log.write_text("\n".join([f"{header},arguments", *map(",".join, zip(rows, arguments, strict=True))]))
    assert json.loads(_run(capsys, "import", str(log), *known)[1])["stored"] == 0
    with Store.open(database) as store:
        assert store.past_jobs.log().named("numbers") == ["-n=400", ""]
        assert store.past_jobs.forget([pseudonyms_of(store.past_jobs, database)("ada")]) == 2
    for word in (b"-n=500", b"case.in", b"eve"):
        assert word not in Path(database).read_bytes()


def test_accounting_corrects_how_a_job_ended_where_its_epilog_could_not_tell(database: str) -> None:
    fields = "job,submit_time,run_time,processors,user,wait,state"

    def told(*states: str) -> list[str]:
        return [fields, *(f"{n},{100 * n},60,1,ada,5,{state}" for n, state in enumerate(states, start=1))]

    with Store.open(database) as store:
        log = read_log(told("", "FAILED", "FAILED", "COMPLETED", ""))
        assert store.past_jobs.add(log, "c") == 5
        assert store.past_jobs.add(read_log(told("TIMEOUT", "CANCELLED", "COMPLETED", "CANCELLED", "FAILED")), "c") == 0
        assert store.past_jobs.log().named("state") == ["TIMEOUT", "CANCELLED", "FAILED", "COMPLETED", "FAILED"]
        assert store.past_jobs.forgotten(log.keys.tolist(), "c") == frozenset()
        store.past_jobs.forget(["ada"])
        store.past_jobs.add(read_log(told("TIMEOUT")), "c")
        assert store.past_jobs.count() == 0
        assert store.past_jobs.forgotten([*log.keys.tolist(), 7], "c") == {*log.keys.tolist()}
        assert store.past_jobs.forgotten(log.keys.tolist(), "d") == frozenset()


def test_nothing_is_stored_where_one_file_is_none(
    tmp_path: Path, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.txt").write_text(SACCT)
    (tmp_path / "none.txt").write_text("hello")
    assert "none.txt: begins with 'hello'" in refusal(
        _run(capsys, "import", str(tmp_path / "log.txt"), str(tmp_path / "none.txt"), "--database", database)
    )
    assert not Path(database).exists()


def test_a_key_that_others_may_read_or_that_is_gone_is_refused(database: str) -> None:
    log = read_log(["submit_time,run_time,processors,user", "0,5,1,ada"])
    with Store.open(database) as store:
        store.past_jobs.add(log, "", pseudonyms_of(store.past_jobs, database))
        key = key_location(database)
        key.chmod(0o644)
        with pytest.raises(InputError, match="may be read by others"):
            pseudonyms_of(store.past_jobs, database)
        key.chmod(0o600)
        key.write_text("short")
        with pytest.raises(InputError, match="is no key"):
            read_key(key)
        key.unlink()
        with pytest.raises(InputError, match="is gone"):
            pseudonyms_of(store.past_jobs, database)


def test_old_jobs_are_let_go(database: str) -> None:
    log = read_log(["submit_time,run_time,processors", "0,5,1", "900,5,1"])
    with Store.open(database) as store:
        store.past_jobs.add(log, "")
        assert (store.past_jobs.prune(500.0), store.past_jobs.count()) == (1, 1)
        assert store.past_jobs.ends("") == (905.0, 905.0)  # at the earliest, as nothing is known of its wait
        assert len(store.past_jobs.log([""], ended_since=905.0)) == 1
        assert store.past_jobs.ends("elsewhere") is None
        with pytest.raises(InputError, match="holds no past jobs"):
            store.past_jobs.log(["elsewhere"])


def test_the_key_lies_beside_the_database_that_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("METASCHED_DB", raising=False)
    assert key_location(None) == tmp_path / "data" / "metasched" / "history.key"
    assert key_location("postgresql://host/site") == tmp_path / "data" / "metasched" / "history.key"
    assert key_location(tmp_path / "here" / "site.db") == tmp_path / "here" / "history.key"
    assert key_location(f"sqlite:///{tmp_path}/here/site.db") == tmp_path / "here" / "history.key"
    monkeypatch.setenv("METASCHED_DB", str(tmp_path / "named" / "site.db"))
    assert key_location(None) == tmp_path / "named" / "history.key"
