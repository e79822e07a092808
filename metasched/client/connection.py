"""How the command line reaches the daemon: by its Unix socket or by URL."""

from __future__ import annotations

import os
from typing import Any

import httpx

from metasched.records import InputError
from metasched.service.configuration import Listen


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
) -> Any:
    """Ask the daemon and return what it answers.

    Parameters
    ----------
    address : a URL, or the path of the daemon's Unix socket.
    method, path : of the request.
    document : sent as JSON where it is not None.
    token : the client's secret; the Unix socket needs none.
    verify : file of the certificates to trust, True for the system's.
    timeout : how long to wait (s).

    Raises
    ------
    RuntimeError
        When the daemon cannot be reached or fails.
    InputError
        When it refuses the request.
    """
    local = "://" not in address
    transport = httpx.HTTPTransport(uds=address, verify=False) if local else httpx.HTTPTransport(verify=verify)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with httpx.Client(
            transport=transport, base_url="http://metasched" if local else address, timeout=timeout, headers=headers
        ) as client:
            answer = client.request(method, path, json=document)
            body = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise RuntimeError(f"the daemon at {address} does not answer: {error}") from None
    except ValueError:
        raise RuntimeError(f"what answers at {address} is not metasched") from None
    if answer.status_code >= 500:
        raise RuntimeError(f"the daemon at {address} failed: {_detail(body)}")
    if answer.status_code >= 400:
        raise InputError(_detail(body), where=address)
    return body


def _detail(body: Any) -> str:
    return str(body.get("detail", body)) if isinstance(body, dict) else str(body)
