"""A host is reached within a deadline, or not at all, whatever looks up its name."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from waiting import until

from monitors import reached_hosts
from monitors.http_exchange import exchange
from monitors.reached_hosts import reached
from monitors.sensors.network.channel import Channel

real = socket.getaddrinfo


class Names:
    """A resolver that says nothing until it is let."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.let = threading.Event()

    def __call__(self, host: str, port: int, *further: Any, **how: Any) -> Any:
        self.asked.append(host)
        self.let.wait()
        if host.startswith("unknown"):
            raise socket.gaierror(f"no {host}")
        return real("127.0.0.1", port, *further, **how)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    slow = Names()
    monkeypatch.setattr(socket, "getaddrinfo", slow)
    yield slow
    slow.let.set()
    until(lambda: not reached_hosts._asked)


def test_a_name_that_is_not_looked_up_in_time_is_given_up_by_all_who_ask(names: Names) -> None:
    with pytest.raises(TimeoutError, match="the name slow was not looked up in time"):
        reached("slow", 80, time.monotonic() + 0.05)
    with pytest.raises(TimeoutError):
        exchange("http://slow/", "GET", headers={}, ends=time.monotonic() + 0.05)
    with pytest.raises(TimeoutError):
        Channel.call("slow", 80, b"sixteen bytes of secret", timeout=0.05)
    with pytest.raises(TimeoutError):
        reached("slow", 81, time.monotonic() + 0.05)
    assert names.asked == ["slow"] * 2  # once for each port


def test_whoever_waits_for_a_name_has_the_answer_and_the_next_one_asks_again(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking: list[float] = []
    monkeypatch.setattr(reached_hosts, "time_left", lambda ends: asking.append(ends) or 60.0)
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(4) as pool:
        port = listening.getsockname()[1]
        waiting = [pool.submit(reached, host, port, time.monotonic() + 60.0) for host in 2 * ["slow", "unknown"]]
        until(lambda: len(asking) == 4)
        names.let.set()
        for found in waiting[::2]:
            found.result().close()
        for found in waiting[1::2]:
            with pytest.raises(socket.gaierror):
                found.result()
        until(lambda: not reached_hosts._asked)
        reached("slow", port, time.monotonic() + 60.0).close()
    assert sorted(names.asked) == ["slow", "slow", "unknown"]


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_no_thread_is_begun_for_an_address(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "Thread", None)
    with pytest.raises(OSError):
        reached(host, 1, time.monotonic() + 60.0)
