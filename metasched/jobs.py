"""A finished job as its scheduler tells of it, and the mark that ties it to an application and to a placement.

The mark stands in the job's comment: ``metasched:app=cg,n=1400`` by the user's hand, to which the hook adds the number
of processors and the placement it was given. Whatever else the comment says stays.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from metasched.records import DEFAULT_SETTINGS, PARAMETER, SETTING_COLUMNS, InputError, Settings

_MARK = re.compile(r"metasched:([A-Za-z0-9_=.,+-]+)")
#: What leaves a job alone, wherever it stands in its comment. One that was advised before is released by its placement.
_OFF = re.compile(r"metasched:off(?:,placement=([0-9a-f]{1,32}))?")
#: Characters of a mark at most: a longer one is not understood, rather than cut within a number.
LONGEST_MARK = 500
#: Bytes of a comment that Slurm takes at most.
LONGEST_COMMENT = 1024
_APPLICATION = re.compile(r"[A-Za-z0-9_.+-]{1,64}")
#: Words that are no parameters.
_RESERVED = {"app", "n", "p", "placement", "checkpoint", "done"}
#: Two accounts of the same moment differ by less than this (s): Slurm's times are whole seconds, the epilog's are not.
SAME_MOMENT = 2.0
#: Between the moment at which a scheduler starts a run and the one that a prolog notes passes less than this (s): nodes
#: boot, and other prologs run first.
LONGEST_BEGINNING = 900.0
#: A checkpoint takes less than this (s).
LONGEST_CHECKPOINT = 86_400.0
#: Processors that a comment may name at most, as many as the API takes.
MOST_PROCESSORS = 10_000_000

#: What a job is besides an ordinary batch job: one of an array, one that was not eligible at once (held, or after
#: others), one with resources besides processors (GPUs), a part of a heterogeneous job, one with several processors a
#: process, one of more processes than processors, one without a script (srun, salloc), one that was suspended, or
#: whose nodes changed, while it ran, or whose scheduler was away when it ended; "unknown" where its scheduler does not
#: tell any more, and "unadvised" where it tells only that no placement was requested for it, as for one of an array;
#: "newer" for what only later versions know.
Kind = Literal[
    "",
    "array",
    "postponed",
    "special",
    "heterogeneous",
    "threaded",
    "overcommitted",
    "interactive",
    "interrupted",
    "unknown",
    "unadvised",
    "newer",
]
#: Kinds whose number of processes, or whose run, is not what the model means: they are left alone.
LEFT_ALONE: frozenset[Kind] = frozenset({"heterogeneous", "overcommitted", "interactive", "interrupted"})
#: Kinds whose scheduler may not know how many processes a job had.
UNCOUNTED: frozenset[Kind] = frozenset({"unknown", "unadvised"})

#: What a job had besides processors, as parameters of its run: ``gpu``, the type of its GPUs, ``gpus``, how many, and
#: ``gres``, other generic resources; empty where it had none.
Devices = tuple[tuple[str, float | str], ...]
DEVICES = ("gpu", "gpus", "gres")
#: The devices of a job that may have had some, which its scheduler does not know.
UNKNOWN_DEVICES: Devices = (("gpu", "?"),)


@dataclass(frozen=True, slots=True)
class Mark:
    """What a comment says about a job: application, problem_size, and perhaps more.

    Parameters
    ----------
    application, problem_size, processors : of the run.
    placement : uid of the placement it was advised.
    settings : ``processes_per_node`` and ``threads``, and the parameters, which all other words are.
    checkpoint : what it takes to stop with a checkpoint (s) of a job that may be moved while it runs; None where it may
        not.
    done : the fraction of it that was done when it was moved last.
    """

    application: str
    problem_size: float
    processors: int | None = None
    placement: str | None = None
    settings: Settings = DEFAULT_SETTINGS
    checkpoint: float | None = None
    done: float = 0.0


def same_run(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether two accounts of the start and end (s) of a job are of one run of it.

    A scheduler's own start may be long before the one that a prolog notes, or after it where nodes boot, and an epilog
    may run late. A job that is run again starts when its first run is over, or nearly so where that was noted late.

    Examples
    --------
    >>> same_run((100.0, 160.0), (104.6, 160.9)), same_run((100.0, 106.0), (105.6, 106.9))
    (True, True)
    >>> same_run((100.0, 160.0), (157.0, 300.0))
    False
    """
    (begun, done), (other_begun, other_done) = one, other
    common = min(done, other_done) - max(begun, other_begun)
    close = min(abs(begun - other_begun), abs(done - other_done)) < SAME_MOMENT
    return close or common > 0.5 * min(done - begun, other_done - other_begun)


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another job of the same user and name that was submitted about when one was, and may have its placement.

    Parameters
    ----------
    job, comment, processors, submitted, command : as of :class:`EndedJob`.
    """

    job: str
    comment: str
    processors: int | None
    submitted: float
    command: str


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that has ended.

    Parameters
    ----------
    scheduler : name of the cluster for its scheduler.
    job : its number there.
    comment : the job's comment.
    partition : the scheduler's name of the partition.
    nodes : names of the nodes.
    processors : P, None where the scheduler did not say.
    start, end : seconds since 1970, to the hundredth where the scheduler is that exact.
    exit_status : 0 where all went well, 128 plus the signal's number where it was killed.
    user, name : the number of its user and the job's name, empty where the scheduler did not say.
    submitted : when it was submitted, in whole seconds since 1970; None where the scheduler did not say.
    kind : what it is besides an ordinary batch job.
    script, command : digests of its script and of its command line, empty where the scheduler did not say.
    processes_per_node, threads : its layout, None where the scheduler did not say.
    energy : what it took (J) of what ``energy_covers`` says, None where that was not measured.
    frequency : clock of its processors (MHz), None where that is not known.
    devices : see :data:`Devices`; None where its scheduler knows of none that it could have had.
    numbers : in its arguments and script, as :mod:`metasched.history.argument_numbers` writes them.
    siblings : see :class:`Sibling`; none where its scheduler does not tell.
    """

    scheduler: str
    job: str
    comment: str
    partition: str
    nodes: tuple[str, ...]
    processors: int | None
    start: float
    end: float
    exit_status: int
    user: str = ""
    name: str = ""
    submitted: float | None = None
    kind: Kind = ""
    script: str = ""
    command: str = ""
    processes_per_node: int | None = None
    threads: int | None = None
    energy: float | None = None
    energy_covers: str = ""
    frequency: float | None = None
    devices: Devices | None = None
    numbers: str = ""
    siblings: tuple[Sibling, ...] = ()

    @property
    def span(self) -> tuple[float, float]:
        """Its start and its end (s)."""
        return self.start, self.end

    @property
    def uid(self) -> str:
        """32 characters that name this run of the job, the same whenever it is reported again."""
        identity = f"{self.scheduler}\n{self.job}\n{self.start:.2f}"
        return hashlib.blake2b(identity.encode("utf-8", "replace"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Fate:
    """What a scheduler says of a job afterwards.

    Parameters
    ----------
    completed : whether it ended by itself and went well; None while that is not settled.
    submitted, started : when it was submitted, and last started (s), None where that is not known.
    processes : how many it has, None where that is not known.
    kind : see :data:`Kind`.
    command : digest of its command line, empty where that is not known.
    threads : processors for each process where they are several; None where one, or not known.
    energy, energy_covers : what its nodes took (J) as the scheduler measured it, and of what; None where it did not.
    devices : see :data:`Devices`; None where its scheduler knows of none that it could have had.
    ended : when its last run ended (s), None where that is not known.
    numbers : in its arguments, as :mod:`metasched.history.argument_numbers` writes them.
    again : whether it was put back into the queue after the run in question, and runs again or will.
    first_run : whether the scheduler knows that it was never put back into the queue.
    siblings : see :class:`Sibling`; none where its scheduler does not tell.
    """

    completed: bool | None
    submitted: float | None = None
    started: float | None = None
    processes: int | None = None
    kind: Kind = ""
    command: str = ""
    threads: int | None = None
    energy: float | None = None
    energy_covers: str = ""
    devices: Devices | None = None
    ended: float | None = None
    numbers: str = ""
    again: bool = False
    first_run: bool = False
    siblings: tuple[Sibling, ...] = ()


def plain(name: bytes) -> str:
    """A job's name as hooks tell it: what is not printable ASCII is a question mark, and no more than 255 of them."""
    return "".join(chr(byte) if 32 <= byte < 127 else "?" for byte in name[:255])


def digest(text: bytes) -> str:
    """What a script or a command line is known by: its length and a polynomial of its bytes, modulo a prime.

    The hook computes the same in Lua, whose numbers are exact up to 2^53; the first 64 KB count.

    >>> digest(b"#!/bin/sh")
    '9-bd740574a3'
    >>> digest(b"")
    ''
    """
    value = 0
    for byte in text[:65_536]:
        value = (value * 257 + byte + 1) % 17_592_186_044_399
    return f"{len(text):x}-{value:x}" if text else ""


def read_mark(comment: str) -> Mark | None:
    """The mark in a comment; None where none says application and problem size, or one says two values for a word.

    >>> read_mark("night run metasched:app=cg,n=1400,steps=100").settings.parameters
    (('steps', 100.0),)
    >>> read_mark("metasched:off") or read_mark("metasched:app=cg,n=100,n=200")
    """
    with suppress(InputError):
        return understood_mark(comment)
    return None


def placement_in(comment: str) -> str:
    """The uid of the placement that a comment names; empty if it names none.

    >>> placement_in("metasched:app=cg,n=1400,placement=" + "1f" * 16)
    '1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f1f'
    """
    if off := _OFF.search(comment):
        return off[1] or ""
    mark = read_mark(comment)
    return (mark and mark.placement) or ""


def says_off(comment: str) -> bool:
    """Whether a comment says that its job is to be left alone: neither advised nor learned.

    >>> says_off("metasched:app=cg,n=1400 metasched:off"), says_off("metasched:app=off,n=1400")
    (True, False)
    """
    return _OFF.search(comment) is not None


def mark_in(comment: str) -> str:
    """The mark alone of a comment; empty if it has none.

    >>> mark_in("night run metasched:app=cg,n=1400 (Ann)")
    'metasched:app=cg,n=1400'
    """
    found = _MARK.search(comment)
    return "" if found is None else found[0]


def understood_mark(comment: str) -> Mark | None:
    """The mark in a comment; None where it has none, or one that says off.

    Raises
    ------
    InputError : when it has a mark that cannot be understood.

    Examples
    --------
    >>> understood_mark("metasched:app=cg,n=abc")
    Traceback (most recent call last):
    metasched.records.errors.InputError: the comment says n=abc, expected a problem size above 0, such as n=1400
    """
    found = _MARK.search(comment)
    if found is None or says_off(comment):
        return None
    if len(found[1]) > LONGEST_MARK:
        raise InputError(f"the comment's mark has {len(found[1])} characters, expected at most {LONGEST_MARK}")
    after = comment[found.end() : found.end() + 1]
    if not after.isascii():  # such as n=1\uff1100, of which 1 alone would count
        raise InputError(f"the comment says {found[0][:80]} and then {after!r}, expected letters, digits and _=.,+-")
    words: dict[str, str] = {}
    for name, equals, value in (word.partition("=") for word in found[1].split(",")):
        if equals and words.setdefault(name, value) != value:
            raise InputError(f"the comment says {name}={words[name]} and {name}={value}, expected one of them")
    application = words.get("app", "")
    if not _APPLICATION.fullmatch(application):
        raise InputError(
            f"the comment says app={application}, expected a name of at most 64 letters, digits and _.+-"
            if application
            else f"the comment says {found[0][:80]} and names no application, expected metasched:app=NAME,n=SIZE"
        )
    try:
        size = float(words.get("n", "").replace("_", "x"))  # Python would read 1_000
    except ValueError:
        size = math.nan
    if not 0.0 < size < math.inf:
        said = f"n={words['n'][:80]}" if "n" in words else f"app={application} and no problem size"
        raise InputError(f"the comment says {said}, expected a problem size above 0, such as n=1400")
    if loose := [word for word in found[1].split(",") if word and "=" not in word]:  # such as 400 of n=1,400
        raise InputError(f"the comment says {loose[0][:80]}, expected words of the form NAME=VALUE")
    count = words.get("p", "")
    processors = int(count) if count.isascii() and count.isdecimal() and len(count) <= len(str(MOST_PROCESSORS)) else 0
    placement = words.get("placement")
    return Mark(
        application,
        size,
        processors if 1 <= processors <= MOST_PROCESSORS else None,
        placement if placement and len(placement) <= 32 else None,
        _settings({name: value for name, value in words.items() if name not in _RESERVED}),
        _between(words.get("checkpoint"), 0.0, LONGEST_CHECKPOINT),
        _between(words.get("done"), 0.0, 1.0) or 0.0,
    )


def moved_comment(comment: str, placement: str, done: float) -> str:
    """The comment of a job that is moved: its mark names the new placement and what was done before.

    >>> moved_comment("night metasched:app=cg,n=1400,checkpoint=60,placement=0a", "0b", 0.25)
    'night metasched:app=cg,n=1400,checkpoint=60,placement=0b,done=0.2500'
    """
    found = _MARK.search(comment)
    if found is None:
        return comment
    kept = [word for word in found[1].split(",") if not word.startswith(("placement=", "done="))]
    # Rounded down: a job is never taken to be done.
    words = [*kept, f"placement={placement}", f"done={min(done, 0.9999):.4f}"]
    return f"{comment[: found.start()]}metasched:{','.join(words)}{comment[found.end() :]}"


def _between(text: str | None, low: float, high: float) -> float | None:
    """A number from low to just below high that a word tells; None where it tells none."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if low <= value < high else None


def _settings(words: Mapping[str, str]) -> Settings:
    """The settings that further words tell; InputError where they cannot be: without them the run would be another."""
    if empty := [name for name, value in words.items() if not value]:
        raise InputError(f"the comment says {empty[0][:80]}= and no value")
    try:
        return Settings.of_cells(
            {name if name in SETTING_COLUMNS else f"{PARAMETER}{name}": value for name, value in words.items()}
        )
    except InputError as error:
        raise InputError(f"the comment's {str(error).removeprefix(PARAMETER)}") from None


def check_times(job: EndedJob) -> None:
    """Refuse a job whose times cannot be.

    Raises
    ------
    InputError : when it never started, or does not end after it started.
    """
    if not 0.0 < job.start < job.end < math.inf:
        raise InputError(
            f"job {job.job} starts at {job.start} and ends at {job.end}, expected it to start after 0 and to end later"
        )
