"""What the hooks of all schedulers share about a job that is being submitted: question, answer, and the deadline.

A hook reads the job, asks by :class:`Asking`, and changes the job only by what that returns. Lies beside the hooks of a
scheduler, as metasched_hooks.py and metasched_numbers.py do. Needs nothing but the standard library of any Python from
3.6 on.
"""

import math
import os
import pwd
import random
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Sequence, Tuple

from metasched_hooks import ask, begin, deadline_of, number, plain, settings
from metasched_numbers import in_arguments

#: Nodes that an answer may name, and processors that a mark may.
MOST_NODES, MOST_PROCESSORS = 10000, 10000000
#: Characters of a mark at most: a longer one is not understood, rather than cut within a number.
LONGEST_MARK = 500
#: Parameters that a job may have.
MOST_PARAMETERS = 32
#: Words of a mark that are no parameters: what the hooks write and read, those of moving, and layout and clock.
LAYOUT = ("processes_per_node", "threads", "frequency")
RESERVED = ("app", "n", "p", "placement", "checkpoint", "done", *LAYOUT)
#: How long it is known which jobs may state a problem size (s): so often the daemon is asked for their names, and so
#: often jobs that say nothing wait for one that does not answer.
FRESH = 60.0
#: What a partition or a node may be called.
NAME = re.compile(r"[\w.-]{1,255}\Z", re.ASCII)

Words = Dict[str, str]


class UnsoundError(Exception):
    """An answer, or a job, that is not as it should be."""


class Submitted:
    """A job that is being submitted, as far as it matters here.

    Parameters
    ----------
    mark : what the user says of it, such as ``app=cg,n=1400``; empty where it is known by numbers that it states.
    user, name : names of its user, or the user's number, and its own.
    least, most : how many processors it asks for.
    queues : names of the partitions that it may be sent to, all where there are none.
    limit : its time limit (s), None where it has none.
    number : its number, empty where it has none yet.
    arguments : the words of its command line after the program.
    script : the text of the numbers in its script; None where the hook cannot see the script, but the epilog can.
    accounted : whether its scheduler tells the mark of a job that has ended.
    """

    def __init__(
        self,
        mark: str,
        user: str,
        name: bytes,
        least: int,
        most: int,
        queues: Tuple[str, ...] = (),
        limit: Optional[float] = None,
        number: str = "",
        arguments: Sequence[str] = (),
        script: Optional[str] = "",
        accounted: bool = False,
    ) -> None:
        self.arguments, self.script, self.accounted, self.by_numbers = arguments, script, accounted, False
        self.wrong = ""  # with the mark
        if len(mark) > LONGEST_MARK:
            mark, self.wrong = "", "the mark is longer than {} characters".format(LONGEST_MARK)
        if not re.match(r"[A-Za-z0-9_=.,+-]*\Z", mark):  # the daemon would read it up to there
            self.wrong = "the mark holds other characters than letters, digits and _=.,+-"
        words = [word.partition("=")[::2] for word in mark.split(",") if word]
        for key, value in words:
            if not _sound(key, value):
                self.wrong = "the mark holds a wrong {}".format(key)
        self.words = dict(words)  # type: Words
        if len(self.words) < len(set(words)):
            self.wrong = "the mark states two values for one word"
        if len(self.parameters) > MOST_PARAMETERS:
            self.wrong = "the mark holds more than {} parameters".format(MOST_PARAMETERS)
        self.user, self.name, self.queues, self.limit, self.number = user, name, queues, limit, number
        found = re.match(r"(\d{1,8})(?:-(\d{1,8}))?\Z", self.words.get("p", ""))
        if found and most > 1:
            least, most = max(least, int(found.group(1))), min(most, int(found.group(2) or found.group(1)))
        self.least, self.most = least, min(most, MOST_PROCESSORS)

    @property
    def parameters(self) -> Words:
        """Those of its application, as its user states them."""
        return {name: value for name, value in self.words.items() if name not in RESERVED}

    @property
    def silent(self) -> bool:
        """Whether its user says nothing of it."""
        return not self.words and not self.wrong

    @property
    def stem(self) -> str:
        """Its name with ``#`` for each number."""
        return re.sub("[0-9]+", "#", plain(self.name))

    def read_numbers(self, found: Dict[str, str], ends: float) -> bool:
        """Ask what the job is by the numbers that it states; whether it states a problem size."""
        stated = {"name": plain(self.name), "arguments": in_arguments(self.arguments), "script": self.script}
        answer = ask(found, "/v1/problem-sizes", stated, ends)
        if not isinstance(answer, dict):
            raise UnsoundError("it is no object")
        name, size = answer.get("application"), answer.get("problem_size")
        if name is None:
            return False
        if not isinstance(name, str) or not isinstance(size, (int, float)) or isinstance(size, bool):
            raise UnsoundError("it names no application and problem size")
        self.words, self.by_numbers = {"app": name, "n": "{:.14g}".format(size)}, True
        return True

    def question(self, found: Dict[str, str]) -> Dict[str, Any]:
        """What the daemon is asked, by what hooks.conf says."""
        if self.wrong:
            raise UnsoundError(self.wrong)
        name, size = self.words.get("app", ""), number(self.words.get("n", ""))
        if not re.match(r"[A-Za-z0-9_.+-]{1,64}\Z", name) or not (0 < size < math.inf):
            raise UnsoundError("app={},n={} is no mark".format(name, size))
        if not 1 <= self.least <= self.most:
            raise UnsoundError("no number of processors is asked for")
        asked = {
            "application": name,
            "problem_size": size,
            "scheduler": found.get("cluster", ""),
            "user": user_number(self.user),
            "name": plain(self.name),
            "asked_at": round(time.time(), 3),  # by the clock that dates the submission
        }  # type: Dict[str, Any]
        if self.number:
            asked["job"] = self.number
        elif self.by_numbers:  # another job that was submitted with it may state others, or none
            asked["stated"] = True
        elif self.accounted:
            asked["annotated"] = True
        if self.least == self.most:
            asked["processors"] = [self.least]
        else:
            asked["min_processors"], asked["max_processors"] = self.least, self.most
        if self.queues:
            asked["partitions"] = list(self.queues)
        if self.limit:
            asked["time_limit"] = self.limit
        if self.parameters:
            asked["parameters"] = self.parameters
        if "frequency" in self.words:
            asked["frequency"] = number(self.words["frequency"])
        # What its user states is also what its run teaches. Threads are not asked for: where a process has several, no
        # scheduler here says whether a slot is one of the processes or one of the threads.
        if "processes_per_node" in self.words:
            asked["processes_per_node"] = int(number(self.words["processes_per_node"]))
        return asked


