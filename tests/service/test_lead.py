"""Of several daemons on one database one leads: on a SQLite file the others are refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import call

from metasched.history.log_formats import read_log
from metasched.records import InputError, Load, Request
from metasched.service.configuration import Configuration
from metasched.service.daemon import Daemon
from metasched.store.database.backup import backup, restore
from metasched.store.database.leadership import Leadership
from metasched.store.database.store import Store
from metasched.store.errors import StoreError
from tests.service.daemons import running

PAST = [
    "job,submit_time,run_time,processors,requested_time,user,name,partition,wait,state",
    *(f"{n},{9e5 + 900.0 * n},{600 + n},4,7200,ada,solve,p,5,COMPLETED" for n in range(20)),
]
HOLDER = """
import sys, time
from metasched.store.database.leadership import Leadership
from metasched.store.database.store import Store
from metasched.store.errors import StoreError
store = Store.open(sys.argv[1])
lead = Leadership(store.engine)
print(lead.take(), flush=True)
time.sleep(600)
"""


def test_a_second_daemon_on_the_same_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "metasched.db")
    with running(tmp_path) as daemon, Store.open(tmp_path / "link.db") as store:
        second = Daemon(Configuration(), store)
        with pytest.raises(InputError) as raised:
            second.start()
        assert str(raised.value) == f"{store.name}: another daemon uses it, expected one daemon for each SQLite file"
        assert daemon.leads
        assert not second.leads
    with running(tmp_path) as daemon:
        assert daemon.leads


def test_a_file_of_two_names_is_refused_since_two_daemons_could_write_it(tmp_path: Path) -> None:
    with running(tmp_path, learned=False):
        (tmp_path / "other").mkdir()
        os.link(tmp_path / "metasched.db", tmp_path / "other" / "metasched.db")
        with pytest.raises(InputError, match="has 2 hard links, expected one"), running(tmp_path / "other"):
            pass
    (tmp_path / "other" / "metasched.db").unlink()
    with running(tmp_path) as daemon:
        assert daemon.leads


def test_nothing_is_restored_under_a_daemon_that_runs(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        backup(daemon.store, tmp_path / "b.db")
        with Store.open(daemon.store.name) as store, pytest.raises(InputError, match="a daemon runs on it"):
            restore(store, tmp_path / "b.db", replace=True)
    with Store.open(tmp_path / "metasched.db") as store:
        assert restore(store, tmp_path / "b.db", replace=True)["runs"] == 80


@pytest.mark.parametrize("words", [["runs", "forget", "--until", "2100-01-01"], ["history", "forget", "--user", "ada"]])
def test_nothing_is_forgotten_beside_a_daemon_that_would_store_it_again(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "metasched.db"
    with running(tmp_path):
        status, _, said = call(capsys, *words, "--database", path)
    assert (status, said) == (
        2, f"metasched: {path}: a daemon runs on it, expected --config or --url, so that the daemon forgets as well\n"
    )  # fmt: skip
    assert call(capsys, *words, "--database", path)[0] == 0


def test_the_lead_is_free_when_its_holder_is_killed(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path / "metasched.db"], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"True\n"
    with pytest.raises(InputError, match="another daemon"), running(tmp_path, learned=False):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait(60.0)
    with running(tmp_path, learned=False) as daemon:
        assert daemon.leads


def test_the_leader_is_named_until_another_leads(tmp_path: Path) -> None:
    with Store.open(tmp_path / "metasched.db") as store:
        first, second = Leadership(store.engine), Leadership(store.engine)
        first.name, second.name = "first", "second"
        assert first.leader() == ""
        assert first.note()
        assert (first.leader(), second.leader()) == ("first", "first")
        assert second.note()
        assert first.leader() == "second"
        assert second.note()
        assert (first.superseded(), second.superseded()) == (True, False)
        assert not first.note()  # another has led since
        assert second.leader() == "first"


def test_a_daemon_that_follows_takes_up_what_the_leader_has_stored_and_learned(tmp_path: Path) -> None:
    with running(tmp_path) as leader:
        now = leader.clock.now()
        # One that was not started leads nothing; on SQLite it may only read.
        follower = Daemon(leader.configuration, leader.store)
        follower.job_history.restore(rest=0.0)
        leader.writes.loads([Load(now, "e1", 0.25, 90.0)]).result()
        leader.mode.set("act", "root")
        leader.job_history.take("c", read_log(PAST))
        assert not follower.clusters.latest
        assert follower.models.predictor("cg", "east") is None
        follower.follow_loads()
        follower.follow()
        follower.job_history.follow(rest=0.0)
        assert follower.clusters.latest["e1"].available_cpu == 0.25
        assert follower.mode.mode == "act"
        predictor = follower.models.predictor("cg", "east")
        assert predictor is not None
        asked = Request(1000.0, 4, 0.5, 100.0)
        known = leader.models.predictor("cg", "east")
        assert known is not None
        assert predictor.predict(asked) == known.predict(asked)
        assert follower.job_history.predict("ada", 4, 7200.0, 2e6)["run_time"] > 0.0


def test_a_daemon_that_follows_leads_as_soon_as_the_lead_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metasched.service.daemon.SETTLED", 0.0)
    with running(tmp_path, learned=False) as leader:
        follower = Daemon(leader.configuration, leader.store)
        follower.look_after_lead()
        assert not follower.leads
        leader.leadership.release()
        follower.look_after_lead()
        assert follower.leads
        follower.stop()


def test_a_leader_that_is_cut_off_saves_nothing_over_what_the_next_one_has_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, learned=False) as leader:
        saved: list[str] = []
        monkeypatch.setattr(leader.queues, "save", lambda: saved.append("waits"))
        leader.save_waits()
        assert saved == ["waits"]
        with monkeypatch.context() as lost:
            lost.setattr(leader.leadership, "holds", lambda: False)
            lost.setattr(leader.leadership, "take", unreachable)
            with pytest.raises(StoreError):
                leader.look_after_lead()
            leader.stop()
        assert saved == ["waits"]


def unreachable() -> bool:
    raise StoreError("cannot be reached", where="site")


def test_a_daemon_that_leads_does_not_read_back_what_it_wrote_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, learned=False) as leader:
        read: list[str] = []
        monkeypatch.setattr(leader.models, "read", lambda: read.append("models"))
        monkeypatch.setattr(leader.mode, "read", lambda: read.append("mode"))
        monkeypatch.setattr(leader.views, "read_loads", lambda within: read.append("loads"))
        leader.follow()
        leader.follow_loads()
        assert read == []
