"""The runs that a robust model is fitted to, among them runs of other platforms while there are few on its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from metasched.predictors.gaussian_process import Scales
from metasched.predictors.memory.window import measured
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.notes import counted, notes_on
from metasched.records import Run, Settings

#: Runs of other platforms that count before there is any here.
BORROWED = 96


@dataclass(frozen=True)
class KnownRuns:
    """The runs that a model is fitted to: those borrowed from other platforms, then those of its own.

    Parameters
    ----------
    cluster : the platform asked about.
    runs : all of them.
    own : how many of the last are its own.
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
        """The runs that other platforms lend; they come before the own ones."""
        return self.runs[: len(self.runs) - self.own]

    @property
    def platforms(self) -> tuple[int, ...]:
        """Of the runs by number, 0 for the one asked about."""
        others = dict.fromkeys(run.cluster for run in self.lent)
        number = {platform: place for place, platform in enumerate(others, start=1)}
        return (*(number[run.cluster] for run in self.lent), *(0 for _ in range(self.own)))

    def model(self, scales: Scales | None = None, *, search: bool = True) -> Model:
        """The model fitted to them, see ``Model.fit``."""
        return Model.fit(measured(self.runs), scales, search=search, settings=self.settings, platforms=self.platforms)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user of the predictions should know."""
        others = ", ".join(dict.fromkeys(run.cluster for run in self.lent))
        if not others:
            return notes_on(measured(self.runs))
        return (f"{counted(self.own, 'run')} on {self.cluster}: runs on {others} are used too",)


def borrowed(lent: Iterable[Run], own: int) -> tuple[Run, ...]:
    """The runs of other platforms that count beside so many own ones: from each about as many, over all it ran on.

    They are :data:`BORROWED`, and two fewer for each own run, so that they leave one by one as runs come.

    Examples
    --------
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
