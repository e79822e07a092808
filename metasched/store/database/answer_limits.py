"""How long a PostgreSQL server may be silent before its connection is given up.

A server that is stopped, or whose disk hangs, or that is behind a network that loses every packet, keeps its
connections open without an answer; only whoever waits for one can notice. Each statement has a limit: a short
one, unless its transaction may take long.
"""

from __future__ import annotations

import logging
import math
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, event

if TYPE_CHECKING:
    from collections.abc import Generator

#: How long the server may be silent in a statement that may take long (s).
LONGEST = 600.0
#: How much longer than for another process's lock the server is waited for (s), so that it can say so itself.
AFTER_LOCKS = 1.0


def limit_answers(engine: Engine, timeout: float) -> None:
    """Give up connections to a PostgreSQL server that does not answer; nothing changes for other databases.

    Parameters
    ----------
    engine : whose connections are limited, from the next one on.
    timeout : how long a connection and a lock are waited for (s), and, a little longer, an answer. A transaction with
        the execution option ``long`` waits :data:`LONGEST` for an answer.
    """
    if (engine.dialect.name, engine.dialect.driver) != ("postgresql", "psycopg"):
        return

    def connect(_: object, __: object, arguments: list[Any], named: dict[str, Any]) -> Any:
        found = _connection_class().connect(*arguments, **{"connect_timeout": math.ceil(timeout)} | named)
        found.limit = timeout + AFTER_LOCKS
        found.execute(f"SET lock_timeout = {math.ceil(1000 * timeout)}")
        found.commit()
        return found

    def begin(connection: Connection) -> None:
        long = connection.get_execution_options().get("long", False)
        connection.connection.driver_connection.limit = LONGEST if long else timeout + AFTER_LOCKS  # type: ignore[union-attr]

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "begin", begin)


@cache
def _connection_class() -> Any:
    import psycopg

    # What it warns of, such as a pipeline that cannot be ended either, follows an error that it raises.
    logging.getLogger("psycopg").setLevel(logging.ERROR)

    class LimitedConnection(psycopg.Connection[Any]):
        """A connection that is closed when the server has been silent in a statement for ``limit`` seconds."""

        limit = math.inf

        def wait(self, gen: Any, *arguments: Any, **named: Any) -> Any:
            """Wait for an answer of the server as the driver does, who looks around several times a second."""
            return super().wait(self._limited(gen), *arguments, **named)

        def _limited(self, waiting: Any) -> Generator[Any, Any, Any]:
            heard = time.monotonic()
            try:
                wanted = next(waiting)
                while True:
                    ready = yield wanted
                    if ready:
                        heard = time.monotonic()
                    elif time.monotonic() > heard + self.limit:
                        self.close()
                        raise psycopg.OperationalError(f"does not answer within {self.limit:g} s")
                    wanted = waiting.send(ready)
            except StopIteration as done:
                return done.value

    return LimitedConnection
