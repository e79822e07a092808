"""The runs that a robust model is fitted to, among them runs of other platforms while there are few on its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from metasched.plain_numbers import number_of
from metasched.predictors.gaussian_process import Scales
from metasched.predictors.memory.window import measured
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.notes import notes_on
from metasched.records import Run, Settings

#: Largest number of borrowed runs, without own runs.
BORROWED = 96


@dataclass(frozen=True)
class KnownRuns:
    """The runs that a model is fitted to: those borrowed from other platforms, then its own ones.

    Parameters
    ----------
    cluster : the target platform.
    runs : all runs.
    own : number of own runs, which are the last.
    """

    cluster: str
    runs: tuple[Run, ...]
    own: int

    @property
    def settings(self) -> tuple[Settings, ...]:
        """The settings of each run, in the order of the runs."""
        return tuple(run.settings for run in self.runs)

    @property
    def lent(self) -> tuple[Run, ...]:
        """The runs borrowed from other platforms, which precede the own ones."""
        return self.runs[: len(self.runs) - self.own]

    @property
    def platforms(self) -> tuple[int, ...]:
        """The platform of each run by number, 0 for the target platform."""
        others = dict.fromkeys(run.cluster for run in self.lent)
        number = {platform: place for place, platform in enumerate(others, start=1)}
        return (*(number[run.cluster] for run in self.lent), *(0 for _ in range(self.own)))

    def model(self, scales: Scales | None = None, *, search: bool = True) -> Model:
        """The model fitted to them, see ``Model.fit``."""
        return Model.fit(measured(self.runs), scales, search=search, settings=self.settings, platforms=self.platforms)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for users of the predictions."""
        others = ", ".join(dict.fromkeys(run.cluster for run in self.lent))
        if not others:
            return notes_on(measured(self.runs))
        return (f"{number_of(self.own, 'run')} on {self.cluster}: runs on {others} are used too",)


def borrowed(lent: Iterable[Run], own: int) -> tuple[Run, ...]:
    """The runs to borrow from other platforms: about as many from each, spread over its conditions.

    They are :data:`BORROWED`, and two fewer for each own run, so that they are gradually replaced.

    >>> runs = [Run("cg", c, n, 1, 1.0, 90.0, 1.0) for c, most in (("a", 200), ("b", 3)) for n in range(1, most)]
    >>> [run.cluster for run in borrowed(runs, own=46)]
    ['a', 'a', 'b', 'b']
    """
    of_platform: dict[str, list[Run]] = {}
    for run in lent:
        of_platform.setdefault(run.cluster, []).append(run)
    left, chosen = max(BORROWED - 2 * own, 0), []
    for place, runs in enumerate(sorted(of_platform.values(), key=len)):
        share = min(left // (len(of_platform) - place), len(runs))
        ordered = sorted(runs, key=lambda run: (run.processors, run.problem_size))
        chosen += [ordered[k] for k in np.linspace(0, len(ordered) - 1, share).round().astype(int)]
        left -= share
    return tuple(sorted(chosen, key=lambda run: [*of_platform].index(run.cluster)))
