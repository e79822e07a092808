"""The command line: one module for each verb or group of verbs, which parses what is given and prints what is found."""

from __future__ import annotations

import os
import signal
import sys
from threading import Timer
from typing import Any

__all__ = ["main"]

#: Signals that ask a program to end: by a job's scheduler or ``timeout``, and of a terminal that is closed.
ENDING = (signal.SIGTERM, signal.SIGHUP)
#: How soon one that was lost is sent again (s).
AGAIN = 0.01


def main(argv: list[str] | None = None) -> None:
    """Run the command line and leave with its status.

    Parameters
    ----------
    argv : words after the name of the program; None for those of this process.
    """
    asked: list[int] = []

    def end(number: int, _: object) -> None:
        """Leave what is being done as an interrupt would, so that temporary files and launched programs go too."""
        asked.append(number)
        raise SystemExit(128 + number)

    def lost(raised: Any) -> None:
        """Send a signal once more that came in a callback of a library which passes no exception on."""
        if ours and raised.exc_type in (KeyboardInterrupt, SystemExit):
            Timer(AGAIN, os.kill, (os.getpid(), asked[-1] if asked else signal.SIGINT)).start()
        else:
            unraisable(raised)

    unraisable = sys.unraisablehook
    handlers: dict[int, Any] = {signal.SIGINT: signal.default_int_handler} | dict.fromkeys(ENDING, end)
    usual = (signal.default_int_handler, signal.SIG_DFL)
    ours = [number for number in handlers if argv is None and signal.getsignal(number) in usual]
    # Interrupted while it is being loaded, the program has nothing to tidy up, and ends at once.
    for each in ours:
        signal.signal(each, signal.SIG_DFL)
    from metasched.cli import app

    for each in ours:
        signal.signal(each, handlers[each])
    sys.unraisablehook = lost
    try:
        app.main(argv)
    finally:
        sys.unraisablehook = unraisable
        for each in ours:  # what is left to do is Python's, which an interrupt would have complain
            signal.signal(each, signal.SIG_DFL)
        for each in asked:  # whoever has started the program sees what has ended it
            os.kill(os.getpid(), each)
