"""The real agent of one virtual node, with a recorded trace in place of sensors: all nodes are this one host.

``python -m tests.system.traced_agent SETTINGS.toml TRACES.json``
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from pathlib import Path

from monitors.agent.agent import Agent
from monitors.agent.settings import read_settings
from monitors.sources.contract import Readings, Sample


class Played:
    """A recorded trace that is going on now: at every moment the last sample that had been recorded by then."""

    def __init__(self, traces: Path, node: str) -> None:
        document = json.loads(traces.read_text())
        self._node, self._origin, self._step = node, document["origin"], document["step"]
        self._cpu, self._bandwidth = (document["nodes"][node][kind] for kind in ("cpu", "bandwidth"))
        self.name = f"trace of {node}"

    def read(self) -> Readings:
        now = time.time()
        at = min(int((now - self._origin) // self._step), len(self._cpu) - 1)
        if at < 0:
            return Readings(fault="nothing recorded by now")
        return Readings((Sample(self._node, now, self._cpu[at], self._bandwidth[at]),))


def main() -> None:
    settings, traces = Path(sys.argv[1]), Path(sys.argv[2])
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    answer = read_settings(settings)
    agent = Agent(answer, Played(traces, answer.node))
    agent.stop_on(signal.SIGTERM, signal.SIGINT)
    agent.run()


if __name__ == "__main__":
    main()
