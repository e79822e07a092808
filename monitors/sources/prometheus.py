"""Prometheus with node_exporter as a source: :class:`Prometheus` asks a few questions in PromQL, joins the answers."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

from monitors.one_line import one_line
from monitors.sensors.cpu_views import utilisation_view
from monitors.sources.contract import Readings, Sample
from monitors.sources.prometheus_server import PrometheusServer

#: Interfaces that lead nowhere outside the node.
_INSIDE = "lo|veth.*|docker.*|br-.*|virbr.*|cni.*|flannel.*|cali.*"


class Prometheus(PrometheusServer):
    """Loads from the metrics of node_exporter.

    Notes
    -----
    Available CPU is the utilisation view of the node's processors; available bandwidth is the speed of the fastest
    interface that leads outside, less what passes in its busier direction. Many virtual interfaces have no speed: then
    the bandwidth is unknown. A sample's time is that of the scrape, so that its age is true.
    """

    @property
    def name(self) -> str:
        """The URL of the server, as messages name this source."""
        return f"Prometheus {self.url.rstrip('/')}"

    def read(self) -> Readings:
        """The latest sample of each node."""
        end = time.monotonic() + self.timeout
        try:
            answers = {name: self._values(question, end) for name, question in self._questions().items()}
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
            self.node(seen),
            float(values["time"] or 0.0),
            utilisation_view(idle, processors - idle, runnable),
            math.nan if spare is None else max(8e-6 * spare, 0.0),
        )

    def _values(self, question: str, deadline: float) -> dict[str, float]:
        """Values by the nodes' labels; nodes whose value is not a number are left out."""
        values = {seen: float(item["value"][1]) for seen, item in self.ask(question, deadline)}
        return {seen: value for seen, value in values.items() if seen and math.isfinite(value)}

    def _questions(self) -> dict[str, str]:
        """Expressions in PromQL, each of which has one value for each node."""
        label, series, span = self.label, self.series, f"[{max(int(self.window), 1)}s]"
        outside = f'device!~"{_INSIDE}"'
        received, sent = (
            f"rate({series(f'node_network_{direction}_bytes_total', outside)}{span})"
            for direction in ("receive", "transmit")
        )
        seconds = "node_cpu_seconds_total"
        idle, spare_time = series(seconds, 'mode="idle"'), series(seconds, 'mode=~"idle|iowait"')
        busier = f"({received} > {sent} or {sent})"
        speed = f"({series('node_network_speed_bytes', outside)} > 0)"
        return {
            "idle": f"sum by ({label}) (rate({spare_time}{span}))",
            "processors": f"count by ({label}) ({idle})",
            "runnable": f"max by ({label}) ({series('node_procs_running')})",
            "time": f"max by ({label}) (timestamp({idle}))",
            "spare": f"max by ({label}) ({speed} - on ({label}, device) {busier})",
        }
