"""The quality of the advice on the dashboard, in total and for each application, and the next step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from metasched.plain_numbers import number_of, plain, span
from metasched.service.configuration import EnergyChoice
from metasched.service.quality.advice_quality import Quality, Report
from metasched.service.quality.verdict import verdict

#: Applications and platforms that are listed.
LISTED = 50


@dataclass(frozen=True, slots=True)
class Part:
    """The advice on one application on one platform, in words; empty without finished jobs."""

    application: str
    platform: str
    judged: int
    error: str
    held: str
    followed: str
    saved: str
    good_for: str


def figures(quality: Quality) -> Iterator[tuple[str, str, str]]:
    """The figures of the advice: title, value and meaning."""
    yield "finished jobs with advice", f"{quality.jobs}", f"{quality.failed} more failed or were killed"
    if quality.jobs:
        agreeing = f"ran on the nodes advised, {quality.same_partition} in the partition"
        yield "agreement", f"{quality.followed} of {quality.jobs}", agreeing
    if quality.ppe_mean_there is not None and quality.held is not None and quality.level is not None:
        yield (
            "mean prediction error",
            f"{quality.ppe_mean_there:.1f} %",
            f"{number_of(quality.judged, 'job')}, with the loads of the runs",
        )
        yield "coverage of the intervals", f"{100 * quality.held:.0f} %", f"{100 * quality.level:.0f} % expected"
    if quality.ppe_median is not None:
        yield (
            "median error of the advice",
            f"{quality.ppe_median:.1f} %",
            f"{number_of(quality.followed, 'job')} that followed it",
        )
    if quality.saved is not None:
        of = f"of {span(quality.time_taken)} that {number_of(quality.elsewhere, 'job')} ran elsewhere"
        yield "time that the advice would save", _time_saved(quality), of
    if quality.metered:
        of = f"of {plain(quality.energy_taken)} J that {number_of(quality.metered, 'job')} took elsewhere"
        share = _share(quality.energy_saved, quality.energy_saved_low, quality.energy_saved_high)
        yield "energy that the advice would save", share, of
    if quality.killed_by_limit:
        yield "over the suggested limit", f"{quality.killed_by_limit}", "jobs would exceed the suggested limit"


def parts(report: Report, choice: EnergyChoice | None = None) -> list[Part]:
    """The applications with the most jobs."""
    return [
        Part(
            application,
            platform,
            quality.judged,
            "" if quality.ppe_mean_there is None else f"{quality.ppe_mean_there:.1f} %",
            "" if quality.held is None else f"{100 * quality.held:.0f} %",
            f"{quality.followed} of {quality.jobs}",
            _time_saved(quality),
            verdict(quality, choice).mode or "too early to tell",
        )
        for (application, platform), quality in islice(report.parts.items(), LISTED)
    ]


def _share(saved: float | None, low: float | None, high: float | None) -> str:
    """A share that is saved with its bounds, as far as they are known."""
    if saved is None:
        return ""
    text = f"{round(100 * saved)} %"
    return text if low is None or high is None else f"{text} ({round(100 * low)} to {round(100 * high)})"


def _time_saved(quality: Quality) -> str:
    return _share(quality.saved, quality.saved_low, quality.saved_high)
