"""``python -m monitors.agent [SETTINGS.toml]``: the agent alone, without the rest of the command line in memory."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from pathlib import Path

from monitors.agent.agent import Agent
from monitors.agent.settings import read_settings


def main(argv: list[str] | None = None) -> int:
    """Run the agent until SIGTERM or SIGINT: 0 ended, 2 wrong settings."""
    parser = argparse.ArgumentParser(prog="metasched agent", description="Sample this node and send its loads.")
    parser.add_argument("settings", nargs="?", type=Path, help="TOML file; METASCHED_AGENT_... variables override it")
    parser.add_argument("--verbose", action="store_true", help="log probes and failures in full")
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.DEBUG if arguments.verbose else logging.INFO, format="%(levelname)s %(message)s")
    try:
        agent = Agent(read_settings(arguments.settings))
    except (ValueError, OSError) as error:
        print(f"metasched: agent: {error}", file=sys.stderr)
        return 2
    agent.stop_on(signal.SIGTERM, signal.SIGINT)
    agent.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
