"""The store on a real PostgreSQL server, started for the test on a socket of its own."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from sqlalchemy import create_engine, text

from metasched.advised_placements import AdvisedPlacement, Answer, Ask, Outcome
from metasched.jobs import EndedJob
from metasched.records import InputError, Interval, Load, Prediction, Run
from metasched.store import spool
from metasched.store.database.backup import backup, restore
from metasched.store.database.ended_records import EndedRecord
from metasched.store.database.engine import connect
from metasched.store.database.leadership import Leadership
from metasched.store.database.run_records import RecordedRun
from metasched.store.database.schema import VERSION_TABLE
from metasched.store.database.store import Store
from metasched.store.database.waiting_jobs import WaitingJob
from metasched.store.errors import StoreError
from tests.system.real_postgresql import server, url, why_not

__all__ = ["server", "url"]
pytestmark = [pytest.mark.system, pytest.mark.skipif(bool(why_not()), reason=why_not())]

RUN = Run("cg", "c8", 1400, 4, 0.8, 93.5, 12.25, 100.5, ("n0", "n1"), "train", MappingProxyType({"job": "77"}))
WRITER = """
import sys
from metasched.records import Run
from metasched.store.database.store import Store
from metasched.store.errors import StoreError
print("ready", flush=True)
sys.stdin.readline()
with Store.open(sys.argv[1]) as store:
    for number in range(20):
        store.runs.add(Run("cg", "c8", 1 + number, 1, 0.5, 90.0, 1.0))
        store.models.save("cg", "c8", {"number": number})
