"""What Flux's commands print, after RFC 20 and the manual of version 0.60, written by hand: no instance printed it."""

from __future__ import annotations

import json
from typing import Any

SUBMITTED, STARTED = 1_700_000_000.25, 1_700_000_100.5


def resources(ranks: str, nodes: str, cores: str = "0-3") -> str:
    lite = [{"rank": ranks, "children": {"core": cores}}] if ranks else []
    execution = {"R_lite": lite, "nodelist": [nodes] if nodes else [], "starttime": 0, "expiration": 0}
    return json.dumps(
        {"version": 1, "execution": execution | {"properties": {"new": "0-1", "old": "0-2"} if ranks else {}}}
    )


def job(number: int, state: str, **more: Any) -> dict[str, Any]:
    return {
        "id": number, "userid": 1000, "urgency": 16, "state": state, "name": "cg", "ntasks": 3, "ncores": 3,
        "duration": 600.0, "queue": "new", "t_submit": SUBMITTED, "annotations": {},
    } | more  # fmt: skip


RAN = {"t_run": STARTED, "nodelist": "n[1-2]", "nnodes": 2}
JOBS = [job(7, "RUN", **RAN), job(8, "SCHED"), job(9, "DEPEND")]
ENDED = [
    job(3, "INACTIVE", **RAN, t_cleanup=STARTED + 50, result="COMPLETED", returncode=0),
    job(4, "INACTIVE", **RAN, t_cleanup=STARTED + 5, result="FAILED", returncode=-9),
    job(5, "INACTIVE", result="CANCELED"),
]
FILES = {
    "flux.all": resources("0-2", "n[1-3]"),
    "flux.free": resources("0-1", "n[1-2]", "1-3"),
    "flux.down": resources("2", "n3"),
    "flux.queues": json.dumps({"new": {"requires": ["new"]}, "old": {"requires": ["old"]}}),
    "flux.jobs": json.dumps({"jobs": JOBS}),
    "flux.ended": json.dumps({"jobs": JOBS + ENDED}),
}
#: A script that prints what flux does, from files beside it.
FLUX = """case "$*" in
  resource*) cat "$0.$4" ;;
  config*) cat "$0.queues" ;;
  *" -a "*) cat "$0.ended" ;;
  *) cat "$0.jobs" ;;
esac"""
