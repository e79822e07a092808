"""POST requests whose answers are bounded in time and size, so that no server holds up what is sent next."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import requests

#: Most bytes of an answer.
MOST = 64 << 10


class Answer(NamedTuple):
    """The status and the whole body of an answer."""

    status: int
    body: bytes


def post(session: requests.Session, url: str, document: Any, timeout: float) -> Answer:
    """Send a document as JSON.

    Parameters
    ----------
    session : with the headers to send.
    url : where to.
    document : the body.
    timeout : seconds for the connection and the head of the answer, and then for its body.

    Raises
    ------
    requests.RequestException
        When there is no answer in time, or it is too long.
    """
    with session.post(url, json=document, timeout=timeout, stream=True) as answer:
        body, ends = bytearray(), time.monotonic() + timeout
        # Single bytes: larger pieces would be waited for however slowly they drip in.
        for byte in answer.iter_content(1):
            body += byte
            if len(body) > MOST or time.monotonic() > ends:
                raise requests.ReadTimeout(f"no whole answer within {timeout:g} s and {MOST} bytes")
        return Answer(answer.status_code, bytes(body))
