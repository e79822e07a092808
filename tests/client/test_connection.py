"""Where the command line asks the daemon."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from metasched.client.connection import address_of
from metasched.service.configuration import Listen


def test_the_socket_is_used_where_there_is_one(tmp_path: Path) -> None:
    assert address_of(Listen()) == "http://127.0.0.1:8765"
    assert address_of(Listen(host="::1", certificate="c", key="k")) == "https://[::1]:8765"
    # One that is not there is named, so that whoever reads the complaint knows that the daemon is down.
    path = str(tmp_path / "d.sock")
    assert address_of(Listen(socket=path)) == path
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)
        assert address_of(Listen(socket=path)) == path


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become somebody else")
def test_whom_the_socket_is_closed_to_asks_at_the_address(tmp_path: Path) -> None:
    path = tmp_path / "d.sock"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
        path.chmod(0o660)
        for above in tmp_path.parents:
            if above.owner() == "root" and not above.stat().st_mode & 0o001:
                above.chmod(above.stat().st_mode | 0o001)
        tmp_path.chmod(0o755)
        child = os.fork()
        if child == 0:  # os.access looks at the real user, which cannot be changed back
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                os._exit(0 if address_of(Listen(socket=str(path))) == "http://127.0.0.1:8765" else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