class Advised:
    """Where a job should run.

    Parameters
    ----------
    queue, nodes, processors : names of the partition and of the nodes, and how many processors on them.
    steer : how it is to be sent there: ``nodes``, ``partition`` or ``features``.
    known : whether the administrator lets jobs be bound to nodes, all of which are among those.
    mark : of the job from now on.
    """

    def __init__(self, queue: str, nodes: List[str], processors: int, steer: str, known: bool, mark: str) -> None:
        self.queue, self.nodes, self.processors = queue, nodes, processors
        self.steer, self.known, self.mark = steer, known, mark

    @property
    def binds(self) -> bool:
        """Whether the job is to start on these nodes only."""
        return self.known and self.steer == "nodes"

    def shares(self) -> List[int]:
        """Processors on each node, as even as can be."""
        each, more = divmod(self.processors, len(self.nodes))
        return [each + (place < more) for place in range(len(self.nodes))]


def _sound(name: str, value: str) -> bool:
    """Whether a word of a mark is one that the daemon reads; those without which a run is the same all count."""
    if name not in RESERVED:
        with suppress(ValueError):  # which a word is; Python reads nan and inf as numbers
            return len(name) <= 64 and len(value) <= 64 and math.isfinite(float(value.replace("_", "x")))
        return len(name) <= 64 and 0 < len(value) <= 64
    if name not in LAYOUT:
        return True
    with suppress(ValueError, OverflowError):
        amount = number(value)
        return 10 <= amount <= 1e5 if name == "frequency" else amount >= 1 and amount == int(amount)
    return False


def left_alone(mark: str) -> bool:
    """Whether a mark asks for that."""
    return mark.split(",")[0] == "off"


def listed(text: str) -> Tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def takes_part(user: str, found: Dict[str, str]) -> bool:
    """Whether the administrator lets jobs of this user take part."""
    if "canary_users" in found and user not in listed(found["canary_users"]):
        return False
    return random.random() * 100 < number(found.get("canary_share", "100"))  # noqa: S311


def user_number(name: str) -> str:
    """The number of a user, as the epilog tells it."""
    try:
        return name if name.isdigit() else str(pwd.getpwnam(name).pw_uid)
    except KeyError:
        return name


