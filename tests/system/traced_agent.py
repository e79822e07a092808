"""The real agent of one virtual node, with a recorded trace in place of sensors: all nodes are this one host.

``python -m tests.system.traced_agent SETTINGS.toml TRACES.json``
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

from monitors.agent.agent import Agent
from monitors.agent.settings import read_settings
from monitors.sources.contract import Readings
from monitors.sources.trace import RecordedTrace


class Played:
    """A recorded trace that is going on now."""

    def __init__(self, traces: Path, node: str) -> None:
        told = json.loads(traces.read_text())
        cpu, bandwidth = (told["nodes"][node][kind] for kind in ("cpu", "bandwidth"))
        columns = ([[value] for value in values] for values in (cpu, bandwidth))
        times = [told["origin"] + told["step"] * number for number in range(len(cpu))]
        self._trace = RecordedTrace(times, [node], *columns, clock=time.time)
        self.name = f"trace of {node}"

    def read(self) -> Readings:
        readings = self._trace.read()
        return replace(readings, samples=tuple(replace(each, time=time.time()) for each in readings.samples))


def main() -> None:
    settings, traces = Path(sys.argv[1]), Path(sys.argv[2])
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    told = read_settings(settings)
    agent = Agent(told, Played(traces, told.node))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.stop())
    agent.run()


if __name__ == "__main__":
    main()
