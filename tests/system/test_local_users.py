"""Users of this host ask the real daemon by its Unix socket: the system says who they are, no token does."""

from __future__ import annotations

import json
import os
import pwd
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import status_of
from other_user import as_user

from metasched.cli import main
from metasched.client.connection import ask
from metasched.records import InputError
from tests.service.daemons import CLUSTERS, learned_database
from tests.system.real_daemon import Daemon

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else"),
]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "home").mkdir()
        (folder / "home").chmod(0o777)
        (folder / "metasched.db").write_bytes(learned_database())
        (folder / "clusters.toml").write_text(CLUSTERS)
        daemon = Daemon(folder, 'clusters = "clusters.toml"')
        daemon.start()
        for user in ("nobody", "daemon"):
            ask = {"application": "cg", "problem_size": 900, "user": str(pwd.getpwnam(user).pw_uid)}
            placed = daemon.ask("POST", "/v1/placements", ask)["id"]
            end = time.time() - 1.0
            job = {"scheduler": "cluster east", "job": user, "user": ask["user"], "nodes": "e1", "start": end - 9.0}
            job |= {"end": end, "comment": f"metasched:app=cg,n=900,p=1,placement={placed}"}
            assert daemon.ask("POST", "/v1/jobs", job)["stored"]
        yield daemon
        daemon.stop()


def said_by(user: str, daemon: Daemon, *words: str) -> tuple[int, str, str]:
    """What the command line tells a user without any file of their own."""
    home = str(daemon.folder / "home")
    environment = {"HOME": home, "XDG_DATA_HOME": home, "METASCHED_TOKEN": ""}
    environment |= {"METASCHED_CONFIG": str(daemon.folder / "metasched.toml")}
    return as_user(pwd.getpwnam(user).pw_uid, lambda: main([*words]), environment=environment)


@pytest.fixture(scope="module")
def verbs(daemon: Daemon) -> dict[str, tuple[str, ...]]:
    """Some verbs, tried once as root, so that all that they need is in memory."""
    cg = ("--application", "cg", "--problem-size", "900")
    made = {
        "runs": ("runs", "--json", "--config", str(daemon.folder / "metasched.toml"), "--url", daemon.socket),
        "rank": ("rank", *cg, "--top", "2", "--json", "--url", daemon.socket),
        "walltime": ("walltime", *cg, "--processors", "2", "--json", "--config", f"{daemon.folder}/metasched.toml"),
    }
    for words in made.values():
        assert status_of(*words) == 0
    return made


def test_a_user_sees_their_own_runs_and_the_daemons_models(daemon: Daemon, verbs: dict[str, tuple[str, ...]]) -> None:
    status, out, err = said_by("nobody", daemon, "runs", "--json")
    assert (status, err) == (0, "")
    assert len(json.loads(out)["runs"]) == 1
    status, out, err = said_by("nobody", daemon, *verbs["rank"][:-2])
    assert (status, err) == (0, "")
    assert len(json.loads(out)["placements"]) == 2
    status, out, err = said_by("nobody", daemon, *verbs["walltime"][:-2])
    assert (status, err) == (0, "")
    assert {each["cluster"] for each in json.loads(out)["clusters"]} >= {"east", "west"}


def test_a_user_may_place_nobody_and_sets_no_mode(daemon: Daemon) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid

    def try_all() -> None:
        for method, path, said in (
            ("POST", "placements", {"application": "cg", "problem_size": 9}),
            ("PUT", "mode", {"mode": "act"}),
        ):
            try:
                ask(daemon.socket, method, f"/v1/{path}", said)
            except InputError as error:
                print(error)
        print([each["question"]["user"] for each in ask(daemon.socket, "GET", "/v1/placements")], flush=True)

    ask(daemon.socket, "GET", "/v1/health")
    status, out, err = as_user(nobody, try_all)
    assert (status, err) == (0, "")
    assert out.count("the role reader may") == 2
    assert out.splitlines()[-1] == f"['{nobody}']"
