"""Something done as another user of this host, in a child process; only root can."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence


def as_user(
    user: int, work: Callable[[], object], *, groups: Sequence[int] = (), environment: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Do something as a user by number; return its exit status, and what it printed on stdout and stderr.

    Modules must be imported before: the user may not be allowed to read them.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            status = 70
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
                os.environ.update(environment or {})
                os.chdir("/")
                os.setgroups(groups)
                os.setgid(user)
                os.setuid(user)
                work()
                status = 0
            except SystemExit as left:
                status = int(left.code or 0)
            except BaseException as error:
                os.write(2, repr(error).encode())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        for each in (out, err):
            each.seek(0)
        return os.waitstatus_to_exitcode(ended), out.read(), err.read()
