"""Hook of OpenPBS for the events queuejob and jobobit: asks metasched about a job, and tells it of one that has ended.

    qmgr -c "create hook metasched event='queuejob,jobobit', alarm=5"
    qmgr -c "import hook metasched application/x-python default metasched_pbs.py"

PBS refuses a job whose hook raises an exception or takes longer than its alarm. So whatever goes wrong, the event is
accepted with the job as it was, and all that is asked has one deadline. The server runs this text with its own Python,
from 3.6 on; it needs nothing but the standard library, and the files in this folder:
"""

import re
import sys
import time
from contextlib import suppress
from html import unescape

import pbs

FOLDER = "/etc/pbs/metasched"

#: Resources that leave open which hosts a job may have.
PLAIN = frozenset(["select", "place", "ncpus", "nodect", "walltime", "cput", "pcput"])
#: Parts of a chunk that are written again for another number of processors.
PARTS = frozenset(["ncpus", "mpiprocs", "mem"])
KILOBYTES = {"b": 1.0 / 1024, "kb": 1, "mb": 1024, "gb": 1024**2, "tb": 1024**3}


class Chunks:
    """What a job selects: chunks that are alike.

    Parameters
    ----------
    count, processors : how many chunks, and processors in each.
    ranks : whether each processor is said to have a process.
    memory : of each chunk (KB), None where that is left open.
    """

    def __init__(self, count, processors, ranks, memory):
        self.count, self.processors, self.ranks, self.memory = count, processors, ranks, memory

    @classmethod
    def of(cls, select, place):
        """Those of a job, None where they could not be placed on other hosts just so."""
        found = re.match(r"(?:(\d{1,7}):)?((?:\w+=\w+)(?::\w+=\w+)*)\Z", select)
        parts = dict(part.split("=") for part in found.group(2).split(":")) if found else {}
        size = re.match(r"(\d{1,15})([kmgt]?b)\Z", parts.get("mem", "0b"))
        count = int(found.group(1) or 1) if found else 0
        numbers = [parts.get("ncpus", ""), parts.get("mpiprocs", parts.get("ncpus", ""))]
        if set(parts) - PARTS or not size or numbers[0] != numbers[1] or not re.match(r"[1-9]\d{0,6}\Z", numbers[0]):
            return None
        if count < 1 or place not in ("", "free", "scatter"):
            return None
        memory = int(size.group(1)) * KILOBYTES[size.group(2)] if "mem" in parts else None
        return cls(count, int(numbers[0]), "mpiprocs" in parts, memory)

    def chunk(self, count, share, host=""):
        """So many chunks of some processors, with as much memory for each processor as before."""
        parts = [str(count), "ncpus={}".format(share)]
        if self.ranks:
            parts.append("mpiprocs={}".format(share))
        if self.memory is not None:
            parts.append("mem={}kb".format(int(-(-self.memory * share // self.processors))))
        return ":".join([*parts, "host=" + host] if host else parts)

    def moved(self, advised):
        """What the job is to select, None where that stays as it is."""
        if advised.binds:
            return "+".join(self.chunk(1, *each) for each in zip(advised.shares(), advised.nodes))  # noqa: B905
        return None if advised.processors == self.count * self.processors else self.chunk(advised.processors, 1)


def text(value):
    """A value of PBS as text, empty where it is not set."""
    return "" if value is None else str(value)


def words(job):
    """The words after the program, of a job that was submitted as a command: ``qsub -- ./solve -n 400``."""
    from metasched_numbers import MOST_WORDS

    listed = re.findall("<jsdl-hpcpa:Argument>([^<]*)</jsdl-hpcpa:Argument>", text(job.argument_list))
    return [unescape(word) for word in listed[:MOST_WORDS]]


def free(job):
    """Whether nothing about the job says already where or when it runs."""
    asked = job.Resource_List
    return not (
        [name for name in asked.keys() if name not in PLAIN and asked[name] is not None]  # noqa: SIM118
        or job.array_indices_submitted
        or job.interactive
        or job.depend
        or job.Execution_Time
        or text(job.Hold_Types) not in ("", "n")
    )


def submitted(event, job, found):
    """What the daemon is asked about a job, None where it is to be left alone."""
    from metasched_advice import MOST_PROCESSORS, Submitted, left_alone, listed

    mark = text((job.Variable_List or {}).get("METASCHED")).replace(":", ",")
    if left_alone(mark) or not free(job):
        return None
    asked = job.Resource_List
    chunks = Chunks.of(text(asked["select"]), text(asked["place"]))
    if chunks is None:
        least = most = int(asked["ncpus"] or 1)
        if asked["select"] is not None:
            return None
    elif re.search(r"(?:^|,)p=\d+-\d+(?:,|\Z)", mark):
        least, most = 1, MOST_PROCESSORS
    else:
        least = most = chunks.count * chunks.processors
    queues = listed(text(job.queue.name if job.queue else "") or found.get("queues", ""))
    if not queues:
        queues = listed(text(pbs.server().default_queue))
    limit = None if asked["walltime"] is None else float(int(asked["walltime"]))
    return Submitted(mark, event.requestor, text(job.Job_Name).encode("utf-8", "surrogateescape"), least, most, queues,
                     limit, arguments=words(job), accounted=True)  # fmt: skip


def place(event):
    """Send a job that is being submitted where it should run; all of it or nothing."""
    from metasched_advice import asking

    job = event.job
    advised, why = asking(Path(FOLDER)).about(lambda found: submitted(event, job, found))
    if why:
        log(why)
    if advised is None:
        return
    asked, variables = job.Resource_List, job.Variable_List
    chunks = Chunks.of(text(asked["select"]), text(asked["place"]))
    queue = pbs.server().queue(advised.queue)
    if queue is None:
        raise ValueError("the server has no queue " + advised.queue)
    moved = chunks.moved(advised) if chunks else None
    select = pbs.select(moved) if moved else None
    mark, before = variables.get("METASCHED"), (job.queue, asked["select"])
    try:
        variables["METASCHED"] = advised.mark.replace(",", ":")
        job.queue = queue
        if select is not None:
            asked["select"] = select
    except Exception:
        if mark is None:
            variables.pop("METASCHED", None)
        else:
            variables["METASCHED"] = mark
        if job.queue is not before[0]:
            job.queue = before[0]
        if asked["select"] is not before[1]:
            asked["select"] = before[1]
        raise


def exit_status(status):
    """As shells tell it: PBS adds 256 to a signal's number, and it is negative where PBS failed."""
    return 1 if status < 0 else 128 + status - 256 if status >= 256 else status


def ended(job, found, now):
    """The job that has ended, None where it never started."""
    from metasched_advice import user_number
    from metasched_hooks import MOST_COMMENT, plain
    from metasched_numbers import in_arguments

    spread = {}
    for host, rest in re.findall(r"([\w.-]{1,255})(?:\[\d+\])?((?::[^()+:]*)+)", text(job.exec_vnode)):
        cpus = re.search(r":ncpus=(\d{1,7})(?=:|\Z)", rest)
        spread[host] = spread.get(host, 0) + (int(cpus.group(1)) if cpus else 0)
    if not job.stime or not spread or job.Exit_status is None:
        return None
    mark = text((job.Variable_List or {}).get("METASCHED")).replace(":", ",")
    number = text(job.id).partition(".")[0]
    report = {
        "scheduler": found.get("cluster", ""),
        "job": number,
        "comment": ("metasched:" + mark)[:MOST_COMMENT] if mark else "",
        "partition": text(job.queue.name if job.queue else ""),
        "nodes": ",".join(spread),
        "processors": sum(spread.values()) or None,
        "start": float(int(job.stime)),
        "end": round(max(now, int(job.stime) + 0.01), 2),
        "exit_status": exit_status(int(job.Exit_status)),
        "user": user_number(text(job.Job_Owner).partition("@")[0]),
        "name": plain(text(job.Job_Name).encode("utf-8", "surrogateescape")),
        "numbers": in_arguments(words(job)),
    }
    if job.qtime:
        report["submitted"] = float(int(job.qtime))
    if "[" in number:
        report["kind"] = "array"
    elif job.interactive:
        report["kind"] = "interactive"
    return report


def note(job):
    """Keep a job that has ended, and tell the daemon of it as far as that can be done within the deadline."""
    from metasched_hooks import begin, deadline_of, keep, settings, tell

    found = settings(Path(FOLDER))
    if os.path.exists(found["off"]):
        return
    kept = keep(found, ended(job, found, time.time()))
    thread, (_, wrong) = begin(lambda: tell(found, kept))
    thread.join(deadline_of(found))
    if wrong:
        log(wrong[0])


def log(line):
    """A line in the server's log."""
    pbs.logmsg(pbs.LOG_WARNING, "metasched: " + re.sub(r"[^ -~]", " ", line)[:200])


event = pbs.event()
try:
    import os
    from pathlib import Path

    sys.dont_write_bytecode = True
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
    if event.type == pbs.QUEUEJOB:
        place(event)
    elif event.type == pbs.JOBOBIT:
        note(event.job)
except Exception as error:
    with suppress(Exception):
        log(str(error))
# Ends the hook by SystemExit, which nothing may catch.
event.accept()
