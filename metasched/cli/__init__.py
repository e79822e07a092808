"""The command line: one module for each verb or group of verbs, which parses what is given and prints what is found."""

from __future__ import annotations

import signal

__all__ = ["main"]


def main(argv: list[str] | None = None) -> None:
    """Run the command line and leave with its status.

    Parameters
    ----------
    argv : words after the name of the program; None for those of this process.
    """
    # Interrupted while it is being loaded, the program has nothing to tidy up, and ends at once.
    ours = argv is None and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from metasched.cli import app

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        app.main(argv)
    finally:
        if ours:  # what is left to do is Python's, which an interrupt would have complain
            signal.signal(signal.SIGINT, signal.SIG_DFL)
