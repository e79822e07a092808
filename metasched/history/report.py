"""The report of a job log: requested and used time, waits and their causes, and possible improvements.

Nothing here predicts: it counts, and replays the newest jobs as they might have been.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metasched.arrays import Floats, Ints
from metasched.history.argument_numbers import SCRIPT
from metasched.history.job_log import JobLog
from metasched.history.outcomes import how_ended
from metasched.history.playback import FEW, informative_jobs, play
from metasched.history.problem_sizes import explaining_places, stated_numbers, stem_of
from metasched.history.replay import Policy, replay
from metasched.history.run_times.known import PREDICTORS
from metasched.history.run_times.learned import Learned

#: Users and applications that are listed, those with the most processor hours.
LISTED = 10
#: Edges of the classes that waits are listed by: processors, and requested time (s).
WIDTHS, REQUESTS = (1, 2, 9, 65, 513), (0.0, 3601.0, 6 * 3600.0 + 1, 86_401.0)
#: Jobs whose waits are analysed, evenly spread.
MOST_WAITS = 5000
#: Better limits: this multiple of the used time, rounded up to a multiple of seconds, at most the requested time.
SLACK, STEP = 1.2, 600.0
#: An application is worth annotating that ran so often, and whose run times differ by such a factor (geometric standard
#: deviation) among runs of one user on as many processors.
OFTEN, DIFFERENT = 20, 1.5
#: Characters of a name that a configuration may hold.
MOST_NAME = 255


def report(
    log: JobLog, processors: int, *, replayed: int = 5000,
    progress: Callable[[Iterable[int], int], Iterable[int]] = lambda steps, total: steps,
) -> dict[str, Any]:  # fmt: skip
    """The document of ``metasched history report`` for a log."""
    started, users = log.started(), log.labelled("user")
    return {
        "jobs": len(log), "processors": processors, "users": int(np.unique(users[users >= 0]).size),
        "since": float(log.submit_time[0]), "until": float(log.ends().max()),
        "requests": requests(log), "waits": None if started is None else waits(started, processors),
        "what_if": what_if(log, processors, progress, replayed),
        "annotate": annotate(log),
    }  # fmt: skip


def requests(log: JobLog) -> dict[str, Any]:
    """Requested against used processor hours, in total, by user and by application.

    >>> ones = np.ones(4)
    >>> found = requests(JobLog(np.arange(4.0), 900 * ones, ones.astype(int), 3600 * ones))
    >>> found["used_share"], found["used_hours"], found["at_limit"]
    (0.25, 1.0, 0.0)
    """
    known = np.isfinite(log.requested_time)
    share = np.where(known, log.run_time / np.where(known, log.requested_time, 1.0), np.nan)
    states = np.array(log.named("state"))
    bad, reached = how_ended(log.requested_time, log.run_time, states)

    def of(rows: Ints) -> dict[str, Any]:
        hours = log.processors[rows] / 3600.0
        limited, stated = known[rows].any(), (states[rows] != "").any()
        return {
            "jobs": int(rows.size), "used_hours": float(np.sum(log.run_time[rows] * hours)),
            "requested_hours": float(np.nansum(log.requested_time[rows] * hours)) if limited else None,
            "used_share": _median(share[rows]), "at_limit": float(reached[rows].mean()) if limited or stated else None,
            "failed": float(bad[rows].mean()) if stated else None,
        }  # fmt: skip

    every = np.arange(len(log))
    quartiles = np.nanquantile(share, [0.25, 0.5, 0.75]).tolist() if known.any() else None
    return {
        **of(every), "quartiles": quartiles, "by_user": _ranked("user", log.named("user"), of, "used_hours"),
        "by_application": _ranked("application", applications(log), of, "used_hours"),
    }  # fmt: skip


def applications(log: JobLog) -> list[str]:
    """The application of each job, by its executable or its name without numbers; empty if it has neither.

    >>> ones = np.ones(2)
    >>> log = JobLog(ones, ones, ones.astype(int), ones, labels={"name": np.array([0, 1])},
    ...              names={"name": ("run_12", "run_7")})
    >>> applications(log)
    ['run_#', 'run_#']
    """
    return [
        executable or stem_of(name) for executable, name in zip(log.named("executable"), log.named("name"), strict=True)
    ]


def waits(log: JobLog, processors: int) -> dict[str, Any]:
    """Waits by group of jobs (s), and the share of waiting during which enough processors were free.

    Returns
    -------
    dict
        ``though_free`` is the share of all waiting in which as many processors were free as the job asked for: it
        waited for its turn, a reservation or a limit, and not for processors.
    """
    wait, start = log.wait, log.submit_time + log.wait
    order = np.argsort(np.concatenate([start + log.run_time, start]), kind="stable")
    at = np.concatenate([start + log.run_time, start])[order]
    used = np.cumsum(np.concatenate([-log.processors, log.processors])[order])
    every = max(1, len(log) // MOST_WAITS)
    sampled, free = 0.0, 0.0
    for job in np.flatnonzero(wait > 0)[::every].tolist():
        first, last = np.searchsorted(at, [log.submit_time[job], start[job]], side="right")
        edges = np.concatenate([[log.submit_time[job]], at[first:last], [start[job]]])
        held = used[np.arange(first, last + 1) - 1] if first else np.append(0, used[first:last])
        sampled += float(wait[job])
        free += float(np.diff(edges)[processors - held >= log.processors[job]].sum())
    limits = log.limits()
    hour = (log.submit_time // 3600 % 24).astype(int)
    return {
        "mean": float(wait.mean()), "median": float(np.median(wait)), "worst_tenth": float(np.quantile(wait, 0.9)),
        "though_free": free / sampled if sampled else None,
        "by_processors": _by_class(wait, log.processors, WIDTHS),
        "by_requested_time": _by_class(wait, limits, REQUESTS),
        "by_hour": [_mean(wait[hour == each]) for each in range(24)],
        "by_user": _ranked(
            "user", log.named("user"),
            lambda rows: {"jobs": int(rows.size), "mean": float(wait[rows].mean()), "sum": float(wait[rows].sum())},
            "sum",
        ),
    }  # fmt: skip


def what_if(
    log: JobLog, processors: int, progress: Callable[[Iterable[int], int], Iterable[int]], replayed: int
) -> list[dict[str, Any]]:
    """Replays of the newest jobs: with the requested limits, with better limits, and in better orders.

    Parameters
    ----------
    log : the jobs; run times are predicted from the older ones as well.
    processors : of the cluster.
    progress : passes on its first argument, whose length is the second, and shows how far it is.
    replayed : how many of the newest jobs are replayed.
    """
    first = max(0, len(log) - replayed)
    older, log = (log.picked(np.arange(*ends)) for ends in ((0, first), (first, len(log))))
    better = np.minimum(log.limits(), np.ceil(SLACK * log.run_time / STEP).clip(1) * STEP)
    close = replace(log, requested_time=better)
    cases = [
        ("as requested, first come first served with backfill", log, Policy.easy, "requests"),
        (f"limits at most {SLACK:g} times the used time", close, Policy.easy, "requests"),
        ("shortest requests first in backfill", log, Policy.order_only, "requests"),
        ("shortest predicted first in backfill, limits unchanged", log, Policy.order_only, "metasched"),
        ("the same with known run times", log, Policy.order_only, "clairvoyant"),
    ]
    found = []
    for case in progress(range(len(cases)), len(cases)):
        what, jobs, policy, predictor = cases[case]
        run_times = PREDICTORS[predictor](jobs)
        if isinstance(run_times, Learned) and len(older):
            past = older.picked(informative_jobs(older, FEW))
            play(past, run_times.past, lambda row: ("older", row))
        done = replay(jobs, processors, policy, run_times)
        found.append(
            {"case": what, "policy": policy.value, "predictor": predictor, "jobs": len(log),
             "mean_wait": float(done.wait.mean()), "avebsld": float(done.bounded_slowdown.mean())}
        )  # fmt: skip
    return found


def annotate(log: JobLog) -> list[dict[str, Any]]:
    """Applications for which a problem size would help most: those with long and widely spread run times.

    Returns
    -------
    list
        By processor hours. ``spread`` is the geometric standard deviation of run times among runs of one user on as
        many processors; ``problem_sizes`` tells which number in the name, the arguments or the script explains the run
        time, and by how much, and the table of the daemon's configuration that confirms it: one for each place where
        different jobs have it, none where no number explains it.
    """
    names, called, numbers = applications(log), log.named("name"), log.named("numbers")
    users = log.labelled("user")
    groups: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        if name:
            groups.setdefault(name, []).append(row)
    found = []
    for name, listed in groups.items():
        rows = np.array([row for row in listed if log.run_time[row] > 0])
        if len(rows) < OFTEN:
            continue
        spread = _spread(np.log(log.run_time[rows]), users[rows], log.processors[rows])
        hours = float(np.sum(log.run_time[rows] * log.processors[rows]) / 3600.0)
        if spread >= DIFFERENT:
            found.append(
                {"application": name, "jobs": len(rows), "used_hours": hours, "spread": spread,
                 "problem_sizes": _problem_sizes(log, rows, called, numbers)}
            )  # fmt: skip
    return sorted(found, key=lambda each: -float(str(each["used_hours"])))[:LISTED]


def _problem_sizes(log: JobLog, rows: Ints, names: Sequence[str], numbers: Sequence[str]) -> list[dict[str, Any]]:
    """The numbers that are the problem sizes of the jobs with the most frequent stem of all names."""
    stems = [stem_of(names[row]) for row in rows]
    stem = max(Counter(stems).items(), key=lambda each: each[::-1])[0]
    if not stem.isprintable() or '"' in stem or "\\" in stem or len(stem) > MOST_NAME:
        return []
    rows = rows[np.array([each == stem for each in stems])]
    stated = [stated_numbers(names[row], numbers[row]) for row in rows]
    found = explaining_places(stated, log.run_time[rows], log.processors[rows].astype(np.float64))
    application = re.sub(r"[-_]*[^A-Za-z0-9_+.-][^A-Za-z0-9+.]*", "-", stem).strip("-_.+") or "application"
    return [
        {"name": stem, "place": place, "explains": share,
         "configuration": f'[[problem_size]]\nname = "{stem}"\n{_as_key(place)}\napplication = "{application[:64]}"'}
        for place, share in found
    ]  # fmt: skip


def _as_key(place: str) -> str:
    """The line of a configuration that says where a number stands.

    >>> [_as_key(place) for place in ("2", "-n", "script:size=")]
    ['number = 2', 'argument = "-n"', 'script = "size="']
    """
    if place.isdecimal():
        return f"number = {place}"
    inside = place.removeprefix(SCRIPT)
    return f'{"argument" if inside == place else "script"} = "{inside}"'


def _spread(values: Floats, users: Ints, processors: Ints) -> float:
    """The geometric standard deviation within groups of a user and a number of processors."""
    _, group = np.unique(np.stack([users, processors]), axis=1, return_inverse=True)
    group = group.reshape(-1)
    size = np.bincount(group)
    mean = np.bincount(group, weights=values) / size
    freedom = max(len(values) - size.size, 1)
    return float(np.exp(np.sqrt(np.sum((values - mean[group]) ** 2) / freedom)))


def _ranked(what: str, names: list[str], of: Callable[[Ints], dict[str, Any]], by: str) -> list[dict[str, Any]]:
    """Figures by name, in descending order of one figure; jobs without a name are left out."""
    # An array of the names would take as much memory for each as for the longest.
    codes: dict[str, int] = {}
    group = np.array([codes.setdefault(name, len(codes)) for name in names])
    order = np.argsort(group, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    rows = [{what: name, **of(part)} for name, part in zip(codes, parts, strict=True) if name]
    return sorted(rows, key=lambda each: (-each[by], each[what]))[:LISTED]


def _by_class(values: Floats, of: Floats | Ints, edges: tuple[float, ...]) -> list[dict[str, Any]]:
    place = np.searchsorted(np.array(edges), of, side="right") - 1
    return [
        {"from": float(edge), "jobs": int((place == number).sum()), "mean": _mean(values[place == number]),
         "median": _median(values[place == number])}
        for number, edge in enumerate(edges)
    ]  # fmt: skip


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


def _median(values: Floats) -> float | None:
    values = values[np.isfinite(values)]
    return float(np.median(values)) if values.size else None
