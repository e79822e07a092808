"""What OAR 2.5.9 prints, recorded from a server with four nodes and shortened."""

from __future__ import annotations

import json
from typing import Any

SUBMITTED, STARTED = 1_795_418_285, 1_795_418_286


def resource(number: int, node: str, cluster: str, **more: Any) -> dict[str, Any]:
    return {
        "resource_id": number, "network_address": node, "cluster": cluster, "core": number, "type": "default",
        "state": "Alive", "drain": "NO", "cpuset": "0", "available_upto": 2_147_483_647, "last_job_date": 0,
    } | more  # fmt: skip


def job(number: int, state: str, **more: Any) -> dict[str, Any]:
    return {
        "Job_Id": number, "array_id": number, "array_index": 1, "state": state, "owner": "nobody", "name": None,
        "queue": "default", "jobType": "PASSIVE", "reservation": "None", "types": [], "events": [],
        "project": "default", "command": "METASCHED=app=cg,n=500 ./cg.sh",
        "message": "R=3,W=2:0:0,J=B (Karma=0.000,quota_ok)",
        "properties": "((cluster='new') AND desktop_computing = 'NO') AND drain='NO'", "walltime": None,
        "submissionTime": SUBMITTED, "startTime": 0, "stopTime": 0, "exit_code": None, "assigned_resources": [],
        "assigned_network_address": [], "wanted_resources": "-l \"{type = 'default'}/core=3,walltime=2:0:0\" ",
    } | more  # fmt: skip


RAN = {
    "startTime": STARTED,
    "assigned_resources": [5, 6, 7],
    "walltime": 7200,
    "assigned_network_address": ["n3", "n4"],
}
RESOURCES = [
    *(resource(number, f"n{(number + 1) // 2}", "old" if number < 5 else "new") for number in range(1, 9)),
    resource(9, "n5", "new", state="Suspected"), resource(10, "", "new", type="licence"),
]  # fmt: skip
JOBS = [
    job(7, "Running", **RAN), job(8, "Waiting"),
    job(9, "Hold", properties="desktop_computing = 'NO'", name="cg-9", message="R=2,W=0:2:0,J=B,N=cg-9"),
]  # fmt: skip
ENDED = [
    job(3, "Terminated", **RAN, stopTime=STARTED + 50, exit_code=0),
    job(4, "Error", **RAN, stopTime=STARTED + 5, exit_code=None, command="./solve.sh case -n 400"),
    job(6, "Terminated", **RAN, stopTime=STARTED + 7, exit_code=256),
    job(5, "Error", message=""),
]


def numbered(jobs: list[dict[str, Any]], key: str) -> str:
    return json.dumps({str(each[key]): each for each in jobs})


FILES = {
    "oarnodes.sound": numbered(RESOURCES, "resource_id"),
    "oarstat.jobs": numbered(JOBS, "Job_Id"),
    "oarstat.ended": numbered(ENDED, "Job_Id"),
}
#: A script that prints what oarstat does, from files beside it.
OARSTAT = 'case "$*" in *--sql*) cat "$0.ended" ;; *) cat "$0.jobs" ;; esac'
