"""Users of other hosts prove who they are to the real daemon by the real munged: no token is made for them."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from other_user import as_user

from metasched.client.connection import ask
from metasched.records import InputError
from monitors.http_exchange import exchange
from tests.free_ports import free_port
from tests.service.daemons import CLUSTERS, learned_database
from tests.system.real_daemon import Daemon

MUNGED = shutil.which("munged", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.getuid() != 0 or not MUNGED, reason="needs Debian's munge, and root to be others"),
]
NOBODY = pwd.getpwnam("nobody").pw_uid


@dataclass
class Site:
    """A daemon that accepts credentials, its address, and the folder of munged's socket and of users' commands."""

    daemon: Daemon
    url: str
    folder: Path

    def credential(self, request: str, *words: str, munge: str = "munge.sock") -> str:
        """A credential of root's for a request."""
        made = ["munge", f"--socket={self.folder / munge}", f"--string={request}", *words]
        return subprocess.run(made, capture_output=True, text=True, check=True).stdout.strip()

    def status(self, credential: str, path: str = "/v1/placements", method: str = "GET") -> int:
        """What the daemon answers."""
        head, body = {"Authorization": f"MUNGE {credential}"}, None if method == "GET" else {}
        return exchange(self.url, method, path, body, headers=head, ends=time.monotonic() + 30).status

    def as_nobody(self, method: str, path: str, document: object = None) -> tuple[int, str, str]:
        """What a user without a token is answered who asks the daemon's port."""

        def try_it() -> None:
            try:
                print(ask(self.url, method, path, document), flush=True)
            except InputError as error:
                print(error, flush=True)

        return as_user(NOBODY, try_it, environment={"PATH": f"{self.folder}:{os.environ['PATH']}"})


def munged(folder: Path, name: str, key: bytes) -> None:
    (folder / f"{name}.key").write_bytes(key)
    (folder / f"{name}.key").chmod(0o400)
    names = {"key-file": "key", "socket": "sock", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    words = [f"--{option}={folder / name}.{end}" for option, end in names.items()]
    subprocess.run([str(MUNGED), "--force", *words], check=True, timeout=60)


def end(folder: Path, name: str) -> None:
    os.kill(int((folder / f"{name}.pid").read_text()), signal.SIGTERM)
    for _ in range(100):
        if not (folder / f"{name}.pid").exists():
            return
        time.sleep(0.1)
    raise AssertionError("munged does not end")


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        munged(folder, "munge", secrets.token_bytes(1024))
        munged(folder, "other", secrets.token_bytes(1024))
        command = folder / "munge"
        command.write_text(f'#!/bin/sh\nexec {shutil.which("munge")} --socket={folder}/munge.sock "$@"\n')
        command.chmod(0o755)
        (folder / "metasched.db").write_bytes(learned_database())
        (folder / "clusters.toml").write_text(CLUSTERS)
        port = free_port()
        table = f'clusters = "clusters.toml"\n[authentication.munge]\nsocket = "{folder}/munge.sock"\n'
        daemon = Daemon(folder, table, port=port)
        daemon.start()
        for user in (NOBODY, 4711):
            daemon.ask("POST", "/v1/placements", {"application": "cg", "problem_size": 900, "user": f"{user}"})
        try:
            yield Site(daemon, f"http://127.0.0.1:{port}", folder)
        finally:
            daemon.stop()
            end(folder, "munge")
            end(folder, "other")


def test_a_user_of_another_host_sees_their_own_jobs_and_may_no_more(site: Site) -> None:
    status, out, err = site.as_nobody("GET", "/v1/placements?limit=9")
    assert (status, err) == (0, "")
    assert out.count("'question'") == out.count(f"'user': '{NOBODY}'") == 1
    placement = {"application": "x", "problem_size": 9}
    for question in (("PUT", "/v1/mode", {"mode": "act"}), ("POST", "/v1/placements", placement)):
        assert "the role reader may" in site.as_nobody(*question)[1]


def test_root_of_another_host_is_a_user_like_others(site: Site) -> None:
    assert site.status(site.credential("metasched GET /v1/placements")) == 200
    assert site.status(site.credential("metasched POST /v1/jobs"), "/v1/jobs", "POST") == 403


def test_a_credential_counts_once_for_its_request_and_for_a_minute(site: Site) -> None:
    once = site.credential("metasched GET /v1/placements")
    assert [site.status(once) for _ in range(3)] == [200, 401, 401]
    refused: Sequence[tuple[str, str, str]] = [
        (site.credential("metasched GET /v1/runs"), "/v1/placements", "GET"),
        (site.credential("metasched GET /v1/placements"), "/v1/placements?limit=5", "GET"),
        (site.credential("metasched GET /v1/placements"), "/v1/mode", "PUT"),
        (site.credential(""), "/v1/placements", "GET"),
        (site.credential("metasched GET /v1/placements", munge="other.sock"), "/v1/placements", "GET"),
        (site.credential("metasched GET /v1/placements", f"--restrict-uid={NOBODY}"), "/v1/placements", "GET"),
        ("MUNGE:x:", "/v1/placements", "GET"),
        ("", "/v1/placements", "GET"),
        ("A" * 9000, "/v1/placements", "GET"),
    ]
    assert [site.status(*each) for each in refused] == [401] * 9
    short = site.credential("metasched GET /v1/placements", "--ttl=1")
    time.sleep(3.0)
    assert site.status(short) == 401


def test_a_credential_seen_before_munged_was_started_anew_counts_for_nothing(site: Site) -> None:
    once = site.credential("metasched GET /v1/placements")
    assert site.status(once) == 200
    key = (site.folder / "munge.key").read_bytes()
    end(site.folder, "munge")
    (site.folder / "munge.key").unlink()
    munged(site.folder, "munge", key)
    assert site.status(once) == 401
    assert site.status(site.credential("metasched GET /v1/placements")) == 200
