"""Whom to believe: users whose runs the runs of the others contradict teach nobody but themselves.

Anybody can submit a job that says N = 1 and sleeps for hours. A wild run among many hardly counts in the model as it
is; a user who sends forty does, as they confirm each other. So users, not runs, are witnesses: the runs of each are
judged by a model that has not seen them. A user whose usual run lies far outside of what it expects is not believed.

Several of them may confirm each other as well, and one may have been the first. The search for those to believe
therefore starts from each of some users alone, and from all; those that the model of the believed explains come in, the
others go, until nothing changes (as least trimmed squares concentrates on runs: Rousseeuw & Van Driessen, Computing LTS
regression for large data sets, Data Mining and Knowledge Discovery 12, 2006, section 2, here with users for runs). Of
the results that one counts in which most users explain each other well, by a formula such as applications have.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from metasched.predictors.contract import Floats
from metasched.predictors.memory.window import measured
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.structure import PRIOR, SPREAD
from metasched.records import InputError, Run

#: A user is believed whose median run, of all and of the last ``LATEST``, is off by less than this many spreads.
FARTHEST, LATEST = 2.0, 10
#: Spread of log time from user to user that is nobody's fault.
HABITS = 0.1
#: Spread of log time of somebody who may say anything, and how much one run may speak against its user.
ANYTHING, WORST = 3.0, -2.0
#: Different sizes and processor counts from which on a user's voice is whole.
WHOLE = 5
#: Runs compared, in all and of each user at least; users started from; steps of each search.
MOST, FEWEST, STARTS, STEPS = 96, 6, 6, 4


def doubted(runs: Iterable[Run], so_far: frozenset[str] | None = None) -> frozenset[str]:
    """The users among some runs that are not believed.

    Parameters
    ----------
    runs : oldest first.
    so_far : those not believed so far, to start from alone; otherwise the search is whole.

    Examples
    --------
    >>> def runs(user, seconds):
    ...     extra = {"user": user}
    ...     sizes = [(n, p) for n in (400.0, 600.0, 800.0) for p in (2, 4)]
    ...     return [Run("cg", "c8", n, p, 1.0, 90.0, seconds(n) / p, extra=extra) for n, p in sizes]
    >>> honest = [*runs("ada", lambda n: 1e-3 * n**2), *runs("bob", lambda n: 1.1e-3 * n**2)]
    >>> sorted(doubted([*runs("eve", lambda n: 36000.0), *honest]))
    ['eve']
    """
    court = _Court(tuple(runs))
    if len(court.users) < 2:
        return frozenset()
    everybody = frozenset(range(len(court.users)))
    if so_far is not None:
        believed, _ = court.settled(frozenset(k for k in everybody if court.users[k] not in so_far) or everybody)
    else:
        starts = [everybody, *(frozenset({user}) for user in court.starters())]
        believed, _ = max(map(court.settled, starts), key=lambda found: found[1])
    return frozenset(court.users[k] for k in everybody - believed)


class _Court:
    """A sample of runs in which every user has about the same share."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.users = tuple(dict.fromkeys(run.user for run in runs))
        number = {user: k for k, user in enumerate(self.users)}
        of_user: list[list[int]] = [[] for _ in self.users]
        for place, run in enumerate(runs):
            of_user[number[run.user]].append(place)
        share = max(FEWEST, MOST // max(len(self.users), 1))
        chosen = np.sort(np.concatenate([_some(places, share) for places in of_user])) if runs else np.empty(0, int)
        self.runs = measured(runs[place] for place in chosen)
        self.settings = [runs[place].settings for place in chosen]
        self.of = np.array([number[runs[place].user] for place in chosen], dtype=np.intp)
        self.voices = np.array(
            [
                min(len({(runs[place].problem_size, runs[place].processors) for place in places}) / WHOLE, 1.0)
                for places in of_user
            ]
        )
        self._judged: dict[frozenset[int], tuple[frozenset[int], float]] = {}

    def starters(self) -> list[int]:
        """Users to start from: those with most to say, and the first ones."""
        most = np.argsort(-self.voices, kind="stable").tolist()
        return list(dict.fromkeys(user for pair in zip(most, range(len(most)), strict=True) for user in pair))[:STARTS]

    def settled(self, believed: frozenset[int]) -> tuple[frozenset[int], float]:
        """Whom a search from some users ends with, and how well these explain each other."""
        worth = -np.inf
        for _ in range(STEPS):
            now, worth = self._judge(believed)
            if now == believed or not now:
                break
            believed = now
        return believed, worth

    def _judge(self, believed: frozenset[int]) -> tuple[frozenset[int], float]:
        """Whom the model of some users explains, and its worth."""
        if believed not in self._judged:
            inside = np.isin(self.of, [*believed])
            places = np.flatnonzero(inside)
            model = Model.fit(self.runs.at(places), search=False, settings=[self.settings[k] for k in places])
            error, spread = np.empty(len(self.of)), np.empty(len(self.of))
            error[inside], spread[inside] = model.process.leave_group_out(self.of[inside])
            gain = _gain(error[inside], spread[inside]) + _gain(*model.process.leave_one_out())
            error[~inside], spread[~inside] = self._surprises(model, np.flatnonzero(~inside))
            off = np.abs(error) / np.hypot(spread, HABITS)
            explained = frozenset(k for k in range(len(self.users)) if _usual(off[self.of == k]) < FARTHEST)
            worth = sum(self.voices[k] * max(float(gain[self.of[inside] == k].mean()) / 2.0, 0.0) for k in believed)
            away = (np.array(model.formula.numbers) - np.array(PRIOR))[1:] / np.array(SPREAD)[1:]
            self._judged[believed] = explained, float(worth) - 0.5 * float(away @ away)
        return self._judged[believed]

    def _surprises(self, model: Model, places: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Errors of a model at some runs that it has not seen, and their spreads; boundless where it knows nothing."""
        error, spread = np.zeros(len(places)), np.full(len(places), ANYTHING)
        whole, *_ = model.loads.filled(self.runs.at(places))
        for settings in {self.settings[k] for k in places}:
            here = np.array([self.settings[k] == settings for k in places])
            alike = whole.at(np.flatnonzero(here))
            with contextlib.suppress(InputError):  # a parameter that no believed run has
                answering = model.under(settings)
                time, spread[here] = answering.predict(alike.problem_size, alike.processors, alike.cpu, alike.bw)
                error[here] = np.log(alike.time / time)
        return error, spread


def _gain(error: Floats, spread: Floats) -> Floats:
    """How much likelier runs are as predicted than if anything were, logarithms."""
    spread = np.hypot(spread, HABITS)
    gain = np.log(ANYTHING / spread) - 0.5 * error**2 * (spread**-2.0 - ANYTHING**-2.0)
    return np.asarray(np.maximum(gain, WORST))


def _usual(off: Floats) -> float:
    """The median, of all or of the latest, whichever is larger."""
    return max(float(np.median(off)), float(np.median(off[-LATEST:])))


def _some(places: Sequence[int], share: int) -> NDArray[np.intp]:
    """At most ``share`` places: the last ones, and others evenly from before."""
    latest = min(LATEST, (share + 1) // 2)
    older, last = places[:-latest], places[-latest:]
    if len(places) <= share:
        return np.array(places, dtype=np.intp)
    spread = np.linspace(0, len(older) - 1, share - latest).round().astype(int)
    return np.array([*(older[k] for k in spread), *last], dtype=np.intp)
