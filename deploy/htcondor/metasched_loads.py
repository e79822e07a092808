#!/usr/bin/env python3
"""Startd cron job of HTCondor: publishes what the metasched agent of this host measured last as part of its ClassAd.

Whatever goes wrong, both values are published as undefined, so that no old one misleads. Any Python from 3.6 on runs
it, with nothing but the standard library; metasched_hooks.py lies beside it.
"""

import sys
import time
from pathlib import Path
from typing import Any, Dict

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hooks")]
sys.dont_write_bytecode = True


def number(value: Any, most: float) -> str:
    """A measured value as ClassAds spell it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        return "undefined"
    return "{:.6f}".format(value)


def loads(found: Dict[str, str]) -> Dict[str, str]:
    """The attributes, by what hooks.conf says."""
    from metasched_hooks import ask, deadline_of

    sample = ask(found, "/sample", None, time.monotonic() + deadline_of(found))
    if not abs(time.time() - float(sample["time"])) <= float(found.get("oldest", "120")):
        return {}
    return {
        "MetaschedAvailCPU": number(sample["available_cpu"], 1.0),
        "MetaschedAvailBW": number(sample["available_bandwidth"], 1e9),
    }


def main() -> None:
    """Print the attributes, and the line that has them published."""
    found = {}  # type: Dict[str, str]
    try:
        from metasched_hooks import begin, deadline_of, settings

        conf = settings(HERE)
        thread, (results, wrong) = begin(lambda: loads(conf))
        thread.join(deadline_of(conf) + 0.1)
        if wrong or not results:
            print("metasched: {}".format(" ".join(wrong) or "no answer in time"), file=sys.stderr)
        found = results[0] if results else {}
    except Exception as error:
        print("metasched: {}".format(error), file=sys.stderr)
    for name in ("MetaschedAvailCPU", "MetaschedAvailBW"):
        print("{} = {}".format(name, found.get(name, "undefined")))
    print("- update:true")


if __name__ == "__main__":
    main()
