"""An agent on another node as a source: :class:`RemoteAgent` asks it over HTTP."""

from __future__ import annotations

from pathlib import Path

from monitors.one_line import one_line
from monitors.sources.bounded_json import fetch
from monitors.sources.contract import Readings, Sample


class RemoteAgent:
    """The latest sample that an agent took.

    Parameters
    ----------
    url : where the agent listens, for example ``http://n0:7070``.
    token_file : file with the token that the agent wants to be shown.
    timeout : seconds that asking takes at most.
    """

    def __init__(self, url: str, token_file: Path | None = None, timeout: float = 5.0) -> None:
        self._url, self._token_file, self._timeout = url.rstrip("/"), token_file, timeout

    @property
    def name(self) -> str:
        """The URL of the agent, as messages name this source."""
        return f"agent {self._url}"

    def read(self) -> Readings:
        """One sample of the agent's node."""
        try:
            document = fetch(f"{self._url}/sample", deadline=self._timeout, token_file=self._token_file)
            values = (float(document[name]) for name in ("time", "available_cpu", "available_bandwidth"))
            return Readings((Sample(str(document["node"]), *values),))
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            return Readings(fault=one_line(error))
