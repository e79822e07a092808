"""JSON over HTTP from a server that may be slow or hostile: :func:`fetch`, bounded in time and in size."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from monitors.sources.contract import one_line

#: Bytes of one answer at most: some 100,000 nodes.
LARGEST = 16 << 20


def fetch(
    url: str,
    *,
    deadline: float,
    token_file: Path | None,
    parameters: Mapping[str, str] | None = None,
) -> Any:
    """The document that a server answers a GET request with; redirections are not followed.

    Parameters
    ----------
    url : where to ask.
    deadline : seconds for everything, from the connection to the last byte, however slowly bytes drip in.
    token_file : file with a bearer token, read each time so that the token may be changed; None sends none.
    parameters : of the query.

    Raises
    ------
    ValueError : no answer in time, too long a one, a status other than 200, or no JSON; in one line.
    """
    try:
        headers = {"Accept-Encoding": "identity"}
        if token_file is not None:
            headers["Authorization"] = f"Bearer {token_file.read_text(encoding='utf-8').strip()}"
        body = asyncio.run(_fetch(url, dict(parameters or {}), headers, deadline))
        return json.loads(body)
    except TimeoutError:
        raise ValueError(f"no whole answer within {deadline:.3g} s") from None
    except RecursionError:
        raise ValueError("the answer is nested too deeply") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise ValueError(one_line(error)) from None


async def _fetch(url: str, parameters: dict[str, str], headers: dict[str, str], deadline: float) -> bytes:
    body = bytearray()
    async with (
        asyncio.timeout(deadline),
        httpx.AsyncClient(headers=headers, timeout=deadline, verify=_trusted()) as client,
        client.stream("GET", url, params=parameters) as answer,
    ):
        # Raw: a small answer that is compressed could unpack to a huge one.
        async for piece in answer.aiter_raw(1 << 16):
            body += piece
            if len(body) > LARGEST:
                raise ValueError(f"the answer is longer than {LARGEST} bytes")
    if answer.status_code != 200:
        raise ValueError(f"HTTP {answer.status_code}: {body[:200].decode(errors='replace')}")
    return bytes(body)


@cache
def _trusted() -> ssl.SSLContext:
    """The system's certificates; reading them takes longer than asking."""
    return ssl.create_default_context()
