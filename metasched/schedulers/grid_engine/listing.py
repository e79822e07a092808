"""What ``qstat -xml -f -r -F h_rt,mem_total -u '*'`` tells: queue instances, and the jobs that run and wait.

A cluster queue is a partition; its instance on a host, ``queue@host``, is the host's part of it.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

from metasched.schedulers.durations import seconds
from metasched.schedulers.listing import Instance, ListedJob, Listing
from metasched.schedulers.task_ranges import task_count

#: The words that print it.
WORDS = ("qstat", "-xml", "-f", "-r", "-F", "h_rt,mem_total", "-u", "*")
_BYTES = {"K": 1024.0, "M": 1024.0**2, "G": 1024.0**3, "T": 1024.0**4, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
#: How the hook names hosts: a pattern of their names, which is not refused where a host is gone.
_HOSTS = re.compile(r"[A-Za-z0-9._-]+(\|[A-Za-z0-9._-]+)+")


def read_listing(document: ElementTree.Element) -> Listing:
    """The listing in what qstat prints.

    Raises
    ------
    ValueError : when a part of it is not what it should be.

    Examples
    --------
    >>> text = '''<job_info><queue_info><Queue-List><name>new@n2</name><slots_used>3</slots_used>
    ...   <slots_resv>0</slots_resv><slots_total>4</slots_total><resource name="h_rt">infinity</resource>
    ...   <job_list state="running"><JB_job_number>7</JB_job_number><JB_name>cg</JB_name><JB_owner>a</JB_owner>
    ...     <state>r</state><JAT_start_time>2026-11-22T10:04:10</JAT_start_time><slots>3</slots></job_list>
    ... </Queue-List></queue_info><job_info/></job_info>'''
    >>> found = read_listing(ElementTree.fromstring(text))
    >>> found.instances[0].slots, found.instances[0].used, found.instances[0].up, found.jobs[0].slots
    (4, 3, True, {'n2': 3})
    """
    if document.tag != "job_info":
        raise ValueError(f"its first element is {document.tag[:40]}, expected job_info")
    instances: list[Instance] = []
    running: dict[str, ListedJob] = {}
    for each in document.findall("queue_info/Queue-List"):
        queue, at, host = each.findtext("name", "").partition("@")
        if not at:
            raise ValueError(f"a queue instance is called {queue[:80]!r}, expected QUEUE@HOST")
        resources = {one.get("name", ""): one.text or "" for one in each.findall("resource")}
        used = _count(each, "slots_used") + _count(each, "slots_resv")
        instances.append(
            Instance(
                queue, host, _count(each, "slots_total"), used, not each.findtext("state", ""),
                seconds(resources.get("h_rt", "")), megabytes(resources.get("mem_total", "")),
            )
        )  # fmt: skip
        for one in each.findall("job_list"):
            job = _job(one, host, (queue,), "JAT_start_time")
            known = running.get(job.number)
            running[job.number] = job if known is None else _joined(known, job)
    waiting = []
    for one in document.findall("job_info/job_list"):
        asked = tuple(part.text or "" for part in one.findall("hard_req_queue"))
        waiting.append(_job(one, "", asked, "JB_submission_time"))
    return Listing(tuple(instances), (*running.values(), *waiting))


def _job(one: ElementTree.Element, host: str, queues: tuple[str, ...], since: str) -> ListedJob:
    number, tasks = one.findtext("JB_job_number", ""), one.findtext("tasks", "")
    if not number.isdecimal():
        raise ValueError(f"a job's number is {number[:40]!r}")
    requests = {part.get("name", ""): part.text or "" for part in one.findall("hard_request")}
    only = requests.get("hostname", "")
    return ListedJob(
        f"{number}.{tasks}" if tasks and host else number,
        one.findtext("full_job_name", one.findtext("JB_name", "")),
        one.findtext("JB_owner", ""),
        {host: _count(one, "slots")},
        one.findtext("state", "") in ("qw", "Rq"),
        queues,
        seconds(requests.get("h_rt", "")),
        frozenset(only.split("|")) if _HOSTS.fullmatch(only) else frozenset(),
        moment(one.findtext(since, "")),
        1 if host else task_count(tasks),
    )


def _joined(one: ListedJob, other: ListedJob) -> ListedJob:
    """A job that has slots in several queue instances."""
    slots = Counter(one.slots)
    slots.update(other.slots)
    return replace(one, slots=dict(slots), queues=tuple(dict.fromkeys((*one.queues, *other.queues))))


def _count(element: ElementTree.Element, name: str) -> int:
    text = element.findtext(name, "")
    if not text.isdecimal() or len(text) > 9:
        raise ValueError(f"{name} is {text[:40]!r}, expected a number")
    return int(text)


def moment(text: str) -> float | None:
    """A time of this host's zone, such as 2026-11-22T10:04:10, as seconds since 1970; None where there is none."""
    try:
        return time.mktime(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        return None


def megabytes(text: str) -> float:
    """A size such as 23.541G in MB of 1024 KB; NaN where there is none.

    >>> megabytes("1.5G"), megabytes("2097152"), megabytes("-")
    (1536.0, 2.0, nan)
    """
    unit = _BYTES.get(text[-1:], 0.0)
    try:
        return float(text[:-1] if unit else text) * (unit or 1.0) / 1024.0**2
    except ValueError:
        return math.nan
