"""The doctor finds what is wrong on Grid Engine's side, one thing at a time; qconf prints what it is told to."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployed_files import copy_deployed

from metasched.doctor.findings import User
from metasched.doctor.grid_engine import check_grid_engine
from metasched.doctor.hook_settings import TELL
from tests.doctor.test_doctor import answer


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The hooks as they should be, a daemon that answers, and a cell that calls them."""
    copy_deployed(tmp_path, "gridengine", "hooks")
    (tmp_path / "state").mkdir()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "d.sock"))
    listening.listen()
    threading.Thread(target=answer, args=(listening,), daemon=True).start()
    hooks(tmp_path)
    answers = f"-sql) echo long short;; -sq) cat {tmp_path}/$2;; *) cat {tmp_path}/conf;;"
    (tmp_path / "qconf").write_text(f"#!/bin/sh\ncase $1 in {answers} esac\n")
    for queue in ("long", "short"):
        (tmp_path / queue).write_text(f"qname {queue}\nepilog NONE\n")
    (tmp_path / "qconf").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    configured(tmp_path)
    yield tmp_path
    listening.close()


def hooks(folder: Path, **changed: str) -> None:
    every = {"socket": f"{folder}/d.sock", "cluster": "cell", "state": f"{folder}/state"} | changed
    (folder / "hooks.conf").write_text("".join(f"{key} = {value}\n" for key, value in every.items()))


def configured(folder: Path, **changed: str) -> None:
    own = {"jsv_url": f"script:{folder}/metasched-jsv", "epilog": f"root@{folder}/metasched-epilog"} | changed
    (folder / "conf").write_text("#global:\n" + "".join(f"{key:28} {value}\n" for key, value in own.items()))


def wrong(folder: Path) -> dict[str, str]:
    every = check_grid_engine("cell", "", "", f"{folder}/d.sock")
    return {each.check.removeprefix("cell: "): each.found for each in every if each.state != "well"}


def findings(folder: Path, socket: str | None = "d.sock") -> list[tuple[str, str, str, str]]:
    """All that is found, with the folder's path left out."""
    every = check_grid_engine("cell", "", "", None if socket is None else f"{folder}/{socket}")
    return [(each.check, each.state, *(said.replace(f"{folder}/", "") for said in (each.found, each.remedy)))
            for each in every]  # fmt: skip


MASTER = ("cell: master", "well", "answers", "")
VERIFIER = ("cell: verifier", "well", "metasched-jsv runs", "")
EPILOG = ("cell: epilog", "well", "metasched-epilog runs", "")
SETTINGS = ("cell: hooks.conf", "well", "hooks.conf, deadline 200 ms", "")


def test_where_all_is_well_it_says_so(folder: Path) -> None:
    assert findings(folder) == [MASTER, VERIFIER, EPILOG, SETTINGS]


def test_a_hook_that_is_not_called_is_found_with_what_calls_it(folder: Path) -> None:
    configured(folder, jsv_url="none", epilog="/site/own epilog")
    place = "/etc/gridengine/metasched/metasched"
    assert findings(folder) == [
        MASTER,
        ("cell: verifier", "wrong", "jsv_url is none", f"qconf -mconf: jsv_url script:{place}-jsv"),
        ("cell: epilog", "wrong", "epilog is '/site/own epilog'", f"qconf -mconf: epilog root@{place}-epilog"),
    ]


@pytest.mark.parametrize(
    ("changed", "socket", "problems"),
    [
        ({"cluster": "other"}, "d.sock", [("cluster = other", "cluster = cell, as in the daemon's configuration")]),
        ({"socket": "/other.sock"}, "d.sock", [("socket = /other.sock", "socket = d.sock")]),
        ({"deadline": "soon"}, "d.sock", [("deadline = soon", "set at most 2 s, the scheduler waits")]),
        ({"socket": "none.sock"}, "none.sock", [("socket = none.sock does not exist", "start the daemon")]),
    ],
)
def test_settings_that_do_not_fit_are_found_once_for_hooks_in_one_folder(
    changed: dict[str, str], socket: str | None, problems: list[tuple[str, str]], folder: Path
) -> None:
    hooks(folder, **{key: value.replace("none.sock", f"{folder}/none.sock") for key, value in changed.items()})
    found = [each for each in findings(folder, socket) if each[0] == "cell: hooks.conf"]
    assert [(state, said, remedy) for _, state, said, remedy in found] == [
        ("wrong", f"hooks.conf: {said}", remedy) for said, remedy in problems
    ]


def test_settings_that_are_missing_and_hooks_that_may_not_run_are_found(folder: Path) -> None:
    (folder / "metasched-jsv").chmod(0o600)
    (folder / "hooks.conf").unlink()
    found = findings(folder)
    assert found[1][:2] == ("cell: verifier", "wrong")
    assert found[1][2].startswith("metasched-jsv does not allow ")
    assert found[1][3] == "chmod 0755 metasched-jsv"
    user = User.named(str(os.geteuid())).name
    remedy = f"copy deploy/gridengine/hooks.conf to {folder}, readable by {user}"
    assert found[3] == ("cell: hooks.conf", "wrong", "hooks.conf: no such file or directory", remedy)


