"""What OpenPBS's commands print, in the form that its version 20.0.1 has, written by hand: no server printed it."""

from __future__ import annotations

import json
import time
from typing import Any

SUBMITTED, STARTED = 1_700_000_000, 1_700_000_100


def moment(seconds: float) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(seconds))


def printed(**parts: Any) -> str:
    return json.dumps({"timestamp": 1_700_000_200, "pbs_version": "20.0.1", "pbs_server": "pbs"} | parts, indent=4)


def node(host: str, ncpus: int = 4, used: int = 0, state: str = "free", **more: Any) -> dict[str, Any]:
    has = {"arch": "linux", "host": host, "mem": "1048576kb", "ncpus": ncpus, "vnode": host}
    return {
        "Mom": host, "ntype": "PBS", "state": state, "pcpus": ncpus, "resources_available": has,
        "resources_assigned": {"ncpus": used} if used else {}, "resv_enable": "True", "sharing": "default_shared",
    } | more  # fmt: skip


NODES = {"n1": node("n1", used=3), "n2": node("n2"), "n3": node("n3", state="offline,job-busy")}


def queue(**more: Any) -> dict[str, Any]:
    return {"queue_type": "Execution", "total_jobs": 1, "enabled": "True", "started": "True"} | more


QUEUES = {
    "new": queue(resources_max={"walltime": "24:00:00"}),
    "old": queue(),
    "route": {"queue_type": "Route", "enabled": "True", "started": "True"},
}
SERVER = {"pbs": {"managers": "root@*,ann@login", "operators": "bob@*"}}


def job(state: str = "R", **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "Job_Name": "cg", "Job_Owner": "ann@login", "job_state": state, "queue": "new", "server": "pbs",
        "qtime": moment(SUBMITTED), "Priority": 0,
        "Resource_List": {"ncpus": 3, "nodect": 2, "select": "3:ncpus=1", "walltime": "00:10:00"},
        "Variable_List": {"PBS_O_HOME": "/home/ann", "METASCHED": "app=cg:n=1400"},
    }  # fmt: skip
    if state != "Q":
        found |= {"stime": moment(STARTED), "exec_vnode": "(n1:ncpus=2)+(n2:ncpus=1)"}
    return found | more


JOBS = {"7.pbs": job(), "8[].pbs": job("B"), "8[1].pbs": job("R"), "9.pbs": job("Q"), "10.pbs": job("H")}
ENDED = {
    "3.pbs": job("F", Exit_status=0, resources_used={"walltime": "00:00:50"}),
    "4.pbs": job(
        "F",
        Exit_status=271,
        resources_used={"walltime": "00:00:05"},
        queue="old",
        executable="<jsdl-hpcpa:Executable>./solve</jsdl-hpcpa:Executable>",
        argument_list="<jsdl-hpcpa:Argument>-n</jsdl-hpcpa:Argument><jsdl-hpcpa:Argument>400</jsdl-hpcpa:Argument>",
    ),
    "5.pbs": job("F", Exit_status=-3, exec_vnode=""),
}


#: A script that prints what qstat does, from files beside it.
QSTAT = 'case "$*" in -Q*) cat "$0.queues";; -B*) cat "$0.server";; *-x*) cat "$0.ended";; *) cat "$0.jobs";; esac'
FILES = {
    "pbsnodes.sound": printed(nodes=NODES),
    "qstat.queues": printed(Queue=QUEUES),
    "qstat.server": printed(Server=SERVER),
    "qstat.jobs": printed(Jobs=JOBS),
    "qstat.ended": printed(Jobs=ENDED),
}
