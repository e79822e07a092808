"""A server that answers a few callers at a time hangs up on one more, and answers again once one has left."""

from __future__ import annotations

import socket
import socketserver
import threading
from typing import Any

import pytest
from waiting import until

from monitors.few_callers import FewCallers


class Holding(socketserver.BaseRequestHandler):
    """Greets a caller, and waits until it hangs up."""

    server: FewCallers

    def handle(self) -> None:
        self.request.sendall(b"welcome")
        self.request.recv(1)


class Believing(Holding):
    """Takes every caller for one that it knows."""

    def handle(self) -> None:
        self.server.know(self.request)
        super().handle()


class Server(FewCallers, socketserver.TCPServer):
    """One whose callers stay."""


def greeted(caller: socket.socket) -> bool:
    caller.settimeout(60.0)
    return caller.recv(7) == b"welcome"


def call(server: Server, own: int = 1) -> socket.socket:
    """A caller from an address of its own of this host."""
    return socket.create_connection(server.server_address[:2], timeout=60.0, source_address=(f"127.0.0.{own}", 0))


def call_until_answered(server: Server, own: int, callers: list[socket.socket]) -> None:
    """Call from an address again and again; the calls are added to the others."""

    def answered() -> bool:
        callers.append(call(server, own))
        return greeted(callers[-1])

    until(answered)


def test_eight_callers_are_answered_a_ninth_is_not_and_the_next_is_when_one_has_left() -> None:
    with Server(("127.0.0.1", 0), Believing) as server:
        server.start()
        callers = [call(server, own) for own in (1, 1, 1, 1, 2, 2, 2, 3)]
        assert all(map(greeted, callers))
        with call(server, 4) as ninth:
            assert not greeted(ninth)
        callers.pop().close()
        call_until_answered(server, 4, callers)
        for caller in callers:
            caller.close()
        server.shutdown()


def test_one_host_that_says_nothing_leaves_room_for_others() -> None:
    with Server(("127.0.0.1", 0), Holding) as server:
        server.start()
        silent = [call(server) for _ in range(20)]
        with call(server, 2) as other:
            assert greeted(other)
        answered = [greeted(each) for each in silent]
        assert sum(answered) == 4
        silent.pop(answered.index(True)).close()
        call_until_answered(server, 1, silent)
        for each in silent:
            each.close()
        server.shutdown()


def test_strangers_of_two_hosts_leave_room_for_a_third_however_often_they_come_again() -> None:
    with Server(("127.0.0.1", 0), Holding) as server:
        server.start()
        silent = [call(server, own) for own in (1, 2) for _ in range(4)]
        assert all(map(greeted, silent))
        others = []
        for _ in range(2):
            others.append(call(server, 3))
            assert greeted(others[-1])
            silent += [call(server, own) for own in (1, 2) for _ in range(10)]
        # The one that was there longest had to go, of each host, and no other since: the share of each is even.
        assert [each.recv(1) for each in (silent[0], silent[4])] == [b"", b""]
        silent += [call(server, own) for own in (1, 2) for _ in range(10)]
        assert not any(map(greeted, silent[8:]))
        for other in others:
            other.settimeout(0.2)
            with pytest.raises(TimeoutError):
                other.recv(1)
        for each in (*silent, *others):
            each.close()
        server.shutdown()


def test_strangers_of_as_many_hosts_as_there_are_places_keep_them() -> None:
    with Server(("127.0.0.1", 0), Holding) as server:
        server.start()
        callers = [call(server, own) for own in range(1, 9)]
        assert all(map(greeted, callers))
        with call(server, 9) as ninth:
            assert not greeted(ninth)
        callers.pop(3).close()
        call_until_answered(server, 9, callers)
        for each in callers:
            each.close()
        server.shutdown()


def test_a_caller_for_whom_there_is_no_thread_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise nobody would be answered after a few such callers."""

    def none(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    with Server(("127.0.0.1", 0), Holding) as server:
        with monkeypatch.context() as patched:
            patched.setattr(socketserver.ThreadingMixIn, "process_request", none)
            for _ in range(20):
                with pytest.raises(RuntimeError, match="thread"):
                    server.process_request(None, ("127.0.0.1", 5))
        callers = [call(server) for _ in range(4)]
        server.start()
        assert all(map(greeted, callers))
        for caller in callers:
            caller.close()
        server.shutdown()


def test_each_caller_has_a_thread_that_ends_with_the_process() -> None:
    assert (Server.allow_reuse_address, Server.daemon_threads) == (True, True)
    seen = threading.Event()
    found: list[bool] = []

    class Noting(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            found.append(threading.current_thread().daemon)
            seen.set()

    with Server(("127.0.0.1", 0), Noting) as server:
        server.start()
        with socket.create_connection(server.server_address[:2], timeout=60.0):
            assert seen.wait(60.0)
        server.shutdown()
    assert found == [True]
