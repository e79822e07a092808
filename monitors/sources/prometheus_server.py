"""A Prometheus server queried in PromQL: the connection to it, and the names of nodes in its answers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from monitors.sources.bounded_json import fetch


@dataclass(frozen=True, kw_only=True)
class PrometheusServer:
    """A server, and which of its series are of the nodes.

    Parameters
    ----------
    url : of the server, for example ``http://prometheus:9090``.
    label : the label whose values distinguish the nodes.
    names : name of the node by value of that label; where it is not in here, the value without a port is the name.
    prefix : put before every name.
    match : matchers that choose the series, for example ``job="node"``.
    window : seconds that rates are taken over; at least two scrapes must fall into it.
    token_file : file with a bearer token, where the server wants one.
    timeout : seconds that all questions of one reading take at most together.

    Examples
    --------
    >>> server = PrometheusServer("http://prometheus:9090", match='job="node"', names={"10.0.0.7:9100": "n7"})
    >>> server.series("up", 'mode="idle"'), server.node("n1:9100"), server.node("10.0.0.7:9100")
    ('up{job="node",instance!="",mode="idle"}', 'n1', 'n7')
    """

    url: str = field(kw_only=False)
    label: str = "instance"
    names: Mapping[str, str] | None = None
    prefix: str = ""
    match: str = ""
    window: float = 60.0
    token_file: Path | None = None
    timeout: float = 5.0

    def series(self, metric: str, *matchers: str) -> str:
        """The expression for the series of a metric that are of nodes, and match more where more is given."""
        every = [*filter(None, [self.match]), f'{self.label}!=""', *matchers]
        return f"{metric}{{{','.join(every)}}}"

    def node(self, seen: str) -> str:
        """The name of the node with this value of the label."""
        return self.prefix + (self.names or {}).get(seen, seen.rsplit(":", 1)[0])

    def ask(self, query: str, deadline: float, **parameters: str) -> Iterator[tuple[str, Any]]:
        """Each series that answers a query: the value of its label, and the item as the server has it.

        Parameters
        ----------
        query : in PromQL.
        deadline : when the answer must be there, on the monotonic clock (s).
        parameters : of the request, such as ``time``.

        Raises
        ------
        ValueError, KeyError, TypeError, AttributeError : the server does not answer, or not as Prometheus does.
        """
        document: Any = fetch(
            f"{self.url.rstrip('/')}/api/v1/query",
            deadline=max(deadline - time.monotonic(), 0.001),
            token_file=self.token_file,
            parameters={"query": query, **parameters},
        )
        for item in document["data"]["result"]:
            yield str(item["metric"][self.label]), item
