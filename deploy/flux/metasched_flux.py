"""Frobnicator plugin of Flux: asks metasched where a job that is being submitted should run, and gives it that queue.

In Flux's configuration, before the plugin that turns queues into constraints:

    [ingest.frobnicator]
    plugins = ["/etc/flux/metasched/metasched_flux.py", "defaults", "constraints"]

Flux rejects a job whose plugin raises an exception. So whatever goes wrong, the job stays as it was, and all that is
asked has one deadline. Needs nothing but the standard library and Flux; the shared files lie beside it.
"""

import copy
import re
import sys
from pathlib import Path

from flux.job.frobnicator import FrobnicatorPlugin

HERE = Path(__file__).resolve().parent


def submitted(attributes, resources, tasks, userid, found):
    """What the daemon is asked about a job, None where it is to be left alone."""
    from metasched_advice import Submitted, left_alone, listed

    mark = attributes.get("user", {}).get("metasched", "")
    system = attributes.get("system", {})
    if not isinstance(mark, str) or left_alone(mark) or not re.match(r"[A-Za-z0-9_=.,+-]{0,500}\Z", mark):
        return None
    (slot,) = resources if len(resources) == 1 else ({},)
    (core,) = slot.get("with", ()) if len(slot.get("with", ())) == 1 else ({},)
    alike = slot.get("type") == "slot" and core.get("type") == "core" and core.get("count") == 1 and "with" not in core
    count = slot.get("count")
    if not alike or type(count) is not int or any(name in system for name in ("constraints", "dependencies")):
        return None
    queues = listed(str(system.get("queue", "") or found.get("queues", "")))
    if not queues:
        return None
    name = str(system.get("job", {}).get("name") or Path(str(tasks[0]["command"][0])).name)
    limit = float(system.get("duration") or 0.0) or None
    # Of ended jobs Flux tells no arguments: what these state would not be learned.
    return Submitted(mark, str(userid), name.encode("utf-8", "surrogateescape"), count, count, queues, limit)


class Frobnicator(FrobnicatorPlugin):
    """Changes a job only as far as there is sound advice."""

    def frob(self, jobspec, userid, urgency, flags):
        """Give a job the queue in which it should be done first; never raises an exception."""
        try:
            self._place(jobspec, userid)
        except Exception as error:
            print("metasched: job unchanged: {}".format(error), file=sys.stderr)

    def _place(self, jobspec, userid):
        sys.dont_write_bytecode = True
        for folder in (str(HERE), str(HERE.parent / "hooks")):
            if folder not in sys.path:
                sys.path.insert(0, folder)
        from metasched_advice import asking

        spec = jobspec.jobspec
        before = copy.deepcopy(spec["attributes"])
        advised, why = asking(HERE).about(
            lambda found: submitted(before, spec["resources"], spec["tasks"], userid, found)
        )
        if why:
            raise ValueError(why)
        if advised is None:
            return
        try:
            jobspec.setattr("system.queue", advised.queue)
            jobspec.setattr("user.metasched", advised.mark)
        except Exception:
            spec["attributes"] = before
            raise
