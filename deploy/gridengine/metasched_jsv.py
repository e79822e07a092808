"""Speaks Grid Engine's protocol of job submission verifiers on its standard input and output: see jsv(1).

Asks the metasched daemon about each job that names its application, ``qsub -ac metasched=app=cg,n=1400``, with one
deadline for all of it. Whatever goes wrong, the job is accepted as it was. Any Python from 3.6 on runs it, with nothing
but the standard library; metasched_hooks.py lies beside it.
"""

import math
import os
import pwd
import random
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "hooks")]
sys.dont_write_bytecode = True

from metasched_hooks import ask, check, plain, run, settings

#: Longest deadline that is taken from hooks.conf, well below Grid Engine's own patience with verifiers (s).
LONGEST = 2.0
#: Nodes that an answer may name, and processors that a mark may.
MOST_NODES, MOST_PROCESSORS = 10000, 10000000
#: Requests that leave open which hosts a job may have; a job with others is left alone.
LIMITS = ("rt", "cpu", "vmem", "rss", "stack", "data", "core", "fsize")
MEMORY = ("mem_free", "mf", "virtual_free", "vf", "mem_total", "mt", "virtual_total", "vt")
PLAIN_REQUESTS = frozenset(MEMORY).union("{}_{}".format(kind, name) for kind in "hs" for name in LIMITS)
#: What a job has that is bound in another way: a start later, or after others, a reservation, a master queue.
ELSEWHERE = ("a", "ar", "h", "hold_jid", "hold_jid_ad", "masterq", "t_min", "l_soft", "q_soft")

Job = Dict[str, str]


class UnsoundError(Exception):
    """An answer, or a job, that is not as it should be."""


def marked(context: str) -> Optional[Dict[str, str]]:
    """The words of the mark in a job's context; None where there is none, or where it asks to be left alone."""
    found = re.search(r"(?:^|,)metasched=(.*)", context)
    if not found or found.group(1).split(",")[0] == "off":
        return None
    words = [word.partition("=") for word in found.group(1)[:500].split(",")]
    return {key: value for key, _, value in words}


def application(words: Dict[str, str]) -> Tuple[str, float]:
    """Application and problem size of a mark."""
    size = float(words.get("n", ""))
    if not re.match(r"[A-Za-z0-9_.+-]{1,64}\Z", words.get("app", "")) or not (0 < size < math.inf):
        raise UnsoundError("app={app},n={n} is no mark".format(app=words.get("app"), n=words.get("n")))
    return words["app"], size


def numbers(words: Dict[str, str], job: Job) -> Tuple[int, int]:
    """The least and the greatest number of processors: those of the mark within those of the job's environment."""
    least, most = (int(job.get(key, "1")) if "pe_name" in job else 1 for key in ("pe_min", "pe_max"))
    found = re.match(r"(\d{1,8})(?:-(\d{1,8}))?\Z", words.get("p", ""))
    if found and "pe_name" in job:
        low, high = int(found.group(1)), int(found.group(2) or found.group(1))
        least, most = max(least, low), min(most, high)
    if not 1 <= least <= most:
        raise UnsoundError("no number of processors is asked for")
    return least, min(most, MOST_PROCESSORS)


def requests(job: Job) -> Dict[str, str]:
    """What the job must have, by name."""
    pairs = (word.partition("=") for word in job.get("l_hard", "").split(",") if word)
    return {key: value for key, _, value in pairs}


def seconds(text: str) -> Optional[float]:
    """The seconds of 3600 or 1:0:0; None where there is no limit."""
    total = 0.0
    for part in text.split(":"):
        if not re.match(r"\d{0,9}\Z", part):
            return None
        total = 60 * total + int(part or 0)
    return total or None


def free(job: Job) -> bool:
    """Whether nothing about the job says already where or when it runs."""
    named = job.get("q_hard", "")
    return not (
        any(job.get(key, "n") not in ("n", "0") for key in ELSEWHERE)
        or job.get("now") == "y"
        or job.get("CMDNAME", "NONE") == "NONE"
        or set(requests(job)) - PLAIN_REQUESTS
        or re.search(r"[@*?\[!&|]", named)
        or ("pe_name" in job and re.search(r"[*?\[]", job["pe_name"]))
    )


def takes_part(job: Job, found: Dict[str, str]) -> bool:
    """Whether the administrator lets jobs of this user take part."""
    users = [name.strip() for name in found.get("canary_users", "").split(",")]
    if "canary_users" in found and job.get("USER", "") not in users:
        return False
    return random.random() * 100 < float(found.get("canary_share", "100"))  # noqa: S311


