"""Where in a grid a job would be done first, for programs that choose among sites themselves.

As with :mod:`metasched.client.advice`, a program must go on without it: where there is no sound answer within the
deadline, no site is named. Loads nothing but the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metasched.client.advice import MOST_BYTES, TIMEOUT
from metasched.client.connection import ask
from metasched.client.soundness import NAME, count, matching, number
from monitors.one_line import one_line

#: How daemons answer, part of the deadline that the sites have, and how many of them may be named.
FORMAT, LEFT, MOST = 1, 0.8, 1000


@dataclass(frozen=True, slots=True)
class SiteAdvice:
    """When a job would be done at a site.

    Parameters
    ----------
    site : its name in the configuration of the grid's daemon.
    partition : in the site's words, empty where it has none.
    processors : that the job would have there.
    completion : when it would be done, its data brought first (s from now).
    reason : in words, for people.
    """

    site: str
    partition: str
    processors: int
    completion: float
    reason: str


def ranked_sites(
    address: str,
    application: str,
    problem_size: float,
    *,
    token: str | None = None,
    verify: str | bool = True,
    timeout: float = TIMEOUT,
    **demands: Any,
) -> tuple[SiteAdvice, ...]:
    """The sites of a grid, that where a job would be done first before the others; empty without sound advice in time.

    Parameters
    ----------
    address : a URL, or the path of the Unix socket of the grid's daemon.
    application, problem_size : of the job.
    token : the client's secret, with a role that may read; the Unix socket needs none.
    verify : file of the certificates to trust, True for the system's.
    timeout : how long the daemon may take in all (s); sites that take longer are left out of its answer.
    demands : as ``POST /v1/sites/rankings`` takes them: ``processors``, ``data`` (GB), ``sites``, ``send``, ...

    Examples
    --------
    >>> ranked_sites("/nowhere/metasched.sock", "cg", 1400, processors=[4], data=2.5)
    ()
    """
    question = {"application": application, "problem_size": problem_size, "within": LEFT * timeout} | demands
    try:
        answer = ask(
            address, "POST", "/v1/sites/rankings", question, token=token, verify=verify, timeout=timeout,
            most=MOST_BYTES,
        )  # fmt: skip
        return _sound(answer, question)
    except (RuntimeError, ValueError, TypeError, KeyError, OverflowError):
        return ()


def _sound(answer: Any, question: dict[str, Any]) -> tuple[SiteAdvice, ...]:
    """The sites in an answer; an error where it is not what was asked for."""
    if type(answer["format"]) is not int or answer["format"] != FORMAT or not isinstance(answer["sites"], list):
        raise ValueError("the answer is in another format")
    found = tuple(
        SiteAdvice(
            site=matching(each["site"], NAME),
            partition=matching(each["partition"], NAME, empty=True),
            processors=count(each["processors"]),
            completion=number(each["completion"]),
            reason=one_line(str(each["reason"]), 1000),
        )
        for each in answer["sites"][:MOST]
    )
    allowed, sites = question.get("processors"), question.get("sites")
    names = [each.site for each in found]
    if (
        len(set(names)) < len(names)
        or any(allowed and each.processors not in allowed for each in found)
        or (sites and not set(names) <= set(sites))
    ):
        raise ValueError("the answer does not match the question")
    return found