def seconds(text: str) -> Optional[float]:
    """The seconds of 3600 or 1:0:0; None where there is no limit."""
    total = 0.0
    for part in text.split(":"):
        if not re.match(r"\d{0,9}\Z", part):
            return None
        total = 60 * total + int(part or 0)
    return total or None


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
            if not NAME.match(before + rest):
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
    if not isinstance(answer.get("partition"), str) or not NAME.match(answer["partition"]):
        raise UnsoundError("it names no queue")
    count, processors = answer.get("node_count"), answer.get("processors")
    for each in (count, processors):
        if not isinstance(each, int) or isinstance(each, bool) or each < 1:
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


def advised(job: Submitted, found: Dict[str, str], ends: float) -> Optional[Advised]:
    """Where a job should run; None where it is to be left as it is.

    Parameters
    ----------
    job : what is asked about.
    found : what hooks.conf says.
    ends : when the time is over, by the monotonic clock (s).

    Raises
    ------
    Exception
        Where there is no sound answer in time.
    """
    asked = job.question(found)
    answer = ask(found, "/v1/placements", asked, ends)
    if not isinstance(answer, dict):
        raise UnsoundError("it is no object")
    if answer.get("placed") is not True or answer.get("mode") != "act":
        return None
    names = checked(answer, asked)
    known = set(unfold(found["nodes"].replace(" ", ""), MOST_NODES) if found.get("nodes") else [])
    if known and not known.issuperset(names):
        raise UnsoundError("it names unknown nodes")
    fields = dict(job.words, p=answer["processors"], placement=answer["id"])
    mark = ",".join("{}={}".format(*each) for each in fields.items())
    if len(mark) > LONGEST_MARK:  # the job could neither be released nor learned
        raise UnsoundError("the mark has no room for the placement")
    if re.search(r"[\x00-\x1f]", mark):
        raise UnsoundError("it holds control characters")
    return Advised(answer["partition"], names, answer["processors"], str(answer.get("steer")), bool(known), mark)


class Asking:
    """Asks about one job after another, each within the deadline of hooks.conf for all of it.

    Names of users and hosts are looked up by the system's library, which knows no deadline: so a thread asks, and it is
    waited for.

    Parameters
    ----------
    here : the folder of hooks.conf.
    """

    def __init__(self, here: Path) -> None:
        self._here = here
        self._thread = None  # type: Any
        self._sized, self._until = frozenset(), 0.0  # type: FrozenSet[str], float

    def about(self, read: Callable[[Dict[str, str]], Optional[Submitted]]) -> Tuple[Optional[Advised], str]:
        """Where a job should run, None where it is to be left as it is; and why there is no answer, empty where not.

        Parameters
        ----------
        read : gives the job, by what hooks.conf says, or None where it is to be left alone.
        """
        found = settings(self._here)
        ends = time.monotonic() + deadline_of(found)
        try:
            job = read(found)
        except Exception as error:
            return None, said(str(error))
        if job is None or (job.silent and time.monotonic() < self._until and job.stem not in self._sized):
            return None, ""
        if self._thread is not None and self._thread.is_alive():
            return None, "an earlier question is still being asked"
        self._thread, (answers, wrong) = begin(lambda: self._answer(job, found, ends))
        self._thread.join(max(0.0, ends + 0.02 - time.monotonic()))
        if answers:
            return answers[0], ""
        return None, said(" ".join(wrong) or "no answer in time")

    def _answer(self, job: Submitted, found: Dict[str, str], ends: float) -> Optional[Advised]:
        if os.path.exists(found["off"]) or not takes_part(job.user, found):
            return None
        if job.silent and not (job.stem in self._names(found, ends) and job.read_numbers(found, ends)):
            return None
        return advised(job, found, ends)

    def _names(self, found: Dict[str, str], ends: float) -> FrozenSet[str]:
        """The names of the jobs that may state a problem size, with ``#`` for each number."""
        if time.monotonic() >= self._until:
            self._sized, self._until = frozenset(), time.monotonic() + FRESH
            answer = ask(found, "/v1/problem-sizes", None, ends)
            names = answer.get("names") if isinstance(answer, dict) else ()
            self._sized = frozenset(name for name in names or () if isinstance(name, str))
        return self._sized


_ASKING = {}  # type: Dict[str, Asking]


def asking(here: Path) -> Asking:
    """What asks by the hooks.conf of a folder: the same for all jobs of a process."""
    return _ASKING.setdefault(str(here), Asking(here))


def said(text: str) -> str:
    """A line for a log."""
    return re.sub(r"[^ -~]", " ", text)[:200]
