#!/usr/bin/env python3
"""Startd cron job of HTCondor: publishes what the metasched agent of this host measured last as part of its ClassAd.

Whatever goes wrong, both values are published as undefined, so that no old one misleads. Any Python from 3.6 on runs
it, with nothing but the standard library; metasched_hooks.py lies beside it.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hooks")]
sys.dont_write_bytecode = True

#: The attributes, and what of a sample they publish.
ATTRIBUTES = (("MetaschedAvailCPU", "available_cpu"), ("MetaschedAvailBW", "available_bandwidth"))


def main() -> None:
    """Print the attributes, and the line that has them published."""
    try:
        from metasched_hooks import host_loads

        found = host_loads(HERE)
    except Exception as error:
        print("metasched: {}".format(error), file=sys.stderr)
        found = {}
    for name, key in ATTRIBUTES:
        print("{} = {}".format(name, "{:.6f}".format(found[key]) if key in found else "undefined"))
    print("- update:true")


if __name__ == "__main__":
    main()
