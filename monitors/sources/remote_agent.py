"""An agent on another node as a source: :class:`RemoteAgent` asks it over HTTP."""

from __future__ import annotations

import requests

from monitors.sources.contract import Readings, Sample


class RemoteAgent:
    """The latest sample that an agent took.

    Parameters
    ----------
    url : where the agent listens, for example ``http://n0:7070``.
    token : what it wants to be shown.
    timeout : seconds to wait.
    """

    def __init__(self, url: str, token: str, timeout: float = 3.0) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url is {url!r}, expected http:// or https://")
        self._url, self._timeout = url.rstrip("/"), timeout
        self._headers = {"Authorization": f"Bearer {token}"}

    @property
    def name(self) -> str:
        """Its address."""
        return f"agent {self._url}"

    def read(self) -> Readings:
        """One sample of the agent's node."""
        try:
            answer = requests.get(f"{self._url}/sample", headers=self._headers, timeout=self._timeout)
            answer.raise_for_status()
            document = answer.json()
            values = (float(document[name]) for name in ("time", "available_cpu", "available_bandwidth"))
            sample = Sample(str(document["node"]), *values)
        except (requests.RequestException, ValueError, KeyError, TypeError) as error:
            return Readings(fault=f"{self.name}: {' '.join(str(error).split())[:200]}")
        return Readings((sample,))
