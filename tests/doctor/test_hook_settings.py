"""What is found of hooks.conf and of the jobs that an epilog keeps: whole findings, word for word."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from metasched.doctor.findings import Finding, User
from metasched.doctor.hook_settings import check_settings, deadline_of, read_settings, switched_off, undelivered
from metasched.doctor.slurm_conf import slurm_settings


class Someone(User):
    """A user who may do everything but what is listed, ``path rights``."""

    refused: frozenset[str] = frozenset()

    def may(self, path: str | os.PathLike[str], rights: str) -> str:
        """Why not, in a made-up line."""
        return f"no {rights} for {Path(path).name}" if f"{Path(path).name} {rights}" in self.refused else ""


def user(*refused: str) -> User:
    return type("Refused", (Someone,), {"refused": frozenset(refused)})("hookuser", 7, frozenset())


def test_those_of_slurm_are_read_without_comments_and_with_keys_in_small_letters(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_bytes(b"# Cluster = x\n Cluster = c8 # ours\n\nNodeName=a CPUs=4\nword\nodd = \xff\nEmpty=\n")
    assert slurm_settings(path) == {"cluster": "c8", "nodename": "a CPUs=4", "odd": "\ufffd", "empty": ""}
    assert slurm_settings(tmp_path / "none") is None
    assert slurm_settings(tmp_path) is None


def test_where_there_are_no_settings_nothing_is_read(tmp_path: Path) -> None:
    assert read_settings(tmp_path / "none") == read_settings(tmp_path) == {}


@pytest.mark.parametrize(("text", "seconds"), [(None, 0.2), ("0.5", 0.5), ("1", 1.0), ("-1", -1.0), ("", math.nan)])
def test_the_deadline_is_a_fifth_of_a_second_unless_it_is_set(text: str | None, seconds: float) -> None:
    assert deadline_of({} if text is None else {"deadline": text}) == pytest.approx(seconds, nan_ok=True)


def test_jobs_that_an_epilog_keeps_are_counted_by_their_names(tmp_path: Path) -> None:
    assert undelivered(tmp_path) == undelivered(tmp_path / "none") == ""
    (tmp_path / "start.1").touch()
    assert undelivered(tmp_path) == ""
    (tmp_path / "ended.1.refused").touch()
    assert undelivered(tmp_path) == f"1 job refused in {tmp_path}"
    for name in ("ended.2.json", "ended.3.json"):
        (tmp_path / name).touch()
    assert undelivered(tmp_path) == f"2 jobs not delivered, 1 job refused in {tmp_path}"
    (tmp_path / "ended.1.refused").unlink()
    assert undelivered(tmp_path) == f"2 jobs not delivered in {tmp_path}"


@pytest.mark.parametrize("named", [False, True])
def test_a_file_that_switches_hooks_off_is_found_beside_the_settings_or_where_they_say(
    named: bool, tmp_path: Path
) -> None:
    path, off = tmp_path / "hooks.conf", tmp_path / ("stop" if named else "metasched.off")
    conf = {"off": str(off)} if named else {}
    assert [*switched_off("c: x", path, conf)] == []
    off.touch()
    finding = Finding("c: x", "watch", f"{off} exists: all hooks are switched off", f"remove it: rm {off}")
    assert [*switched_off("c: x", path, conf)] == [finding]
    assert [*switched_off("c: x", path, {"off": str(tmp_path / "other")})] == []
    assert [*switched_off("c: x", path, {"off": ""})] == []


#: Lines beside the socket that is there, who may not do what, and what is found with what is to be done about it.
CASES = [
    ("cluster = c8\nsocket = {s}", (), []),
    ("socket = {s}", (), [("cluster = ", "cluster = c8, as in the daemon's configuration")]),
    ("cluster = d\nsocket = {s}", (), [("cluster = d", "cluster = c8, as in the daemon's configuration")]),
    ("cluster = c8\nsocket = {s}x", (), [("socket = {s}x", "socket = {s}")]),
    ("cluster = c8\nsocket = {s}", ("d.sock rw",),
     [("no rw for d.sock", "usermod -aG GROUP hookuser, GROUP being the socket's, and restart the scheduler")]),
    ("cluster = c8", (), [("neither socket nor token_file is set", "set one of them")]),
    ("cluster = c8\ntoken_file = {f}/token", (), []),
    ("cluster = c8\ntoken_file = {f}/token", ("token r",),
     [("no r for token", "make it readable by hookuser only")]),
    ("cluster = c8\nsocket = {s}\ntoken_file = {f}/token", ("token r",), []),
    *[(f"cluster = c8\nsocket = {{s}}\ndeadline = {good}", (), []) for good in ("0.001", "1", "2.0")],
    *[
        (f"cluster = c8\nsocket = {{s}}\ndeadline = {bad}", (),
         [(f"deadline = {bad}", "set at most 2 s, the scheduler waits")])
        for bad in ("0", "-0.5", "2.001", "soon")
    ],
    ("deadline = 3", (), [
        ("cluster = ", "cluster = c8, as in the daemon's configuration"),
        ("neither socket nor token_file is set", "set one of them"),
        ("deadline = 3", "set at most 2 s, the scheduler waits"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("lines", "refused", "problems"), CASES)
def test_every_line_of_the_settings_that_does_not_fit_is_found(
    lines: str, refused: tuple[str, ...], problems: list[tuple[str, str]], tmp_path: Path
) -> None:
    socket, path = tmp_path / "d.sock", tmp_path / "hooks.conf"
    socket.touch()
    path.write_text(lines.format(s=socket, f=tmp_path), encoding="utf-8")
    said = [(f"{path}: {found}".format(s=socket), remedy.format(s=socket)) for found, remedy in problems]
    expected = [Finding("c8: hooks.conf", "wrong", found, remedy) for found, remedy in said]
    conf = read_settings(path)
    milliseconds = round(1000 * float(conf.get("deadline", "0.2"))) if not problems else 0
    well = Finding("c8: hooks.conf", "well", f"{path}, deadline {milliseconds} ms")
    assert [*check_settings("c8", path, user(*refused), str(socket), "slurm")] == (expected or [well])


def test_a_socket_is_compared_by_where_it_leads_and_must_be_there(tmp_path: Path) -> None:
    socket, link, path = tmp_path / "d.sock", tmp_path / "link", tmp_path / "hooks.conf"
    link.symlink_to(socket)
    path.write_text(f"cluster = c8\nsocket = {link}\ncanary_users = a,b\n", encoding="utf-8")

    def found(configured: str | None) -> list[Finding]:
        return [*check_settings("c8", path, user(), configured, "slurm")]

    line, check = f"{path}: socket = {link}", "c8: hooks.conf"
    assert found(str(socket)) == [Finding(check, "wrong", f"{line} does not exist", "start the daemon")]
    assert found(None) == [Finding(check, "wrong", line, "socket = none: use address and token_file")]
    socket.touch()
    well = Finding(check, "well", f"{path}, deadline 200 ms, canary_users = a,b")
    assert found(str(socket)) == [well]
    off = tmp_path / "metasched.off"
    off.touch()
    stopped = Finding(check, "watch", f"{off} exists: all hooks are switched off", f"remove it: rm {off}")
    assert found(str(socket)) == [well, stopped]


def test_settings_that_the_hooks_user_may_not_read_are_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "hooks.conf"
    remedy = f"copy deploy/oar/hooks.conf to {tmp_path}, readable by hookuser"
    found = [*check_settings("c8", path, user("hooks.conf r"), None, "oar")]
    assert found == [Finding("c8: hooks.conf", "wrong", "no r for hooks.conf", remedy)]