def test_a_hook_that_fails_is_found_with_how_to_run_it(folder: Path) -> None:
    (folder / "metasched-jsv").write_text("#!/bin/sh\necho 'no module' >&2\nexit 4\n")
    _, found, *_ = findings(folder)
    user = User.named(str(os.geteuid())).name
    assert found == ("cell: verifier", "wrong", "metasched-jsv fails with status 4: no module",
                     f"run it as {user}: metasched-jsv --check")  # fmt: skip


def test_only_the_epilog_keeps_jobs_that_are_not_delivered(folder: Path) -> None:
    (folder / "state" / "ended.7.json").touch()
    line = "1 job not delivered in state"
    assert [each for each in findings(folder) if each[1] == "watch"] == [
        ("cell: undelivered jobs", "watch", line, TELL)
    ]


def test_a_master_or_queues_that_do_not_answer_end_what_depends_on_them(folder: Path) -> None:
    (folder / "qconf").write_text("#!/bin/sh\ncase $1 in -sq*) exit 1;; *) cat " + f"{folder}/conf;; esac\n")
    found = findings(folder)
    assert [each[:2] for each in found] == [("cell: master", "well"), ("cell: verifier", "well"),
                                            ("cell: queues", "wrong"), SETTINGS[:2]]  # fmt: skip
    assert found[2][3] == "start sge_qmaster"
    (folder / "qconf").write_text("#!/bin/sh\nexit 1\n")
    ((check, state, _, remedy),) = findings(folder)
    assert (check, state, remedy) == (
        "cell: master", "wrong", "start sge_qmaster, see root and cell in [[grid_engine]]",
    )  # fmt: skip


def test_a_cell_that_does_not_answer_or_call_a_hook_is_found(folder: Path) -> None:
    configured(folder, jsv_url="none", epilog="/site/own-epilog")
    assert wrong(folder) == {"verifier": "jsv_url is none", "epilog": "epilog is /site/own-epilog"}
    (folder / "qconf").write_text("#!/bin/sh\necho 'unable to contact qmaster' >&2\nexit 1\n")
    assert "unable to contact qmaster" in wrong(folder)["master"]


def test_hooks_that_are_switched_off_are_to_be_watched(folder: Path) -> None:
    (folder / "metasched.off").touch()
    switched_off = f"{folder}/metasched.off exists: all hooks are switched off"
    assert wrong(folder) == {"hooks.conf": switched_off}


def test_queues_whose_epilog_is_not_ours_are_found(folder: Path) -> None:
    configured(folder, epilog="none")
    (folder / "long").write_text(f"qname long\nepilog root@{folder}/metasched-epilog --beside /site/epilog\n")
    assert findings(folder)[2] == (
        "cell: queues", "watch", "no epilog of metasched in short", "metasched setup gridengine --everywhere",
    )  # fmt: skip
    assert wrong(folder) == {"queues": "no epilog of metasched in short"}
    (folder / "short").write_text((folder / "long").read_text())
    assert wrong(folder) == {}


def test_a_hook_that_may_not_run_or_is_not_there_is_found(folder: Path) -> None:
    (folder / "metasched-epilog").chmod(0o644)
    (folder / "metasched-jsv").unlink()
    assert set(wrong(folder)) == {"verifier", "epilog"}


def test_a_hook_that_does_not_reach_the_daemon_or_keep_jobs_is_found(folder: Path) -> None:
    hooks(folder, state=f"{folder}/nowhere")
    assert set(wrong(folder)) == {"verifier", "epilog"}
    hooks(folder, address="127.0.0.1:1", socket=f"{folder}/other.sock")
    assert {"verifier", "epilog", "hooks.conf"} <= set(wrong(folder))


def test_a_verifier_of_the_site_that_cannot_be_run_is_found(folder: Path) -> None:
    (folder / "site-verifier").write_text(f"{folder}/site-jsv\n")
    assert f"{folder}/site-jsv, the verifier of the site, cannot be run" in wrong(folder)["verifier"]
    shutil.copy(folder / "metasched-jsv", folder / "site-jsv")
    assert wrong(folder) == {}


@pytest.mark.parametrize("changed", [{"cluster": "other"}, {"deadline": "10"}, {"deadline": "soon"}], ids=str)
def test_settings_that_do_not_fit_are_found(changed: dict[str, str], folder: Path) -> None:
    hooks(folder, **changed)
    found = wrong(folder)
    assert set(found) == {"hooks.conf"}
    assert next(iter(changed.values())) in found["hooks.conf"]


def test_jobs_that_are_kept_are_counted(folder: Path) -> None:
    for name in ("ended.1.0.json", "ended.2.0.refused"):
        (folder / "state" / name).write_text("{}")
    assert "1 job not delivered, 1 job refused in" in wrong(folder)["undelivered jobs"]
