"""The system says who is at the other end of a Unix socket."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from other_user import as_user

from metasched.service.api.slow_clients import peer_of


def test_a_peer_is_known_by_its_user_and_its_groups() -> None:
    one, other = socket.socketpair()
    with one, other:
        found = peer_of(one)
    assert found.user == os.getuid()
    assert found.groups == {os.getgid(), *os.getgroups()}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_user_with_many_groups_is_known(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents[:3]:  # a worker of xdist has a folder more
        parent.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{tmp_path}/s")
        (tmp_path / "s").chmod(0o666)
        listening.listen()
        groups = [*range(5000, 5200)]

        def connect() -> None:
            with socket.socket(socket.AF_UNIX) as made:
                made.connect(f"{tmp_path}/s")

        assert as_user(65534, connect, groups=groups)[0] == 0
        made, _ = listening.accept()
        with made:
            found = peer_of(made)
    assert (found.user, found.groups) == (65534, {65534, *groups})
