"""Who changed what that administrators answer for: modes, tokens, forgotten runs. It goes to the system's own log.

``journalctl -t metasched-audit``, or wherever syslog keeps the facility authpriv: write access to the daemon's database
is not enough to change it.
"""

from __future__ import annotations

import os
import pwd
import syslog

#: What the lines are found by in the system's log.
TAG = "metasched-audit"


def audit(what: str, who: str | None = None) -> None:
    """Note what was done, by a client of the daemon or else by the user who runs this.

    Parameters
    ----------
    what : one line, without secrets.
    who : name of the client of the daemon; None for the user who runs this process.
    """
    syslog.openlog(TAG, syslog.LOG_PID, syslog.LOG_AUTHPRIV)
    try:
        line = f"{who if who is not None else _user()}: {what}"
        syslog.syslog(syslog.LOG_NOTICE, "".join(c if c.isprintable() else "?" for c in line)[:1000])
    finally:
        syslog.closelog()


def _user() -> str:
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return f"user {name}"
