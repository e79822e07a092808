"""The lead of a database in a file, and the placements in it, beside plain lists of them."""

from __future__ import annotations

import os
import socket
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from other_user import as_user
from sqlalchemy import text

from metasched.advised_placements import AdvisedPlacement, Answer, Ask, Outcome
from metasched.records import InputError
from metasched.store.database.engine import connect
from metasched.store.database.leadership import Leadership, led
from metasched.store.database.store import Store
from metasched.store.errors import StoreError


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "site.db") as found:
        yield found


def test_one_of_several_leads_until_it_gives_up(store: Store, tmp_path: Path) -> None:
    one, other = Leadership(store.engine), Leadership(store.engine)
    assert [one.take(), other.take(), one.shared, one.holds(), other.holds()] == [True, False, False, True, True]
    assert (tmp_path / "site.db-leader").stat().st_mode & 0o777 == 0o640 & ~_mask()
    one.release()
    one.release()
    assert other.take()
    other.release()


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_lead_is_of_the_file_whatever_link_leads_to_it(store: Store, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "site.db")
    with Store.open(tmp_path / "link.db") as linked, led(store.engine):
        assert not Leadership(linked.engine).take()
    assert not (tmp_path / "link.db-leader").exists()


def test_databases_in_memory_have_no_file_to_lock() -> None:
    with Store.open(":memory:") as one:
        assert [Leadership(one.engine).take() for _ in range(2)] == [True, True]
    assert not Path(":memory:-leader").exists()


def test_a_lock_that_cannot_be_made_is_told_and_one_that_only_root_may_write_is_used(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "site.db-leader"
    path.mkdir()
    with pytest.raises(StoreError) as refusal:
        Leadership(store.engine).take()
    assert str(refusal.value) == f"{path}: cannot be locked: is a directory"
    path.rmdir()
    path.touch()
    opened, really = [], os.open

    def only_read(name: str, flags: int, *mode: int) -> int:
        opened.append(flags & os.O_ACCMODE)
        if flags & os.O_ACCMODE != os.O_RDONLY:
            raise PermissionError("denied")
        return really(name, flags, *mode)

    monkeypatch.setattr(os, "open", only_read)
    monkeypatch.setattr(os, "geteuid", lambda: 1234)
    lead = Leadership(store.engine)
    assert lead.take()
    monkeypatch.undo()
    assert opened == [os.O_RDWR, os.O_RDONLY]
    assert not Leadership(store.engine).take()
    lead.release()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_lock_that_root_made_is_the_daemons_and_one_that_it_may_not_read_is_told() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 4321, 4321)
        lead = Leadership(connect(f"{folder}/site.db", 1.0))
        before = os.umask(0o077)
        assert lead.take()
        os.umask(before)
        lead.release()
        assert as_user(4321, lead.take) == (0, "", "")
        os.chown(f"{folder}/site.db-leader", 0, 0)
        status, _, said = as_user(4321, lead.take)
        assert status == 70
        assert said.startswith("StoreError(")
        assert "site.db-leader: cannot be locked: permission denied" in said


def test_leaders_are_noted_one_after_the_other_and_only_the_latest_is_kept(store: Store) -> None:
    one, other = Leadership(store.engine), Leadership(store.engine)
    one.name, other.name = "one", "other"
    assert one.leader() == ""
    assert [one.note(), one.note(), other.note(), one.note(), one.note()] == [True, True, True, False, True]
    assert one.leader() == other.leader() == "one"
    with store.engine.connect() as connection:
        assert connection.execute(text("SELECT number, name FROM leaders")).all() == [(5, "one")]
    assert Leadership(store.engine).name == f"{socket.gethostname()}, process {os.getpid()}"


def test_what_no_daemon_may_see_by_halves_is_refused_while_one_runs_and_releases_what_it_took(store: Store) -> None:
    with led(store.engine), pytest.raises(InputError) as refusal, led(store.engine):
        pass
    assert str(refusal.value) == f"{store.name}: a daemon runs on it, expected it to be stopped first"
    with pytest.raises(LookupError), led(store.engine):
        raise LookupError
    lead = Leadership(store.engine)
    assert lead.take()
    lead.release()


def test_a_file_is_logged_ahead_from_its_first_opening_on(store: Store, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "site.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def advised(number: int) -> AdvisedPlacement:
    answer = Answer(id=f"{number:032x}", mode="shadow", steer="nodes", placed=False, message="none")
    user = ("ann", "bob", "")[number % 3]
    outcome = Outcome("c", "p", ("n1",), 1, 10.0, 0) if number % 4 == 0 else None
    return AdvisedPlacement(10.0 * number, Ask(application="cg", problem_size=1.0, user=user), answer, outcome)


@pytest.mark.parametrize("settled", [None, True, False])
@pytest.mark.parametrize("users", [None, ("ann",), ("bob", ""), ()])
@pytest.mark.parametrize("limit", [1, 5, 100])
def test_the_newest_placements_are_those_of_a_list(
    settled: bool | None, users: tuple[str, ...] | None, limit: int, store: Store
) -> None:
    every = [advised(number) for number in range(24)]
    store.placements.add(every[::2])
    store.placements.add(every[1::2])
    store.placements.add([])
    expected = [
        each
        for each in reversed(every)
        if (settled is None or (each.outcome is not None) is settled) and (users is None or each.question.user in users)
    ]
    assert list(store.placements.recent(limit, settled=settled, users=users)) == expected[:limit]


def test_placements_that_come_again_are_stored_once_and_keep_their_outcome(store: Store) -> None:
    every = [advised(number) for number in range(4)]
    store.placements.add(every[:3])
    store.placements.add([replace(every[0], outcome=None), *every[1:]])
    assert list(store.placements.recent()) == every[::-1]


def test_placements_are_found_by_their_id_and_the_time_when_they_were_made(store: Store) -> None:
    every = [advised(number) for number in range(24)]
    store.placements.add(reversed(every))
    assert list(store.placements.made_between(50.0, 120.0)) == every[5:12]
    assert store.placements.find(every[7].uid) == every[7]
    assert store.placements.find("nobody") is None
    assert len(store.placements.recent()) == 24


def test_an_outcome_is_stored_once(store: Store) -> None:
    known = advised(1)
    store.placements.add([known])
    outcome = Outcome("c", "p", ("n1",), 1, 10.0, 0)
    said = [store.placements.settle(uid, outcome) for uid in (known.uid, known.uid, "nobody")]
    assert said == [True, False, False]
    assert store.placements.find(known.uid) == replace(known, outcome=outcome)
