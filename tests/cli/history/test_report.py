"""The report on a job log: its sentences, tables and pictures, from a document that is written down here."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from drawn import words

from metasched.cli.history import report
from metasched.history.job_log import JobLog
from metasched.history.report import REQUESTS, WIDTHS


def used(**more: Any) -> dict[str, Any]:
    own = {"jobs": 1234, "used_hours": 5678.4, "requested_hours": 9999.6, "used_share": 0.256, "at_limit": 0.0}
    return own | {"failed": None} | more


def waits(**more: Any) -> dict[str, Any]:
    classes = {
        name: [{"from": edge, "jobs": 10 * k, "mean": 60.0 * k, "median": 30.0 * k} for k, edge in enumerate(edges, 1)]
        for name, edges in (("by_processors", WIDTHS), ("by_requested_time", REQUESTS))
    }
    return {"mean": 7200.0, "median": 90.0, "though_free": 0.125, "by_hour": [3600.0 * k for k in range(23)] + [None],
            "by_user": [{"user": "bob", "jobs": 3000, "mean": 7200.0, "sum": 21.6e6}], **classes} | more  # fmt: skip


def document(**more: Any) -> dict[str, Any]:
    case = {"case": "as requested", "jobs": 1000, "mean_wait": 5400.0, "avebsld": 12.34}
    return {
        "jobs": 3000, "users": 25, "processors": 64, "since": 0.0, "until": 25.4 * 86_400.0,
        "requests": used(by_user=[used(user="ada", jobs=7)], by_application=[]), "waits": None,
        "what_if": [case, case | {"case": "shortest first", "mean_wait": 1800.0}], "annotate": [],
    } | more  # fmt: skip


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, ""),
        ({"waits": waits()}, " A job waits 2.0 h on average, half of them less than 90.0 s; in 12% of that time as "
         "many processors were free as it requested."),
        ({"waits": waits(though_free=None)}, " A job waits 2.0 h on average, half of them less than 90.0 s."),
    ],
)  # fmt: skip
def test_the_report_begins_with_how_much_was_used_and_waited(more: dict[str, Any], said: str) -> None:
    begins = (
        "3,000 jobs of 25 users on 64 processors, over 25 days. Half of the jobs use less than 26% of the time they"
    )
    assert report.summary(document(**more)) == f"{begins} request.{said}"
    alone, unnamed = (report.summary(document(users=users, **more)) for users in (1, 0))
    assert alone.startswith("3,000 jobs of 1 user on 64 processors, ")
    assert unnamed.startswith("3,000 jobs on 64 processors, ")


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        (0.0, 43_000.0, "over 0 days"), (0.0, 44_000.0, "over 1 day"),
        (100.0, 100.0 - 9.0, "over 0 days"), (5e7, 5e7 + 864_000.0, "over 10 days"),
        (315_575_999.0, 315_576_000.0, "over 0 days"), (315_576_000.0, 315_662_400.0, "1980-01-01 to 1980-01-02"),
        (1.7e9, 9e9, "2023-11-14 to 2096-10-02"),
    ],
)  # fmt: skip
def test_a_log_has_dates_from_1980_on_and_else_a_length(since: float, until: float, said: str) -> None:
    assert f", {said}. Half" in report.summary(document(since=since, until=until))


def test_tables_have_what_the_document_holds_in_words() -> None:
    plain = report.tables(document())
    assert [title for title, *_ in plain] == [
        "Used and requested processor hours, by user", "The newest 1,000 jobs replayed",
    ]  # fmt: skip
    assert plain[0][2] == [
        ["all", "1,234", "5,678", "10,000", "26%", "0%", "-"], ["ada", "7", "5,678", "10,000", "26%", "0%", "-"],
    ]  # fmt: skip
    assert plain[1][1:] == (
        ("case", "mean wait", "slowdown"),
        [["as requested", "90.0 min", "12.3"], ["shortest first", "30.0 min", "12.3"]],
    )  # fmt: skip
    annotate = [
        {"application": "cg", "jobs": 2000, "used_hours": 1e6, "spread": 2.34, "problem_sizes": []},
        {"application": "lu", "jobs": 20, "used_hours": 1.0, "spread": 1.5,
         "problem_sizes": [{"place": "2", "explains": 0.5}]},
    ]  # fmt: skip
    asked = used(by_user=[], by_application=[used(application="cg")])
    full = report.tables(document(requests=asked, waits=waits(), annotate=annotate))
    assert [title.partition(" ")[0] for title, *_ in full] == ["Used", "Used", "Who", "Waits,", "The", "Worth"]
    assert full[1][2] == [["cg", "1,234", "5,678", "10,000", "26%", "0%", "-"]]
    rows = full[2][2]
    assert len(rows) == len(WIDTHS) + len(REQUESTS)
    assert rows[:2] == [
        ["processors from 1", "10", "60.0 s", "30.0 s"], ["processors from 2", "20", "120 s", "60.0 s"],
    ]  # fmt: skip
    assert rows[len(WIDTHS)] == ["requests from 0 s", "10", "60.0 s", "30.0 s"]
    assert full[3][2] == [["bob", "3,000", "2.0 h", "6000.0 h"]]
    assert full[5][2] == [
        ["cg", "2,000", "1,000,000", "2.3", "-"], ["lu", "20", "1", "1.5", "number 2 of the name (50%)"],
    ]  # fmt: skip


def test_a_long_name_leaves_its_table_readable() -> None:
    name = "x" * 1000
    annotate = [{"application": name, "jobs": 20, "used_hours": 1.0, "spread": 1.5, "problem_sizes": []}]
    waited = waits() | {"by_user": [{"user": name, "jobs": 1, "mean": 1.0, "sum": 1.0}]}
    asked = used(by_user=[used(user=name)], by_application=[used(application=name)])
    tables = report.tables(document(requests=asked, waits=waited, annotate=annotate))
    shown = [row[0] for _, _, rows in tables for row in rows if row[0].startswith("x")]
    assert shown == ["x" * 60 + " ..."] * 4


def log(limits: list[float], run_time: list[float]) -> JobLog:
    count = len(limits)
    return JobLog(np.arange(count, dtype=float), np.array(run_time), np.ones(count, dtype=int), np.array(limits))


def test_each_job_is_a_point_of_what_it_asked_for_and_used_between_marks_of_times() -> None:
    figure = report._requests(log([3600.0, 600.0, np.nan], [60.0, 0.0, 7200.0]))
    (axes,) = figure.axes
    points, diagonal = (np.asarray(line.get_xydata()).tolist() for line in axes.lines)
    # One without a limit counts with the longest time of all.
    assert points == [[3600.0, 60.0], [600.0, 1.0], [7200.0, 7200.0]]
    assert diagonal == [[600.0, 600.0], [7200.0, 7200.0]]
    assert (words(axes), axes.get_xscale(), axes.get_yscale()) == (("requested time", "used time"), "log", "log")
    figure.canvas.draw()
    shown = [[tick.get_text() for tick in ticks] for ticks in (axes.get_xticklabels(), axes.get_yticklabels())]
    assert shown == [["10 min", "1 h"], ["1 s", "10 s", "1 min", "10 min", "1 h"]]


def test_of_many_jobs_some_are_drawn_evenly_over_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "DRAWN", 10)
    drawn = []
    for count in (9, 10, 19, 20, 35):
        points = report._requests(log([60.0 + k for k in range(count)], [30.0] * count)).axes[0].lines[0]
        drawn.append((np.asarray(points.get_xdata()) - 60.0).tolist())
    assert [len(each) for each in drawn] == [9, 10, 19, 10, 12]
    assert drawn[3] == [float(k) for k in range(0, 20, 2)]


def test_waits_stand_by_the_hour_and_alternatives_from_the_first_on_top() -> None:
    axes = report._hours(waits()["by_hour"]).axes[0]
    assert [bar.get_height() for bar in axes.patches] == [*map(float, range(23)), 0.0]  # type: ignore[attr-defined]
    assert words(axes) == ("hour of submission (UTC)", "mean wait (h)")
    axes = report._what_if(document()["what_if"]).axes[0]
    assert [bar.get_width() for bar in axes.patches] == [0.5, 1.5]  # type: ignore[attr-defined]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["shortest first", "as requested"]
    assert axes.get_xlabel() == "mean wait (h)"


def test_there_is_no_picture_of_requests_where_the_log_has_none() -> None:
    page = report.page(document(), log([np.nan, np.nan], [30.0, 60.0]), "A")
    assert re.findall(r"<h2>(.*?)</h2>", page)[0] == "Alternatives"
    assert page.count("data:image/png;base64,iVBOR") == 1


@pytest.mark.parametrize("known", [False, True])
def test_the_page_has_its_pictures_and_tables_in_order_and_names_of_jobs_are_escaped(known: bool) -> None:
    asked = used(by_user=[used(user="<script>")], by_application=[])
    page = report.page(document(requests=asked, waits=waits() if known else None), log([60.0], [30.0]), "A & B")
    heads = re.findall(r"<h2>(.*?)</h2>", page)
    pictures = ["Requested and used time", *(["Waits over the day"] if known else []), "Alternatives"]
    assert heads[: len(pictures)] == pictures
    assert page.count("data:image/png;base64,iVBOR") == len(pictures)
    assert "<title>A &amp; B</title>" in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert page.count("<table>") == len(heads) - len(pictures) == (4 if known else 2)
