"""POST requests whose answers are bounded in time and size, so that no server holds up what is sent next."""

from __future__ import annotations

import time
from typing import Any

from monitors.http_exchange import Answer, exchange

#: Most bytes of an answer.
MOST = 64 << 10


def post(url: str, token: str, document: Any, timeout: float) -> Answer:
    """Send a document as JSON.

    Parameters
    ----------
    url : where to.
    token : sent as a bearer token.
    document : the body.
    timeout : seconds from the connection to the end of the answer.

    Raises
    ------
    OSError, ValueError : when there is no answer in time, or it is too long.
    """
    headers, ends = {"Authorization": f"Bearer {token}"}, time.monotonic() + timeout
    return exchange(url, "POST", document=document, headers=headers, ends=ends, most=MOST)