"""


def test_runs_loads_and_models_come_out_as_they_went_in(url: str) -> None:
    with Store.open(url) as store:
        record = RecordedRun(RUN, exit_status=0)
        assert len(store.runs.add_all([record, RecordedRun(RUN, 137, learnable=False)])) == 2
        assert store.runs.add_all([record]) == frozenset()
        (back,) = store.runs.learnable(application="cg")
        assert back == RUN
        assert back.extra == RUN.extra
        assert store.loads.add(Load(10.0 * k, "n0", 0.5, 90.0) for k in range(3)) == 3
        assert store.loads.add([Load(0.0, "n0", 0.9, 80.0), Load(0.0, "n1", 0.9, 80.0)]) == 1
        np.testing.assert_array_equal(store.loads.all(node="n0").time, [0, 10, 20])
        assert store.models.save("cg", "c8", {"format": 1}) == 1
        assert store.models.document("cg", "c8") == {"format": 1}


def test_the_outcome_of_a_prediction_without_an_upper_end_is_stored(url: str) -> None:
    predicted = Prediction(10.0, Interval(8.0, math.inf, 0.9), "a model")
    outcome = Outcome("c8", "p", ("n1",), 4, 11.0, 0, predicted)
    ask = Ask(application="cg", problem_size=900.0)
    answer = Answer(id="0" * 32, mode="shadow", steer="nodes", placed=False, message="")
    with Store.open(url) as store:
        store.placements.add([AdvisedPlacement(5.0, ask, answer)])
        record = RecordedRun(RUN)
        assert store.ended.add([EndedRecord(record.uid, record, "0" * 32, outcome)]) == {record.uid}
        found = store.placements.find("0" * 32)
        assert found is not None
        assert found.outcome == outcome


def test_a_job_waits_until_it_is_stored_as_it_ended(url: str) -> None:
    job = EndedJob(
        "c8", "77", "x metasched:app=cg,n=5 y", "p", ("n0", "n1"), 4, 100.5, 112.75, 0, devices=(("gpu", "v"),)
    )
    record = RecordedRun(RUN, 0, learnable=False, uid=job.uid)
    with Store.open(url) as store:
        assert store.ended.add([EndedRecord(job.uid, record, waiting=job)]) == {job.uid}
        assert store.waiting.all() == (WaitingJob(replace(job, comment="metasched:app=cg,n=5"), stored=True),)
        assert store.ended.add([EndedRecord(job.uid, replace(record, learnable=True), corrects=True)]) == {job.uid}
        assert store.waiting.all() == ()
        assert len(store.runs.learnable()) == 1


def test_a_run_that_waited_for_the_server_is_stored_whatever_the_password(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(Store, "open", lambda *_, **__: 1 / 0)
    (warning,) = spool.keep(RecordedRun(RUN), url.replace("metasched@", "metasched:hush@"))
    assert "waits in" in warning
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert "hush" not in "".join(path.read_text() for path in spool.folder().iterdir())
    with Store.open(url.replace("metasched@", "metasched:other@")) as store:
        assert spool.drain(store) == ()
        assert store.runs.learnable() == (RUN,)


def test_many_processes_open_a_fresh_database_at_once_and_lose_nothing(url: str) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 4
    with Store.open(url) as store:
        assert len(store.runs.learnable()) == 80
        assert store.models.save("cg", "c8", {}) == 81


def test_a_newer_schema_and_a_foreign_database_are_refused(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE photographs (id int)"))
    with pytest.raises(InputError, match="is a database of another program"):
        Store.open(url)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE photographs"))
    Store.open(url).close()
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(InputError, match="has schema 9999, newer than"):
        Store.open(url)
    engine.dispose()


def test_a_backup_goes_from_one_kind_of_database_to_the_other_and_back(url: str, tmp_path: Path) -> None:
    with Store.open(tmp_path / "one.db") as store:
        store.runs.add(RUN)
        store.loads.add([Load(float(second), "n0", 0.5, 90.0) for second in range(7000)])
        store.models.save("cg", "c8", {"of": [1, None]})
        counts = backup(store, tmp_path / "first.backup")
    with Store.open(url) as store:
        assert restore(store, tmp_path / "first.backup") == counts
        store.runs.add(RUN)  # its number is a new one
        assert restore(store, tmp_path / "first.backup", replace=True) == counts
        assert (store.runs.learnable(), store.models.document("cg", "c8")) == ((RUN,), {"of": [1, None]})
        assert backup(store, tmp_path / "second.backup") == counts
    with Store.open(tmp_path / "two.db") as store:
        assert restore(store, tmp_path / "second.backup") == counts
        assert (store.runs.learnable(), len(store.loads.all())) == ((RUN,), 7000)


def test_a_database_is_brought_up_while_a_daemon_leads_on_it(url: str) -> None:
    lead = Leadership(connect(url, 5.0))
    assert lead.take()
    with Store.open(url, timeout=5.0) as store:
        store.runs.add(RUN)
    assert lead.holds()
    lead.release()


def test_a_lead_that_is_given_up_can_be_taken_before_the_server_notices_that_its_session_is_closed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Leadership(connect(url, 5.0)), Leadership(connect(url, 5.0))
    assert one.take()
    assert not other.take()
    with monkeypatch.context() as patch:
        patch.setattr(one, "_drop_session", lambda: None)  # as if the server had not noticed yet
        one.release()
        assert other.take()
    one.release()
    assert not one.take()
    other.release()


def test_what_another_session_has_locked_is_waited_for_so_long_and_no_longer(url: str) -> None:
    with Store.open(url, timeout=1.0) as store:
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(text("LOCK TABLE runs IN ACCESS EXCLUSIVE MODE"))
            for what in (lambda: store.runs.add(RUN), store.runs.learnable):
                with pytest.raises(StoreError, match=r": is locked by another process$"):
                    what()
        engine.dispose()
        store.runs.add(RUN)
        assert store.runs.learnable() == (RUN,)


ENDED = """
import sys
from sqlalchemy import text
from metasched.store.database.engine import writing
from metasched.store.database.store import Store
from metasched.store.errors import StoreError
try:
    with Store.open(sys.argv[1]) as store, writing(store.engine) as connection:
        number = connection.scalar(text("SELECT pg_backend_pid()"))
        connection.execute(text("SELECT pg_terminate_backend(:number)"), [{"number": number}] * 1000)
except StoreError as error:
    print(error)
"""


def test_a_server_that_ends_in_a_transaction_is_told_of_in_one_line(url: str) -> None:
    done = subprocess.run([sys.executable, "-c", ENDED, url], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
