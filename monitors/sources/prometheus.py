"""Prometheus with node_exporter as a source: :class:`Prometheus` asks a few questions in PromQL, joins the answers."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path

from monitors.sensors.cpu_views import utilisation_view
from monitors.sources.bounded_json import fetch
from monitors.sources.contract import Readings, Sample, one_line

#: Interfaces that lead nowhere outside the node.
_INSIDE = "lo|veth.*|docker.*|br-.*|virbr.*|cni.*|flannel.*|cali.*"


class Prometheus:
    """Loads from the metrics of node_exporter.

    Parameters
    ----------
    url : of the server, for example ``http://prometheus:9090``.
    label : the label that tells the nodes apart.
    names : name of the node by value of that label; where it is not in here, the value without a port is the name.
    match : matchers that choose the series, for example ``job="node"``.
    window : seconds that rates are taken over; at least two scrapes must fall into it.
    token_file : file with a bearer token, where the server wants one.
    timeout : seconds that all the questions take at most together.

    Notes
    -----
    Available CPU is the utilisation view of the node's processors; available bandwidth is the speed of the fastest
    interface that leads outside, less what passes in its busier direction. Many virtual interfaces tell no speed: then
    the bandwidth is unknown. A sample's time is that of the scrape, so that its age is true.
    """

    def __init__(
        self,
        url: str,
        *,
        label: str = "instance",
        names: Mapping[str, str] | None = None,
        match: str = "",
        window: float = 60.0,
        token_file: Path | None = None,
        timeout: float = 5.0,
    ) -> None:
        self._url, self._label, self._names = url.rstrip("/"), label, dict(names or {})
        self._token_file, self._timeout = token_file, timeout
        self._questions = _questions(label, match, window)

    @property
    def name(self) -> str:
        """The URL of the server, as messages name this source."""
        return f"Prometheus {self._url}"

    def read(self) -> Readings:
        """The latest sample of each node."""
        end = time.monotonic() + self._timeout
        try:
            answers = {name: self._ask(question, end - time.monotonic()) for name, question in self._questions.items()}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            return Readings(fault=one_line(error))
        samples, faults = [], []
        for seen in answers["idle"].keys() & answers["processors"].keys() & answers["time"].keys():
            try:
                samples.append(self._sample(seen, {name: given.get(seen) for name, given in answers.items()}))
            except (ValueError, ArithmeticError) as error:
                faults.append(one_line(error))
        return Readings(tuple(samples), faults[0] if faults else "" if samples else "no metrics of node_exporter")

    def _sample(self, seen: str, values: Mapping[str, float | None]) -> Sample:
        processors, idle = max(values["processors"] or 1.0, 1.0), values["idle"] or 0.0
        idle = min(max(idle, 0.0), processors)
        # The exporter itself was running when it counted.
        runnable = max((values["runnable"] or 0.0) - 1.0, 0.0)
        spare = values["spare"]
        return Sample(
            self._names.get(seen, seen.rsplit(":", 1)[0]),
            float(values["time"] or 0.0),
            utilisation_view(idle, processors - idle, runnable),
            math.nan if spare is None else max(8e-6 * spare, 0.0),
        )

    def _ask(self, question: str, left: float) -> dict[str, float]:
        """Value by node's label; a node whose value is no number is left out."""
        document = fetch(
            f"{self._url}/api/v1/query",
            deadline=max(left, 0.001),
            token_file=self._token_file,
            parameters={"query": question},
        )
        values = {str(item["metric"][self._label]): float(item["value"][1]) for item in document["data"]["result"]}
        return {seen: value for seen, value in values.items() if seen and math.isfinite(value)}


def _questions(label: str, match: str, window: float) -> dict[str, str]:
    """Expressions in PromQL, each of which has one value for each node."""
    span, common = f"[{max(int(window), 1)}s]", [*filter(None, [match]), label + '!=""']

    def series(metric: str, *matchers: str) -> str:
        return f"{metric}{{{','.join([*common, *matchers])}}}"

    def traffic(direction: str) -> str:
        return f"rate({series(f'node_network_{direction}_bytes_total', outside)}{span})"

    outside = f'device!~"{_INSIDE}"'
    seconds = "node_cpu_seconds_total"
    idle, spare_time = series(seconds, 'mode="idle"'), series(seconds, 'mode=~"idle|iowait"')
    busier = f"({traffic('receive')} > {traffic('transmit')} or {traffic('transmit')})"
    speed = f"({series('node_network_speed_bytes', outside)} > 0)"
    return {
        "idle": f"sum by ({label}) (rate({spare_time}{span}))",
        "processors": f"count by ({label}) ({idle})",
        "runnable": f"max by ({label}) ({series('node_procs_running')})",
        "time": f"max by ({label}) (timestamp({idle}))",
        "spare": f"max by ({label}) ({speed} - on ({label}, device) {busier})",
    }
