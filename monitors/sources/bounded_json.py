"""JSON over HTTP from a server that may be slow or hostile: :func:`fetch`, bounded in time and in size."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from monitors.http_exchange import exchange
from monitors.one_line import one_line

#: Bytes of one answer at most: some 100,000 nodes.
LARGEST = 16 << 20


def fetch(url: str, *, deadline: float, token_file: Path | None, parameters: Mapping[str, str] | None = None) -> Any:
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
    headers, query = {}, f"?{urlencode(parameters)}" if parameters else ""
    try:
        if token_file is not None:
            headers["Authorization"] = f"Bearer {token_file.read_text(encoding='utf-8').strip()}"
        ends = time.monotonic() + deadline
        answer = exchange(url, "GET", query, headers=headers, ends=ends, most=LARGEST)
        if answer.status != 200:
            raise ValueError(f"HTTP {answer.status}: {answer.body[:200].decode(errors='replace')}")
        return json.loads(answer.body)
    except TimeoutError:
        raise ValueError(f"no whole answer within {deadline:.3g} s") from None
    except RecursionError:
        raise ValueError("the answer is nested too deeply") from None
    except ConnectionError as error:
        raise ValueError(f"no connection: {one_line(error)}") from None
    except OSError as error:
        raise ValueError(one_line(error)) from None
