"""What the configuration names: the daemon that verbs ask, and its database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metasched.cli.options import CONFIGURATION, configuration_path
from metasched.records import InputError

if TYPE_CHECKING:
    from metasched.service.configuration import Configuration
    from metasched.store.database.store import Store

#: How long an answer is waited for (s), and one for which the daemon first asks those of sites, up to a minute twice.
TIMEOUT, OF_SITES = 10.0, 130.0


def configuration(path: Path | None) -> Configuration:
    """The configuration: from a file that is named, else from the usual place, else the defaults."""
    from metasched.service.configuration import Configuration, read_configuration

    named = configuration_path(path)
    if named == Path(CONFIGURATION) and path is None and not named.exists():
        return Configuration()
    return read_configuration(named)


@contextmanager
def opened(config: Path | None, database: str | None, *, new: bool = False, timeout: float = 10.0) -> Iterator[Store]:
    """The database that an option names, else the configured one; a missing one is made only if it may be ``new``.

    One that was made is removed again if nothing came into it, since what it was made for failed. Another process that
    holds a lock is waited for up to ``timeout`` seconds.
    """
    from metasched.store.database.engine import default_location
    from metasched.store.database.store import Store

    location = database or configuration(config).database or default_location()
    made, empty = new and "://" not in location and not os.path.exists(location), False
    try:
        with Store.open(location, new=new, timeout=timeout) as store:
            try:
                yield store
            except BaseException:
                empty = made and _is_empty(store)
                raise
    finally:
        for end in ("", "-wal", "-shm") if empty else ():
            Path(f"{location}{end}").unlink(missing_ok=True)


def _is_empty(store: Store) -> bool:
    from metasched.store.database.backup import held
    from metasched.store.database.engine import reading

    with reading(store.engine) as connection:
        return not held(connection)


def by_daemon(database: str | None, config: Path | None, url: str | None) -> bool:
    """Whether options name a daemon and no database; InputError where they name both."""
    named = url is not None or config is not None
    if database is not None and named:
        raise InputError("--database names a database and --url or --config a daemon, expected one of them")
    return named


@contextmanager
def forgetting(store: Store) -> Iterator[None]:
    """While something is forgotten in a database that no daemon uses: one would go on with it, and store it again.

    Raises
    ------
    InputError : when a daemon uses it.
    """
    from metasched.store.database.leadership import led

    with led(store.engine, "--config or --url, so that the daemon forgets as well"):
        yield


def listening(settings: Configuration) -> bool:
    """Whether a daemon on this host may be asked by its Unix socket."""
    return settings.listen.socket is not None and os.access(settings.listen.socket, os.W_OK)


def ask_daemon(config: Path | None, url: str | None, method: str, path: str, document: Any = None) -> Any:
    """Ask the daemon: at the URL given, else at its Unix socket, else at its address.

    The token is taken from $METASCHED_TOKEN.

    Raises
    ------
    DaemonError : when it cannot be reached or fails.
    InputError : when it refuses the request.
    """
    from metasched.client.connection import ask_configured

    timeout = OF_SITES if path.startswith("/v1/sites/") else TIMEOUT
    return ask_configured(configuration(config).listen, method, path, document, url=url, timeout=timeout)


def daemon_address(config: Path | None, url: str | None) -> str:
    """The URL or the socket at which :func:`ask_daemon` finds the daemon."""
    from metasched.client.connection import address_of

    return url or address_of(configuration(config).listen)
