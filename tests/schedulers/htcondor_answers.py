"""What HTCondor's commands print, in the form that its version 23 has, written by hand: no pool printed it."""

from __future__ import annotations

import json
from typing import Any

SUBMITTED, STARTED = 1_700_000_000, 1_700_000_100


def slot(machine: str, state: str = "Unclaimed", cpus: int = 4, **more: Any) -> dict[str, Any]:
    found = {"Machine": f"{machine}.site", "Name": f"slot1@{machine}.site", "SlotType": "Partitionable"}
    return found | {"State": state, "Cpus": cpus, "TotalCpus": 4.0, "TotalMemory": 16_000} | more


SLOTS = [
    slot("n1", cpus=1), slot("n1", "Claimed", 3), slot("n2", "Owner"),
    slot("n3", MetaschedPartition="new"), slot("n4", MetaschedPartition="new"),
]  # fmt: skip


def job(number: int, status: int, **more: Any) -> dict[str, Any]:
    return {
        "ClusterId": number, "ProcId": 0, "JobStatus": status, "JobUniverse": 5, "Owner": "ann", "Cmd": "/home/ann/cg",
        "RequestCpus": 3, "QDate": SUBMITTED, "Metasched": "app=cg,n=1400",
    } | more  # fmt: skip


RUNS = {"RemoteHost": "slot1_1@n1.site", "JobCurrentStartDate": STARTED}
JOBS = [job(7, 2, **RUNS), job(8, 1, AllowedJobDuration=600), job(9, 5), job(10, 1, JobUniverse=11)]
RAN = {"LastRemoteHost": "slot1_1@n1.site", "JobCurrentStartDate": STARTED, "CompletionDate": STARTED + 50}
ENDED = [
    job(3, 4, **RAN, ExitBySignal=False, ExitCode=0),
    job(4, 4, **RAN, ExitBySignal=True, ExitSignal=9, ProcId=2),
    job(5, 3, **RAN | {"CompletionDate": 0}),
]
PRINTED = {
    "condor_status": json.dumps(SLOTS),
    "condor_q": json.dumps(JOBS, indent=1),
    "condor_history": json.dumps(ENDED),
}
