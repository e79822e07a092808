"""How programs reach the daemon, by its Unix socket or by URL: with the standard library, within a deadline."""

from __future__ import annotations

import json
import os
import re
import ssl
import subprocess
import time
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote

from metasched.records import InputError
from monitors.http_exchange import MOST, PATH, exchange
from monitors.reached_hosts import time_left

#: Statuses that deny a client what it asks for, whatever that is.
DENIALS = frozenset({401, 403, 429})


class DaemonError(RuntimeError):
    """The daemon cannot be reached or fails; one line that names it."""


class DeniedError(InputError):
    """The daemon denies who asks, or that so much is asked; it says nothing of what is asked about."""


class Listen(Protocol):
    """Where a daemon listens, as :class:`metasched.service.configuration.Listen` configures it."""

    @property
    def host(self) -> str:
        """The address, by name or number."""

    @property
    def port(self) -> int:
        """The number of the TCP port."""

    @property
    def socket(self) -> str | None:
        """Path of the Unix socket, None without one."""

    @property
    def certificate(self) -> str | None:
        """File of the certificate, None without TLS."""


def address_of(listen: Listen) -> str:
    """Where a daemon on this host is asked: at its Unix socket, unless that is closed to this user, or its address."""
    scheme = "http" if listen.certificate is None else "https"
    host = f"[{listen.host}]" if ":" in listen.host else listen.host
    if listen.socket and (os.access(listen.socket, os.W_OK) or not os.path.exists(listen.socket)):
        return listen.socket
    return f"{scheme}://{host}:{listen.port}"


def ask_configured(
    listen: Listen, method: str, path: str, document: Any = None, *, url: str | None = None, timeout: float = 10.0
) -> Any:
    """Ask the daemon that listens so, or at another URL, with the token in $METASCHED_TOKEN; see :func:`ask`.

    Parameters
    ----------
    listen : where the daemon listens.
    method, path : of the HTTP request.
    document : sent as JSON; None for no body.
    url : of another daemon, or its Unix socket.
    timeout : how long an answer is waited for (s).
    """
    token, verify = os.environ.get("METASCHED_TOKEN") or None, listen.certificate or True
    return ask(url or address_of(listen), method, path, document, token=token, verify=verify, timeout=timeout)


def ask(
    address: str,
    method: str,
    path: str,
    document: Any = None,
    *,
    token: str | None = None,
    verify: str | bool = True,
    timeout: float = 10.0,
    most: int = MOST,
) -> Any:
    """Ask the daemon and return what it answers.

    Parameters
    ----------
    address : a URL, or the path of the daemon's Unix socket.
    method, path : of the request.
    document : sent as JSON where it is not None.
    token : the client's secret; the Unix socket needs none, nor does a host that shares the daemon's MUNGE key.
    verify : file of the certificates to trust, True for the system's.
    timeout : how long the whole answer may take (s), however it comes.
    most : bytes of the answer that are read at most.

    Raises
    ------
    DaemonError : when the daemon cannot be reached or fails.
    DeniedError : when it does not know the client, or the client may not ask that, or not so often.
    InputError : when it refuses the request.
    """
    ends = time.monotonic() + timeout
    try:
        asked = partial(
            exchange, address, method, path, document, ends=ends, most=most,
            certificate=verify if isinstance(verify, str) else None,
        )  # fmt: skip
        status, fields, body = asked(
            headers={} if token is None else {"Authorization": f"Bearer {quote(token, safe=PATH)}"}
        )
        if status == 401 and token is None and "munge" in fields.get("WWW-Authenticate", "").lower():
            made = _credential(method, path, ends)
            status, _, body = asked(headers={"Authorization": made}) if made else (status, fields, body)
    except TimeoutError:
        raise DaemonError(f"the daemon at {address} does not answer within {timeout:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise DaemonError(f"the certificate of {address} is not accepted: {error.verify_message}") from None
    except (OSError, ValueError) as error:
        raise DaemonError(f"the daemon at {address} does not answer: {error}") from None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        if status >= 500:  # what the framework answers for an error that nobody foresaw
            raise DaemonError(f"the daemon at {address} failed with status {status}, see its log") from None
        raise DaemonError(f"what answers at {address} is not metasched") from None
    if status >= 500:
        raise DaemonError(f"the daemon at {address} failed: {_detail(found)}")
    if status >= 400:
        raise (DeniedError if status in DENIALS else InputError)(_detail(found), where=address)
    return found


def _credential(method: str, path: str, ends: float) -> str | None:
    """An Authorization header that proves to the daemon who asks; None where this host has no MUNGE."""
    words = ["munge", f"--string=metasched {method} {quote(path, safe=PATH)}"]
    try:
        made = subprocess.run(  # noqa: S603
            words, capture_output=True, text=True, errors="replace", check=True, timeout=time_left(ends)
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return f"MUNGE {made}" if re.fullmatch(r"MUNGE:[A-Za-z0-9+/=]+:", made) else None


def _detail(body: Any) -> str:
    return str(body.get("detail", body)) if isinstance(body, dict) else str(body)
