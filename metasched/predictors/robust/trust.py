"""Distrusted users: runs that contradict those of the other users are only used to predict for their own user.

Any user can submit a job that states N = 1 and sleeps for hours. One outlier among many runs has a small weight in the
model, but forty such runs of one user confirm each other. Therefore whole users are judged: the runs of each user are
compared with a model that has not learned them. A user whose median run is far from its prediction is distrusted.

Several such users may confirm each other, too, and one may have been the first user. Therefore the search for the
trusted users starts from each of some users alone, and from all. Users whose runs the model of the trusted users
predicts are added, the others removed, until nothing changes. This corresponds to the concentration steps of least
trimmed squares (Rousseeuw & Van Driessen, Computing LTS regression for large data sets, Data Mining and Knowledge
Discovery 12, 2006, section 2), with users instead of runs. The result is the set of most users whose runs predict each
other well, by a formula with plausible parameters. Users with too few different runs, all together, contradict nobody.

What a model cannot know excuses any time: it predicts next to nothing far beyond the sizes, processors or parameters
that it has learned, so no run there contradicts it. Once such runs are learned, they may spoil what it says of all
others, which then seem to contradict it. So whoever spoils a model is found before anybody is removed: the user without
whom the others predict each other much better. Whatever a user states, honest users are compared without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metasched.arrays import Floats
from metasched.predictors.abilities import understood
from metasched.predictors.gaussian_process import COVERING, NEWEST
from metasched.predictors.memory.window import measured
from metasched.predictors.robust.effects import WORD
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.structure import SPREAD, prior_means
from metasched.records import Run

#: A user is trusted if the median error of all runs, and of the last ``LATEST``, is below this many standard
#: deviations.
FARTHEST, LATEST = 2.0, 10
#: Standard deviation of log time between honest users.
HABITS = 0.1
#: Standard deviation of log time of a user with arbitrary runs, and the limit of the evidence of one run.
ANYTHING, WORST = 3.0, -2.0
#: Smallest and largest predicted time (s) that can be compared.
LIMITS = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)
#: A user may spoil a model if a run is farther off than this without the user's others, or as uncertain (log time). The
#: user does if without those runs the log likelihood ratio of each other user's run is larger by this much on average.
SUSPECT, HARM = 0.5, 0.1
#: Number of different sizes and processor counts from which on a user has full weight.
WHOLE = 5
#: Number of compared runs, in all and at least of each user; number of starting users; steps of each search.
MOST, FEWEST, STARTS, STEPS = 96, 6, 6, 4
#: Compared runs, and users, at most: as many as the process of a model uses.
LARGEST = NEWEST + COVERING


def doubted(runs: Iterable[Run], so_far: frozenset[str] | None = None) -> frozenset[str]:
    """The users of some runs that are distrusted.

    Parameters
    ----------
    runs : oldest first.
    so_far : those distrusted so far; the search then starts only from the others. None for a complete search.

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
    comparison = _Comparison(tuple(runs))
    if len(comparison.users) < 2:
        return frozenset()
    everybody = frozenset(range(len(comparison.users)))
    if so_far is not None:
        starts = [frozenset(k for k in everybody if comparison.users[k] not in so_far) or everybody]
    else:
        starts = [everybody, *(frozenset({user}) for user in comparison.starters())]
    found = [each for each in map(comparison.settled, starts) if comparison.heard(each[0])]
    believed = max(found, key=lambda each: each[1])[0] if found else everybody
    return frozenset(comparison.users[k] for k in everybody - believed)


class _Judgement(NamedTuple):
    """What a model of some users' runs makes of all runs.

    Parameters
    ----------
    explained : the users whose runs it predicts.
    worth : the score of the model.
    gains : of each of its users the mean log likelihood ratio of a run, see :func:`_gain`.
    away : of each of its users how far off or uncertain any run's log time is without the user's others.
    """

    explained: frozenset[int]
    worth: float
    gains: dict[int, float]
    away: dict[int, float]


