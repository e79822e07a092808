"""The report of ``metasched history report``: tables for a terminal, and a page with pictures that stands alone."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import jinja2
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from rich import box
from rich.console import Group
from rich.table import Table

from metasched.cli.figures import COLOURS, with_grid
from metasched.history.argument_numbers import SCRIPT
from metasched.history.job_log import JobLog
from metasched.plain_numbers import number_of, span

#: Jobs in the picture of requests, evenly spread.
DRAWN = 4000
#: Times before this (1980) count from the beginning of a log, as in many archives, not from 1970.
DATED = 10 * 365.25 * 86_400
#: Marks of an axis of times (s).
TIMES = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 36_000: "10 h", 86_400: "1 d", 864_000: "10 d"}

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ title }}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<style>body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse}
td,th{padding:.2rem .8rem;border-bottom:1px solid #ccc;text-align:right}td:first-child,th:first-child{text-align:left}
img{max-width:100%}</style></head><body>
<h1>{{ title }}</h1><p>{{ summary }}</p>
{% for picture in pictures %}<h2>{{ picture.title }}</h2><p>{{ picture.said }}</p>
<img alt="{{ picture.said }}" src="data:image/png;base64,{{ picture.data }}">{% endfor %}
{% for table in tables %}<h2>{{ table.title }}</h2><table><thead><tr>{% for cell in table.head %}<th>{{ cell }}</th>
{% endfor %}</tr></thead><tbody>{% for row in table.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table>{% endfor %}
</body></html>
"""

Rows = tuple[str, Sequence[str], list[list[str]]]

#: Characters of a name that tables show at most.
LONGEST_SHOWN = 64


def tables(document: dict[str, Any]) -> list[Rows]:
    """The tables of a report: title, heads and cells."""
    asked, waits = document["requests"], document["waits"]
    heads = ("jobs", "used", "requested", "used of limit", "at limit", "failed")

    def used(each: dict[str, Any]) -> list[str]:
        requested = "-" if (hours := each["requested_hours"]) is None else f"{hours:,.0f}"
        return [f"{each['jobs']:,}", f"{each['used_hours']:,.0f}", requested,
                *(_share(each[name]) for name in ("used_share", "at_limit", "failed"))]  # fmt: skip

    found: list[Rows] = [
        ("Used and requested processor hours, by user", ("user", *heads),
         [["all", *used(asked)], *([_short(each["user"]), *used(each)] for each in asked["by_user"])]),
    ]  # fmt: skip
    if asked["by_application"]:
        rows = [[_short(each["application"]), *used(each)] for each in asked["by_application"]]
        found.append(("Used and requested processor hours, by application", ("application", *heads), rows))
    if waits is not None:
        rows = [[f"{what} from {_edge(what, each['from'])}", f"{each['jobs']:,}",
                 span(each["mean"]), span(each["median"])]
                for what, name in (("processors", "by_processors"), ("requests", "by_requested_time"))
                for each in waits[name]]  # fmt: skip
        found.append(("Who waits", ("class", "jobs", "mean wait", "median wait"), rows))
        rows = [[_short(each["user"]), f"{each['jobs']:,}", span(each["mean"]), span(each["sum"])]
                for each in waits["by_user"]]  # fmt: skip
        if rows:
            found.append(("Waits, by user", ("user", "jobs", "mean wait", "sum of waits"), rows))
    rows = [[each["case"], span(each["mean_wait"]), f"{each['avebsld']:.1f}"] for each in document["what_if"]]
    found.append(
        (f"The newest {_jobs(document['what_if'][0]['jobs'])} replayed", ("case", "mean wait", "slowdown"), rows)
    )
    if document["annotate"]:
        rows = [[_short(each["application"]), f"{each['jobs']:,}", f"{each['used_hours']:,.0f}",
                 f"{each['spread']:.1f}",
                 ", ".join(f"{_placed(size['place'])} ({size['explains']:.0%})" for size in each["problem_sizes"])
                 or "-"]
                for each in document["annotate"]]  # fmt: skip
        columns = ("application", "jobs", "processor hours", "spread of times", "number that explains it")
        found.append(("Worth annotating with a problem size", columns, rows))
    return found


def _short(name: str) -> str:
    """A name of a user or an application as far as a table has room for it; JSON has all of it.

    >>> _short("cg"), _short("x" * 1000)
    ('cg', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ...')
    """
    return name if len(name) <= LONGEST_SHOWN else f"{name[: LONGEST_SHOWN - 4]} ..."


def confirmations(document: dict[str, Any]) -> list[str]:
    """What is said to an administrator of each number that explains run times, and how it is confirmed."""
    return [
        f"In jobs with names like {size['name']}, {_placed(size['place'])} explains {size['explains']:.0%} of the "
        "spread of run times.\nIf it is the problem size, confirm it in the daemon's configuration:\n\n"
        f"{size['configuration']}\n"
        for each in document["annotate"]
        for size in each["problem_sizes"]
    ]


