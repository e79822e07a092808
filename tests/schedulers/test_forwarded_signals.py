"""Which signals a job is handed, and when: those that its terminal has sent it already are not sent twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from metasched.schedulers import forwarded_signals
from metasched.schedulers.forwarded_signals import forwarding

SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@pytest.fixture(autouse=True)
def heeded() -> Iterator[None]:
    """No signal is ignored, as some are in what a shell runs in the background."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The signals that are sent from now on, each with the process that it is sent to."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    return sent


@pytest.mark.parametrize(("foreground", "forwarded"), [(True, SIGNALS[2:]), (False, SIGNALS)])
def test_what_a_terminal_sends_to_all_its_processes_is_not_sent_again(
    foreground: bool, forwarded: tuple[int, ...], killed: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarded_signals, "_in_foreground", lambda: foreground)
    with forwarding() as (adopt, _):
        adopt(77)
        for number in (*SIGNALS, signal.SIGCHLD):
            signal.raise_signal(number)
    assert killed == [(77, number) for number in forwarded]


def test_signals_before_there_is_a_job_reach_it_in_their_order(
    killed: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The terminal cannot have sent them to a process that was not there."""
    monkeypatch.setattr(forwarded_signals, "_in_foreground", lambda: True)
    with forwarding() as (adopt, _):
        for number in (signal.SIGUSR2, signal.SIGINT, signal.SIGCHLD):
            signal.raise_signal(number)
        assert killed == []
        adopt(77)
    assert killed == [(77, signal.SIGUSR2), (77, signal.SIGINT)]


def test_afterwards_all_is_as_it_was(killed: list[tuple[int, int]]) -> None:
    numbers = (*SIGNALS, signal.SIGCHLD)
    before, files = [signal.getsignal(number) for number in numbers], os.listdir("/proc/self/fd")
    with forwarding():
        assert all(signal.getsignal(number) is not was for number, was in zip(numbers, before, strict=True))
    assert [signal.getsignal(number) for number in numbers] == before
    assert set(os.listdir("/proc/self/fd")) <= set(files)
    assert signal.set_wakeup_fd(-1) == -1
    assert killed == []


@pytest.mark.parametrize(
    ("terminal", "group", "answer"), [(True, 500, True), (True, 501, False), (True, None, False), (False, 500, False)]
)
def test_we_are_in_the_foreground_of_a_terminal_where_our_group_is(
    terminal: bool, group: int | None, answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[int] = []

    def opened(path: str, how: int) -> int:
        assert (path, how) == ("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
        if not terminal:
            raise OSError("no terminal")
        return 9

    def leading(file: int) -> int:
        assert file == 9
        if group is None:
            raise OSError("hung up")
        return group

    fake = SimpleNamespace(
        open=opened, tcgetpgrp=leading, getpgrp=lambda: 500, close=closed.append,
        O_RDONLY=os.O_RDONLY, O_NOCTTY=os.O_NOCTTY,
    )  # fmt: skip
    monkeypatch.setattr(forwarded_signals, "os", fake)
    assert forwarded_signals._in_foreground() is answer
    assert closed == ([9] if terminal else [])
