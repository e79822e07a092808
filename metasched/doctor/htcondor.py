"""Checks of HTCondor's side of an installation: its settings, the cron job on this host, and what machines publish.

Never run in a real pool: what its commands print was written down from its manual, version 23.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from metasched.doctor.findings import Finding, User
from metasched.doctor.hooks import fails
from metasched.schedulers.commands import Commands

#: Settings that must name what metasched.conf adds.
NAMES = {"STARTD_CRON_JOBLIST": ("METASCHED",), "JOB_TRANSFORM_NAMES": ("MetaschedRank", "MetaschedPartition")}
#: Prints each machine and what it publishes.
PUBLISHED = ("condor_status", "-autoformat", "Machine", "MetaschedAvailCPU")


def check_htcondor(name: str, pool: str) -> Iterator[Finding]:
    """Check the pool from this host, which has a schedd."""
    commands = Commands({"_CONDOR_COLLECTOR_HOST": pool})
    try:
        rows = [line.split() for line in commands.run(*PUBLISHED).splitlines() if line.strip()]
    except RuntimeError as error:
        yield Finding(f"{name}: collector", "wrong", str(error), "start condor, see pool in [[htcondor]]")
        return
    machines = {row[0]: row[1:] for row in rows}
    yield Finding(f"{name}: collector", "well", f"answers, {len(machines)} machines")
    without = sorted(machine for machine, value in machines.items() if value in ([], ["undefined"]))
    if without:
        found = f"{len(without)} of {len(machines)} machines publish no loads, {without[0]} among them"
        yield Finding(f"{name}: loads", "watch", found, "metasched setup htcondor there, and see its agent")
    for key, wanted in NAMES.items():
        try:
            there = commands.run("condor_config_val", key).replace(",", " ").split()
        except RuntimeError as error:
            there = [] if "Not defined" in str(error) else [str(error)]
        lacking = [each for each in wanted if each not in there]
        if lacking:
            found, remedy = f"{key} does not name {', '.join(lacking)}", "metasched setup htcondor; condor_reconfig"
            yield Finding(f"{name}: settings", "wrong", found, remedy)
        else:
            yield Finding(f"{name}: settings", "well", f"{key} names {', '.join(wanted)}")
    yield from _cron_job(name, commands)


def _cron_job(name: str, commands: Commands) -> Iterator[Finding]:
    """Whether the cron job runs on this host, where the settings name it."""
    try:
        path = Path(commands.run("condor_config_val", "STARTD_CRON_METASCHED_EXECUTABLE").strip())
    except RuntimeError:
        return
    user = User.named_or_own("condor")
    check, remedy = f"{name}: cron job", "metasched setup htcondor"
    why = user.may(path, "rx") or fails([str(path)], user, {"PATH": os.environ.get("PATH", os.defpath)})
    yield Finding(check, "wrong", why, remedy) if why else Finding(check, "well", f"{path} runs as {user.name}")
