"""Signals that come while a job runs, handed on to it: :func:`forwarding`."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Signals that are forwarded to the job; the first are those that a terminal sends to all its processes anyway.
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_FORWARDED = (*_FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@contextmanager
def forwarding() -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """While inside, hand signals on to the process that is adopted; those that come before are handed on then.

    Gives what adopts a process, and what waits until it has ended. A signal that comes when a wait is about to block
    would be handled only after it; so waiting is for a pipe, into which the signal itself writes.
    """
    child: list[int] = []
    early: list[int] = []
    reader, writer = os.pipe()

    def forward(number: int, _: object) -> None:
        if number == signal.SIGCHLD:
            return
        if not child:
            early.append(number)
        elif number not in _FROM_TERMINAL or not _in_foreground():
            os.kill(child[0], number)

    def adopt(pid: int) -> None:
        child.append(pid)
        for number in early:
            os.kill(pid, number)

    def wait(pid: int) -> None:
        # Leaves the ended process in place, so that its account can still be read and its number not be given away.
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            select.select([reader], [], [])
            os.read(reader, 512)

    os.set_blocking(writer, False)
    wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    # A signal that is ignored (nohup) stays so, for us and for the job.
    previous = {
        number: signal.signal(number, forward)
        for number in (signal.SIGCHLD, *_FORWARDED)
        if number == signal.SIGCHLD or signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield adopt, wait
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(reader)
        os.close(writer)


def _in_foreground() -> bool:
    """Whether a terminal sends its signals to us and so, without our help, to the job too."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
