"""What the dashboard says of each model: the top of its sorted lists, and what it predicted beside what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from candidate_functions.terms import formula
from metasched.predictors.documents import Saved
from metasched.predictors.listed import WithList, sorted_lists
from metasched.predictors.tournament import Tournament
from metasched.records import InputError
from metasched.service.dashboard.words import figure
from metasched.service.track import Judged, Track

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
    """A model in one line; ``error`` is the median percentage prediction error, ``inside`` a share."""

    application: str
    platform: str
    method: str
    learned: int
    judged: int
    error: float | None
    inside: float | None


@dataclass(frozen=True, slots=True)
class Shown:
    """A model as the page shows it."""

    summary: Summary
    tops: Sequence[Top]
    chart: dict[str, Any] | None
    runs: Sequence[Judged]


def summary(application: str, platform: str, predictor: Saved, track: Track) -> Summary:
    """A model in one line."""
    runs = track.of(application, platform)
    return Summary(
        application,
        platform,
        predictor.name,
        predictor.window.seen,
        len(runs),
        float(np.median([run.error for run in runs])) if runs else None,
        float(np.mean([run.inside for run in runs])) if runs else None,
    )


def shown(application: str, platform: str, predictor: Saved, track: Track) -> Shown:
    """One model."""
    runs = track.of(application, platform)
    return Shown(
        summary(application, platform, predictor, track),
        _tops(predictor),
        _chart(runs) if runs else None,
        runs[: -RUNS - 1 : -1],
    )


def in_order(models: Mapping[tuple[str, str], Saved], track: Track, application: str) -> list[tuple[str, str]]:
    """The models to show, the most judged and learned first; those of one application where it is named."""
    chosen = [key for key in models if not application or key[0] == application]
    return sorted(chosen, key=lambda key: (-len(track.of(*key)), -models[key].window.seen, key))


def _tops(predictor: Saved) -> list[Top]:
    own = predictor.chosen if isinstance(predictor, Tournament) else predictor
    try:
        lists = sorted_lists(own) if isinstance(own, WithList) else {}
    except InputError:  # It has learned nothing yet.
        return []
    return [
        Top(
            phase,
            [
                Ranked(
                    place + 1,
                    f"{error:.1%}" if listed.models.relative else f"{error:.3g} s",
                    formula(listed.models.combinations[place], listed.models.coefficients[place]),
                )
                for place, error in enumerate(listed.models.standard_error[:TOP].tolist())
            ],
            len(listed.models),
            listed.notes,
        )
        for phase, listed in lists.items()
    ]


def _chart(runs: Sequence[Judged]) -> dict[str, Any]:
    """The numbers of the picture, ascending in the time measured, without what no logarithm shows."""
    able = sorted((run for run in runs if 0 < run.predicted < np.inf), key=lambda run: run.actual)
    return {
        "actual": [figure(run.actual) for run in able],
        "predicted": [figure(run.predicted) for run in able],
        "inside": [run.inside for run in able],
    }