def user_number(name: str) -> str:
    """The number of a user, as the epilog tells it."""
    try:
        return str(pwd.getpwnam(name).pw_uid)
    except KeyError:
        return name


def question(job: Job, words: Dict[str, str], found: Dict[str, str]) -> Dict[str, Any]:
    """What the daemon is asked."""
    name, size = application(words)
    least, most = numbers(words, job)
    asked = {
        "application": name,
        "problem_size": size,
        "scheduler": found.get("cluster", ""),
        "user": user_number(job.get("USER", "")),
        "name": plain(job.get("N", "").encode("utf-8", "surrogateescape")),
    }  # type: Dict[str, Any]
    if re.match(r"[1-9]\d{0,18}\Z", job.get("JOB_ID", "")):
        asked["job"] = job["JOB_ID"]
    if least == most:
        asked["processors"] = [least]
    else:
        asked["min_processors"], asked["max_processors"] = least, most
    queues = [queue.strip() for queue in job.get("q_hard", found.get("queues", "")).split(",") if queue.strip()]
    if queues:
        asked["partitions"] = queues
    limit = seconds(requests(job).get("h_rt", ""))
    if limit:
        asked["time_limit"] = limit
    return asked


def unfold(folded: str, most: int) -> List[str]:
    """The names that a folded name stands for, at most ``most``."""
    names = []  # type: List[str]
    waiting = [("", part) for part in reversed(re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", folded))]
    if len(waiting) > most or ",".join(part for _, part in reversed(waiting)) != folded:
        raise UnsoundError("its nodes are no names")
    while waiting:
        before, rest = waiting.pop()
        found = re.match(r"([\w.-]*)\[([\d,-]+)\](.*)\Z", rest, re.ASCII | re.DOTALL)
        if not found:
            if not re.match(r"[\w.-]{1,255}\Z", before + rest, re.ASCII):
                raise UnsoundError("its nodes are no names")
            names.append(before + rest)
            if len(names) > most:
                raise UnsoundError("it names too many nodes")
            continue
        more = []
        for part in found.group(2).split(","):
            span = re.match(r"(\d{1,9})(?:-(\d{1,9}))?\Z", part)
            if not span:
                raise UnsoundError("its nodes are no names")
            low, high = int(span.group(1)), int(span.group(2) or span.group(1))
            if high < low or high - low >= most or len(more) + len(waiting) > 2 * most:
                raise UnsoundError("it names too many nodes")
            width = len(span.group(1))
            more += [(before + found.group(1) + str(n).zfill(width), found.group(3)) for n in range(low, high + 1)]
        waiting += reversed(more)
    if len(set(names)) != len(names):
        raise UnsoundError("it names a node twice")
    return names


def checked(answer: Any, asked: Dict[str, Any]) -> List[str]:
    """The nodes of an answer that is sound."""
    if asked.get("partitions") and answer.get("partition") not in asked["partitions"]:
        raise UnsoundError("it names another queue than asked for")
    if not isinstance(answer.get("partition"), str) or not re.match(r"[\w.-]{1,255}\Z", answer["partition"], re.ASCII):
        raise UnsoundError("it names no queue")
    count, processors = answer.get("node_count"), answer.get("processors")
    for number in (count, processors):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise UnsoundError("it counts no nodes or processors")
    low = asked.get("min_processors", asked.get("processors", [0])[0])
    high = asked.get("max_processors", asked.get("processors", [0])[0])
    if not low <= processors <= high or count > MOST_NODES or count > processors:
        raise UnsoundError("it gives other processors than asked for")
    if not isinstance(answer.get("nodes"), str) or len(answer["nodes"]) > 65536:
        raise UnsoundError("it names no nodes")
    if not isinstance(answer.get("id"), str) or not re.match(r"[0-9a-f]{1,32}\Z", answer["id"]):
        raise UnsoundError("it has no id")
    names = unfold(answer["nodes"], count)
    if len(names) != count:
        raise UnsoundError("it miscounts its nodes")
    return names


def changes(job: Job, words: Dict[str, str], answer: Any, names: List[str], found: Dict[str, str]) -> List[str]:
    """The lines that place a job."""
    lines = []
    known = set(unfold(found["nodes"].replace(" ", ""), MOST_NODES) if found.get("nodes") else [])
    # A pattern of names is taken though a host is gone; a single name that is not known is refused.
    hosts = "hostname=" + "|".join(names if len(names) > 1 else names * 2)
    own = job.get("q_hard", found.get("queues", ""))
    if own:
        lines.append("PARAM q_hard " + answer["partition"])
    if known and not known.issuperset(names):
        raise UnsoundError("it names unknown nodes")
    if answer.get("steer") == "nodes" and known:
        lines.append("PARAM l_hard " + ",".join(part for part in (job.get("l_hard", ""), hosts) if part))
    elif answer.get("steer") in ("nodes", "features"):
        lines.append("PARAM l_soft " + hosts)
    if "pe_name" in job:
        lines += ["PARAM pe_min {}".format(answer["processors"]), "PARAM pe_max {}".format(answer["processors"])]
    fields = dict(words, p=answer["processors"], placement=answer["id"])
    mark = ",".join("{}={}".format(*each) for each in fields.items())
    before = job.get("ac", "")[: job["ac"].index("metasched=")]
    lines += ["PARAM ac {}metasched={}".format(before, mark), "ENV ADD METASCHED metasched:{}".format(mark)]
    if any(re.search(r"[\x00-\x1f]", line) for line in lines):
        raise UnsoundError("it holds control characters")
    return lines


def advice(job: Job, ends: float) -> List[str]:
    """The lines that answer for a job, the last of them its result."""
    found = settings(HERE)
    words = marked(job.get("ac", ""))
    if words is None or os.path.exists(found["off"]) or not free(job) or not takes_part(job, found):
        return []
    asked = question(job, words, found)
    answer = ask(found, "/v1/placements", asked, ends)
    if not isinstance(answer, dict):
        raise UnsoundError("it is no object")
    if answer.get("placed") is not True or answer.get("mode") != "act":
        return []
    return changes(job, words, answer, checked(answer, asked), found)


class Verifier:
    """The state between the lines of the protocol."""

    def __init__(self) -> None:
        self._job = {}  # type: Job
        self._thread = None  # type: Optional[threading.Thread]

    def take(self, line: str) -> List[str]:
        """What is answered to a line."""
        command, _, rest = line.partition(" ")
        if command == "START":
            self._job = {}
            return ["STARTED"]
        if command == "PARAM":
            name, _, value = rest.partition(" ")
            self._job[name] = value
        return self._result() if command == "BEGIN" else []

    def _result(self) -> List[str]:
        job, self._job = self._job, {}
        if "ac" not in job or "metasched=" not in job["ac"]:
            return ["RESULT STATE ACCEPT"]
        answers = []  # type: List[List[str]]
        wrong = []  # type: List[str]
        try:
            deadline = float(settings(HERE).get("deadline", "0.2"))
        except ValueError:
            deadline = 0.2
        deadline = deadline if 0 < deadline <= LONGEST else LONGEST
        ends = time.monotonic() + deadline

        def think() -> None:
            try:
                answers.append(advice(job, ends))
            except Exception as error:
                wrong.append(str(error))

        # Names of users and hosts are looked up by the system's library, which knows no deadline: so it is waited for.
        if self._thread is not None and self._thread.is_alive():
            wrong.append("an earlier question is still being asked")
        else:
            self._thread = threading.Thread(target=think, daemon=True)
            self._thread.start()
            self._thread.join(max(0.0, ends + 0.02 - time.monotonic()))
        if answers and answers[0]:
            return answers[0] + ["RESULT STATE CORRECT"]
        if not answers:
            said = re.sub(r"[^ -~]", " ", " ".join(wrong) or "no answer in time")[:200]
            return ["LOG WARNING metasched: job unchanged: {}".format(said), "RESULT STATE ACCEPT"]
        return ["RESULT STATE ACCEPT"]


def main() -> None:
    """Answer line by line until there are no more."""
    if sys.argv[1:] == ["--check"]:
        check(settings(HERE))
        return
    verifier = Verifier()
    while True:
        line = sys.stdin.buffer.readline()
        if not line or line.strip() == b"QUIT":
            break
        for each in verifier.take(line.decode("utf-8", "surrogateescape").rstrip("\r\n")):
            sys.stdout.buffer.write(each.encode("utf-8", "surrogateescape") + b"\n")
        sys.stdout.buffer.flush()
    # Without a wait for a question that is still being asked.
    os._exit(0)


if __name__ == "__main__":
    run(main)
