"""The models on the dashboard: the top of their sorted lists, and predicted against actual times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from candidate_functions.terms import formula
from metasched.predictors.contract import Learned, PhaseShares
from metasched.records import InputError
from metasched.service.dashboard.formats import figure
from metasched.service.quality.advice_quality import LEAST, MOST
from metasched.service.quality.recent_predictions import JudgedRun
from metasched.service.state.models import Models

#: Models of a sorted list that are shown, and runs in the table beside a picture.
TOP, RUNS = 5, 10


@dataclass(frozen=True, slots=True)
class Ranked:
    """One model of a sorted list: its place, its standard error, and its formula."""

    place: int
    error: str
    formula: str


@dataclass(frozen=True, slots=True)
class Top:
    """The top of a sorted list, of one phase where it has a name."""

    phase: str
    models: Sequence[Ranked]
    length: int
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Summary:
    """A model in one line; ``error`` is the median percentage prediction error, ``inside`` a share.

    ``unmeasured`` is how many of the runs learned had loads that were not measured.
    """

    application: str
    platform: str
    method: str
    learned: int
    unmeasured: int
    judged: int
    error: float | None
    inside: float | None


@dataclass(frozen=True, slots=True)
class Shown:
    """A model as the page shows it; ``phases`` where a signature predicts."""

    summary: Summary
    tops: Sequence[Top]
    phases: PhaseShares | None
    chart: dict[str, Any] | None
    runs: Sequence[JudgedRun]


def summary(application: str, platform: str, models: Models) -> Summary:
    """A model in one line: its runs, those without loads, its recent median error (%) and coverage."""
    key = application, platform
    predictor, runs = models.answering(key), models.recent.of(*key)
    return Summary(
        application,
        platform,
        "" if predictor is None else predictor.name,
        0 if predictor is None else predictor.window.seen,
        models.learned_by(key).unmeasured,
        len(runs),
        float(np.median([run.error for run in runs])) if runs else None,
        float(np.mean([run.inside for run in runs])) if runs else None,
    )


def shown(application: str, platform: str, models: Models) -> Shown:
    """One model as the page shows it: its last predictions, a picture of them, and the top of its lists."""
    runs = models.recent.of(application, platform)
    try:
        predictor = models.answering((application, platform))
        learned = Learned(()) if predictor is None else predictor.learned()
    except InputError:  # It has learned nothing yet.
        learned = Learned(())
    return Shown(
        summary(application, platform, models), _tops(learned), learned.phases, _chart(runs), runs[: -RUNS - 1 : -1]
    )


def in_order(models: Models, application: str) -> list[tuple[str, str]]:
    """The models to show, the most judged and learned first; those of one application where it is named."""
    chosen = [key for key in models.keys if not application or key[0] == application]
    return sorted(chosen, key=lambda key: (-len(models.recent.of(*key)), -models.learned_by(key).runs, key))


def _tops(learned: Learned) -> list[Top]:
    return [
        Top(
            part.name,
            [
                Ranked(
                    place + 1,
                    f"{error:.1%}" if part.models.relative else f"{error:.3g} s",
                    formula(part.models.combinations[place], part.models.coefficients[place]),
                )
                for place, error in enumerate(part.models.standard_error[:TOP].tolist())
            ],
            len(part.models),
            learned.notes,
        )
        for part in learned.parts
        if part.models is not None
    ]


def _chart(runs: Sequence[JudgedRun]) -> dict[str, Any] | None:
    """The numbers of the picture, ascending in the time measured, without what no axis shows; None if none is left."""
    shown = (run for run in runs if all(LEAST <= time <= MOST for time in (run.predicted, run.actual)))
    able = sorted(shown, key=lambda run: run.actual)
    if not able:
        return None
    return {
        "actual": [figure(run.actual) for run in able],
        "predicted": [figure(run.predicted) for run in able],
        "inside": [run.inside for run in able],
    }
