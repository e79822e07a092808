"""Prometheus with node_exporter as a source: :class:`Prometheus` asks a few questions in PromQL, joins the answers."""

from __future__ import annotations

import math
from collections.abc import Mapping

import requests

from monitors.sensors.cpu_views import utilisation_view
from monitors.sources.contract import Readings, Sample

#: Interfaces that lead nowhere outside the node.
_INSIDE = "lo|veth.*|docker.*|br-.*|virbr.*|cni.*|flannel.*|cali.*"


class Prometheus:
    """Loads from the metrics of node_exporter.

    Parameters
    ----------
    url : of the server, for example ``http://prometheus:9090``.
    nodes : name of the node of each ``instance``; where it is not in here, the instance without its port.
    window : seconds that rates are taken over; at least two scrapes must fall into it.
    token : sent as a bearer token, where the server wants one.
    timeout : seconds to wait for each answer.

    Notes
    -----
    Available CPU is the utilisation view of the node's processors; available bandwidth is the speed of the fastest
    interface that leads outside, less what passes in its busier direction. A virtual interface tells no speed: then
    the bandwidth is unknown.
    """

    def __init__(
        self,
        url: str,
        *,
        nodes: Mapping[str, str] | None = None,
        window: float = 60.0,
        token: str = "",
        timeout: float = 5.0,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url is {url!r}, expected http:// or https://")
        self._url = url.rstrip("/")
        self._nodes, self._timeout = dict(nodes or {}), timeout
        self._session = requests.Session()
        if token:
            self._session.headers["Authorization"] = f"Bearer {token}"
        span = f"[{max(int(window), 1)}s]"
        outside = f'device!~"{_INSIDE}"'
        traffic = "node_network_{}_bytes_total{{{}}}"
        self._questions = {
            "idle": f'sum by (instance) (rate(node_cpu_seconds_total{{mode=~"idle|iowait"}}{span}))',
            "processors": 'count by (instance) (node_cpu_seconds_total{mode="idle"})',
            "runnable": "max by (instance) (node_procs_running)",
            "time": 'max by (instance) (timestamp(node_cpu_seconds_total{mode="idle"}))',
            "spare": (
                f"max by (instance) ((node_network_speed_bytes{{{outside}}} > 0) - on (instance, device) "
                f"(rate({traffic.format('receive', outside)}{span}) > "
                f"rate({traffic.format('transmit', outside)}{span}) or "
                f"rate({traffic.format('transmit', outside)}{span})))"
            ),
        }

    @property
    def name(self) -> str:
        """Its address."""
        return f"Prometheus {self._url}"

    def read(self) -> Readings:
        """The latest sample of each instance."""
        try:
            answers = {name: self._ask(question) for name, question in self._questions.items()}
        except (requests.RequestException, ValueError, KeyError, TypeError) as error:
            return Readings(fault=f"{self.name}: {' '.join(str(error).split())[:200]}")
        samples = []
        for instance in answers["idle"]:
            if all(instance in answers[needed] for needed in ("processors", "time")):
                samples.append(self._sample(instance, {name: given.get(instance) for name, given in answers.items()}))
        return Readings(tuple(samples), "" if samples else f"{self.name}: no metrics of node_exporter")

    def _sample(self, instance: str, values: Mapping[str, float | None]) -> Sample:
        processors, idle = values["processors"] or 1.0, values["idle"] or 0.0
        idle = min(max(idle, 0.0), processors)
        # The exporter itself was running when it counted.
        runnable = max((values["runnable"] or 0.0) - 1.0, 0.0)
        spare = values["spare"]
        return Sample(
            self._nodes.get(instance, instance.rsplit(":", 1)[0]),
            float(values["time"] or 0.0),
            utilisation_view(idle, processors - idle, runnable),
            math.nan if spare is None else max(8e-6 * spare, 0.0),
        )

    def _ask(self, question: str) -> dict[str, float]:
        """Value by instance; an instance whose value is no number is left out."""
        answer = self._session.get(f"{self._url}/api/v1/query", params={"query": question}, timeout=self._timeout)
        document = answer.json()
        if not answer.ok or document.get("status") != "success":
            raise ValueError(f"{document.get('errorType', answer.status_code)}: {document.get('error', 'no answer')}")
        values = {item["metric"]["instance"]: float(item["value"][1]) for item in document["data"]["result"]}
        return {instance: value for instance, value in values.items() if math.isfinite(value)}