def summary(document: dict[str, Any]) -> str:
    """The report in a few sentences."""
    waits, asked = document["waits"], document["requests"]
    users = f" of {number_of(document['users'], 'user')}" if document["users"] else ""
    said = (
        f"{_jobs(document['jobs'])}{users} on {number_of(document['processors'], 'processor', '', ',')}, "
        f"{_days(document['since'], document['until'])}."
    )
    if asked["used_share"] is not None:
        said += f" Half of the jobs use less than {_share(asked['used_share'])} of the time they request."
    if waits is not None:
        said += f" A job waits {span(waits['mean'])} on average, half of them less than {span(waits['median'])}"
        if waits["though_free"] is not None:
            said += f"; in {_share(waits['though_free'])} of that time as many processors were free as it requested"
        said += "."
    return said


def for_terminal(document: dict[str, Any]) -> Group:
    """The tables of the report as rich shows them in a terminal, in reading order."""
    made = []
    for title, heads, rows in tables(document):
        table = Table(title=title, title_justify="left", box=box.SIMPLE)
        for place, head in enumerate(heads):
            table.add_column(head, justify="right" if place else "left", overflow="fold")
        for row in rows:
            table.add_row(*row)
        made.append(table)
    return Group(*made)


def page(document: dict[str, Any], log: JobLog, title: str) -> str:
    """The report as an HTML page; names of jobs are escaped."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    drawn: list[tuple[str, str, Figure]] = []
    if log.has_requests:
        said = "Each point is a job; on the line it used all requested time."
        drawn.append(("Requested and used time", said, _requests(log)))
    if document["waits"] is not None:
        hours = _hours(document["waits"]["by_hour"])
        drawn.append(("Waits over the day", "Mean wait by the hour of submission (UTC).", hours))
    cases = _what_if(document["what_if"])
    drawn.append(("Alternatives", "Mean wait of the newest jobs in alternative replays.", cases))
    pictures = [{"title": name, "said": said, "data": _png(figure)} for name, said, figure in drawn]
    shown = [{"title": head, "head": heads, "rows": rows} for head, heads, rows in tables(document)]
    return environment.from_string(PAGE).render(title=title, summary=summary(document), pictures=pictures, tables=shown)


def _requests(log: JobLog) -> Figure:
    rows = np.arange(0, len(log), max(1, len(log) // DRAWN))
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    limits, run_time = log.limits()[rows], np.maximum(log.run_time[rows], 1.0)
    axes.plot(limits, run_time, ".", color=COLOURS[0], markersize=3, alpha=0.3)
    ends = [max(float(limits.min()), 1.0), float(limits.max())]
    axes.plot(ends, ends, color="0.4", linewidth=1)
    axes.set(xscale="log", yscale="log", xlabel="requested time", ylabel="used time")
    for axis, drawn in ((axes.xaxis, limits), (axes.yaxis, run_time)):
        marks = [seconds for seconds in TIMES if drawn.min() / 2 <= seconds <= 2 * drawn.max()]
        axis.set_major_locator(FixedLocator(marks))
        axis.set_major_formatter(FuncFormatter(lambda seconds, _: TIMES[round(seconds)]))
        axis.set_minor_locator(NullLocator())
    with_grid(axes)
    return figure


def _hours(waits: list[float | None]) -> Figure:
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.bar(range(24), [(each or 0.0) / 3600.0 for each in waits], color=COLOURS[0])
    axes.set(xlabel="hour of submission (UTC)", ylabel="mean wait (h)")
    with_grid(axes)
    return figure


def _what_if(cases: list[dict[str, Any]]) -> Figure:
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.add_subplot()
    names = [each["case"] for each in cases][::-1]
    axes.barh(names, [each["mean_wait"] / 3600.0 for each in cases][::-1], color=COLOURS[0])
    axes.tick_params(axis="y", labelsize="small")
    axes.set(xlabel="mean wait (h)")
    with_grid(axes)
    return figure


def _png(figure: Figure) -> str:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return base64.b64encode(picture.getvalue()).decode()


def _placed(place: str) -> str:
    """Where a number stands, in words.

    >>> [_placed(place) for place in ("2", "-n", "$1.2", "script:N=")]
    ['number 2 of the name', 'argument -n', 'argument $1.2', 'script N=']
    """
    if place.isdecimal():
        return f"number {place} of the name"
    return f"script {place.removeprefix(SCRIPT)}" if place.startswith(SCRIPT) else f"argument {place}"


def _jobs(number: int) -> str:
    return number_of(number, "job", "", ",")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _edge(what: str, value: float) -> str:
    return f"{value:.0f}" if what == "processors" else span(value)


def _days(since: float, until: float) -> str:
    """The time that a log covers: its dates, or how long it is if its times count from its own beginning."""
    if since < DATED:
        return f"over {number_of(round(max(until - since, 0.0) / 86_400.0), 'day')}"
    first, last = (datetime.fromtimestamp(min(each, 4e9), UTC) for each in (since, until))
    return f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
