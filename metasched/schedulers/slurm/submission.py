"""Reads the requests of an sbatch command, and adds a partition to it."""

from __future__ import annotations

import argparse
import os
import pwd
import re
from collections.abc import Sequence

from metasched.placement.clusters.partition import Holder
from metasched.records import Settings
from metasched.sbatch_words import script_at
from metasched.schedulers.submission import JobRequest, directives

#: Those that request GPUs and other generic resources.
_RESOURCES = ("-G", "--gpus", "--gpus-per-node", "--gpus-per-socket", "--gpus-per-task", "--gres", "--tres-per-task")


def asked_for(words: Sequence[str]) -> JobRequest:
    """The requests of an sbatch command, and of the ``#SBATCH`` lines of its script, which the command overrides.

    A job that requests GPUs or other generic resources is taken for none of its application: where there are some is
    for Slurm to say.

    >>> asked = asked_for(["-n", "4", "--comment=metasched:app=cg,n=900", "-pfast,slow", "no-such-script", "-n8"])
    >>> asked.mark.application, asked.mark.problem_size, asked.processors, asked.partitions
    ('cg', 900.0, 4, ('fast', 'slow'))
    >>> asked_for(["-n", "8", "--ntasks-per-node=4", "-c2", "no-such-script"]).settings.text
    'processes_per_node 4, threads 2'
    >>> asked_for(["-G1", "--comment=metasched:app=cg,n=900", "no-such-script"]).mark is None
    True
    """
    place = script_at(words)
    inside = directives(words[place], "#SBATCH") if place < len(words) else []
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("-n", "--ntasks", type=int)
    parser.add_argument("-N", "--nodes", default="1")
    parser.add_argument("--ntasks-per-node", type=int)
    parser.add_argument("-c", "--cpus-per-task", type=int, default=1)
    parser.add_argument("-p", "--partition", default="")
    parser.add_argument("--comment", default="")
    parser.add_argument("-A", "--account", default="")
    parser.add_argument("-q", "--qos", default="")
    parser.add_argument(*_RESOURCES, dest="resources", default="")
    try:
        options, _ = parser.parse_known_args([*inside, *words[:place]])
    except argparse.ArgumentError:
        options = parser.parse_args([])
    nodes = options.nodes.partition("-")[0]
    per_node = options.ntasks_per_node if (options.ntasks_per_node or 0) >= 1 else None
    processors = options.ntasks or (per_node or 1) * (int(nodes) if re.fullmatch(r"[0-9]{1,9}", nodes) else 1)
    partitions = tuple(name for name in options.partition.split(",") if name)
    holder = Holder(options.qos, _own_name(), options.account)
    layout = Settings(per_node, max(1, options.cpus_per_task))
    return JobRequest(options.comment, max(1, processors), partitions, bool(options.resources), holder, layout)


def _own_name() -> str:
    """The name of this process's user, empty where the system has none for it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def placed(words: Sequence[str], partition: str) -> list[str]:
    """The words with a partition, which is the last option and so overrides others and the script.

    >>> placed(["-pfast,slow", "job.sh", "-p", "own"], "slow")
    ['-pfast,slow', '--partition=slow', 'job.sh', '-p', 'own']
    """
    place = script_at(words)
    if place and words[place - 1] == "--":
        place -= 1
    return [*words[:place], f"--partition={partition}", *words[place:]]