class _Comparison:
    """A sample of runs in which every user has about the same share."""

    def __init__(self, runs: Sequence[Run]) -> None:
        of_user: dict[str, list[int]] = {}
        for place, run in enumerate(runs):
            of_user.setdefault(run.user, []).append(place)
        # Of very many users, those with the most runs are compared; the few runs of the others are believed.
        most = sorted(of_user, key=lambda user: -len(of_user[user]))[:LARGEST]
        self.users = tuple(user for user in of_user if user in most)
        share = max(FEWEST, MOST // max(len(self.users), 1))
        while sum(min(len(of_user[user]), share) for user in self.users) > LARGEST:
            share -= 1
        number = {user: k for k, user in enumerate(self.users)}
        chosen = sorted(place for user in self.users for place in _some(of_user[user], share).tolist())
        self.runs = measured(runs[place] for place in chosen)
        self.settings = [runs[place].settings for place in chosen]
        self.of = np.array([number[runs[place].user] for place in chosen], dtype=np.intp)
        self.voices = np.array(
            [
                min(len({(runs[place].problem_size, runs[place].processors) for place in of_user[user]}) / WHOLE, 1.0)
                for user in self.users
            ]
        )
        self._judged: dict[frozenset[int], _Judgement] = {}

    def starters(self) -> list[int]:
        """Users to start from: those with the most different runs, and the first ones."""
        most = np.argsort(-self.voices, kind="stable").tolist()
        return list(dict.fromkeys(user for pair in zip(most, range(len(most)), strict=True) for user in pair))[:STARTS]

    def heard(self, believed: frozenset[int]) -> bool:
        """Whether the runs of some users are enough to contradict others: a formula is plausible before any run."""
        return float(sum(self.voices[k] for k in believed)) >= 1.0

    def settled(self, believed: frozenset[int]) -> tuple[frozenset[int], float]:
        """The users with whom a search from some users ends, and how well their runs predict each other."""
        spoilers: frozenset[int] = frozenset()
        passed: list[frozenset[int]] = []
        for _ in range(STEPS):
            # Before anybody is removed: those whom a spoiled model does not predict may be honest.
            while len(spoilers) < STARTS and (spoiler := self._spoiler(believed)) is not None:
                spoilers |= {spoiler}
                believed -= spoilers
            passed.append(believed)
            now = self._judge(believed).explained - spoilers
            if now == believed or not now:
                return believed, self._judge(believed).worth
            believed = now
        worth = {each: self._judge(each).worth for each in passed}  # it turns in a circle
        best = max(passed, key=lambda each: worth[each])
        return best, worth[best]

    def _spoiler(self, believed: frozenset[int]) -> int | None:
        """The user without whom the others predict each other much better; None if there is none, or two users only."""
        if len(believed) <= 2:
            return None
        whole = self._judge(believed)
        suspects = sorted((k for k in believed if whole.away[k] > SUSPECT), key=lambda k: -whole.away[k])
        harm = {k: self._harm(k, believed) for k in suspects[:STARTS]}
        worst = max(harm, key=lambda k: harm[k], default=None)
        return worst if worst is not None and harm[worst] > HARM else None

    def _harm(self, user: int, believed: frozenset[int]) -> float:
        """How much better the others' runs predict each other without a user: mean log likelihood ratio of a run."""
        others = believed - {user}
        before, after = self._judge(believed).gains, self._judge(others).gains
        gained = sum(self.voices[k] * (after[k] - before[k]) for k in others)
        return float(gained / sum(self.voices[k] for k in others))

    def _judge(self, believed: frozenset[int]) -> _Judgement:
        """What a model of some users' runs makes of all runs."""
        if believed not in self._judged:
            inside = np.isin(self.of, [*believed])
            places = np.flatnonzero(inside)
            model = Model.fit(self.runs.at(places), search=False, settings=[self.settings[k] for k in places])
            error, spread = np.empty(len(self.of)), np.empty(len(self.of))
            error[inside], spread[inside] = model.process.leave_group_out(self.of[inside])
            gain = _gain(error[inside], spread[inside]) + _gain(*model.process.leave_one_out())
            error[~inside], spread[~inside] = self._surprises(model, np.flatnonzero(~inside))
            off, far = np.abs(error) / np.hypot(spread, HABITS), np.hypot(error, spread)
            explained = frozenset(k for k in range(len(self.users)) if _usual(off[self.of == k]) < FARTHEST)
            gains = {k: float(gain[self.of[inside] == k].mean()) / 2.0 for k in believed}
            worth = sum(self.voices[k] * max(gains[k], 0.0) for k in believed)
            usual = prior_means(model.formula.processors)
            away = (np.array(model.formula.numbers) - np.array(usual))[1:] / np.array(SPREAD)[1:]
            self._judged[believed] = _Judgement(
                explained,
                float(worth) - 0.5 * float(away @ away),
                gains,
                {k: float(far[self.of == k].max()) for k in believed},
            )
        return self._judged[believed]

    def _surprises(self, model: Model, places: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Errors of a model for runs that it has not learned, and their deviations, shape (n,)."""
        error, spread = np.empty(len(places)), np.empty(len(places))
        whole, *_ = model.loads.filled(self.runs.at(places))
        for settings in {self.settings[k] for k in places}:
            here = np.array([self.settings[k] == settings for k in places])
            alike = whole.at(np.flatnonzero(here))
            known, refused = understood(settings, [model])
            answering = model.under(known)
            # What no run of a trusted user states excuses as much as another word does, however much there is of it.
            excuse = WORD.spread**2 if refused else min(answering.unlearned, WORD.spread**2)
            answering = replace(answering, unlearned=excuse)
            time, spread[here] = answering.predict(alike.problem_size, alike.processors, alike.cpu, alike.bw)
            # Where settings are far from those learned, times may be too large or too small for a number.
            error[here] = np.log(alike.time) - np.log(np.clip(time, *LIMITS))
        return error, spread


def _gain(error: Floats, spread: Floats) -> Floats:
    """Log likelihood ratio of runs: as predicted, relative to arbitrary times."""
    spread = np.minimum(np.hypot(spread, HABITS), ANYTHING)
    gain = np.log(ANYTHING / spread) - 0.5 * error**2 * (spread**-2.0 - ANYTHING**-2.0)
    return np.asarray(np.maximum(gain, WORST))


def _usual(off: Floats) -> float:
    """The larger of the medians of all and of the latest values."""
    return max(float(np.median(off)), float(np.median(off[-LATEST:])))


def _some(places: Sequence[int], share: int) -> NDArray[np.intp]:
    """At most ``share`` places: the last ones, and others evenly from before."""
    latest = min(LATEST, (share + 1) // 2)
    older, last = places[:-latest], places[-latest:]
    if len(places) <= share:
        return np.array(places, dtype=np.intp)
    spread = np.linspace(0, len(older) - 1, share - latest).round().astype(int)
    return np.array([*(older[k] for k in spread), *last], dtype=np.intp)
