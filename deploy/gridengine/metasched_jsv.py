"""Speaks Grid Engine's protocol of job submission verifiers on its standard input and output: see jsv(1).

Asks the metasched daemon about each job that names its application, ``qsub -ac metasched=app=cg,n=1400``, or states its
problem size in its name or its arguments, with one deadline for all of it. Whatever goes wrong, the job is accepted as
it was, or is what the site's own verifier made of it, if there is one. Any Python from 3.6 on runs it, with nothing but
the standard library; metasched_lines.py, metasched_site_verifier.py, and the files that all hooks share lie beside it.
"""

import os
import re
import sys
from pathlib import Path
from typing import Dict, List, Optional

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hooks")]
sys.dont_write_bytecode = True

from metasched_advice import Advised, Submitted, asking, left_alone, listed, said, seconds
from metasched_hooks import check, run, settings
from metasched_lines import ServerLines
from metasched_numbers import MOST_WORDS
from metasched_site_verifier import SiteVerifier, named

#: Requests that leave open which hosts a job may have; a job with others is left alone.
LIMITS = ("rt", "cpu", "vmem", "rss", "stack", "data", "core", "fsize")
MEMORY = ("mem_free", "mf", "virtual_free", "vf", "mem_total", "mt", "virtual_total", "vt")
PLAIN_REQUESTS = frozenset(MEMORY).union("{}_{}".format(kind, name) for kind in "hs" for name in LIMITS)
#: What CMDNAME is for jobs without a command of their own.
NO_COMMAND = ("NONE", "QLOGIN", "QRLOGIN", "QRSH", "INTERACTIVE")
#: What a job has that is bound in another way: a start later, or after others, a reservation, a master queue.
ELSEWHERE = ("a", "ar", "h", "hold_jid", "hold_jid_ad", "masterq", "t_min", "l_soft", "q_soft")

Job = Dict[str, str]


def requests(job: Job) -> Dict[str, str]:
    """What the job must have, by name."""
    pairs = (word.partition("=") for word in job.get("l_hard", "").split(",") if word)
    return {key: value for key, _, value in pairs}


def free(job: Job) -> bool:
    """Whether nothing about the job says already where or when it runs."""
    named = job.get("q_hard", "")
    return not (
        any(job.get(key, "n") not in ("n", "0") for key in ELSEWHERE)
        or job.get("now") == "y"
        or job.get("CMDNAME", "NONE") in NO_COMMAND
        or set(requests(job)) - PLAIN_REQUESTS
        or re.search(r"[@*?\[!&|]", named)
        or ("pe_name" in job and re.search(r"[*?\[]", job["pe_name"]))
    )


def mark_of(job: Job) -> str:
    """What the job's user says of it in its context, empty where that is nothing."""
    found = re.search(r"(?:^|,)metasched=(.*)", job.get("ac", ""))
    return found.group(1) if found else ""


def arguments(job: Job) -> List[str]:
    """The words after the program."""
    count = min(int(job.get("CMDARGS", "0")), MOST_WORDS)
    words = [job.get("CMDARG{}".format(place), "") for place in range(count)]
    return ["" if word == "(null)" else word for word in words]  # an empty word


def submitted(job: Job, found: Dict[str, str]) -> Optional[Submitted]:
    """The job, None where it is to be left alone."""
    mark, number = mark_of(job), job.get("JOB_ID", "")
    numbered = re.match(r"[1-9]\d{0,18}\Z", number)
    # What a job states, it is known by together with its number: others of its name may state something else.
    if left_alone(mark) or not free(job) or not (mark or numbered):
        return None
    least, most = (int(job.get(key, "1")) if "pe_name" in job else 1 for key in ("pe_min", "pe_max"))
    return Submitted(
        mark,
        job.get("USER", ""),
        job.get("N", "").encode("utf-8", "surrogateescape"),
        least,
        most,
        listed(job.get("q_hard", found.get("queues", ""))),
        seconds(requests(job).get("h_rt", "")),
        number if numbered else "",
        arguments(job),
        None,  # of the script there is no more than its path on another host
    )


def changes(job: Job, advised: Advised, found: Dict[str, str]) -> List[str]:
    """The lines that place a job."""
    lines = []
    # A pattern of names is taken though a host is gone; a single name that is not known is refused.
    hosts = "hostname=" + "|".join(advised.nodes if len(advised.nodes) > 1 else advised.nodes * 2)
    if job.get("q_hard", found.get("queues", "")):
        lines.append("PARAM q_hard " + advised.queue)
    if advised.binds:
        lines.append("PARAM l_hard " + ",".join(part for part in (job.get("l_hard", ""), hosts) if part))
    elif advised.steer in ("nodes", "features"):
        lines.append("PARAM l_soft " + hosts)
    if "pe_name" in job:
        lines += ["PARAM pe_{} {}".format(end, advised.processors) for end in ("min", "max")]
    said, mark = mark_of(job), advised.mark
    context = job.get("ac", "")
    before = context[: context.index("metasched=")] if said else context + "," if context else ""
    lines.append("PARAM ac {}metasched={}".format(before, mark))
    # What a job states counts as it is in the end, which its epilog sees; its placement is known by its number.
    return [*lines, "ENV ADD METASCHED metasched:{}".format(mark)] if said else lines


def judged(job: Job) -> List[str]:
    """What is answered about a job, the result at the end."""
    try:
        advised, why = asking(HERE).about(lambda found: submitted(job, found))
        if advised is not None:
            return [*changes(job, advised, settings(HERE)), "RESULT STATE CORRECT"]
    except Exception as error:
        why = said(str(error))
    if why:
        return ["LOG WARNING metasched: job unchanged: {}".format(why), "RESULT STATE ACCEPT"]
    return ["RESULT STATE ACCEPT"]


class Verifier:
    """The state between the lines of the protocol."""

    def __init__(self) -> None:
        self._job = {}  # type: Job

    def take(self, line: str, forged: bool) -> List[str]:
        """What is answered to a line of a job, which may have had lines of its user's."""
        command, _, rest = line.partition(" ")
        if command == "START":
            self._job = {}
            return ["STARTED"]
        if command == "PARAM":
            name, _, value = rest.partition(" ")
            self._job.setdefault(name, value)
        if command == "BEGIN":
            job, self._job = self._job, {}
            return ["RESULT STATE ACCEPT"] if forged else judged(job)
        return []


def main() -> None:
    """Answer line by line until there are no more."""
    site = named(HERE)
    if sys.argv[1:] == ["--check"]:
        check(settings(HERE))
        if site and not os.access(site, os.X_OK):
            raise OSError("{}, the verifier of the site, cannot be run".format(site))
        return
    lines = ServerLines(sys.stdin.fileno())
    if site:
        SiteVerifier(site, judged, lines, sys.stdout.buffer).serve()
    verifier = Verifier()
    while True:
        line = lines.next()
        if not line or line.strip() == b"QUIT":
            break
        for each in verifier.take(line.decode("utf-8", "surrogateescape").rstrip("\r\n"), lines.forged):
            sys.stdout.buffer.write(each.encode("utf-8", "surrogateescape") + b"\n")
        sys.stdout.buffer.flush()
    # Without a wait for a question that is still being asked.
    os._exit(0)


if __name__ == "__main__":
    run(main, 1)  # metasched-jsv goes on answering
