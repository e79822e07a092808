"""One application on several platforms: each has a model of its own, and one with few runs borrows from the others.

What platforms have in common are the numbers of the formula: how time grows with N, falls with P, and depends on the
loads. So the runs of the others are learned with those here (``RobustPredictor.borrowing``): a run elsewhere tells of
the same numbers but for a speed, serial part and communication of each platform's own. What the formula leaves over is
not carried. Before any run here the speed is not known, and the interval says so. Porting by Eq. (3) is the case of
one other platform, of which idle runs are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from metasched.predictors.abilities import borrowed_by, teaching_of
from metasched.predictors.columns import ByColumns, Columns
from metasched.predictors.contract import Learned, Predictions, Predictor, Term
from metasched.predictors.memory.learned_state import at_least_one
from metasched.predictors.memory.representable import representable
from metasched.predictors.memory.window import RunWindow
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.robust.state import RobustState
from metasched.records import InputError, Prediction, Request, Run, Settings

#: Own runs from which on a platform borrows no more, and runs from which on others may borrow from it.
ENOUGH, LENDS = 20, 3


def lent_by(models: Mapping[str, Predictor], platform: str) -> tuple[Run, ...]:
    """The runs that a platform can borrow from the others' models, by platform; empty if none has enough."""
    each = (teaching_of(model) for name, model in models.items() if name != platform)
    return tuple(run for runs in each if len(runs) >= LENDS for run in runs)


def borrower(application: str, platform: str, models: Mapping[str, Predictor]) -> RobustPredictor | None:
    """The borrowing predictor of a platform, from the others' models by platform; None if none has enough runs.

    It is not fitted yet: ``fit(())`` makes it predict before any run there.
    """
    lent = lent_by(models, platform)
    return RobustPredictor(application, platform).borrowing(lent) if lent else None


def with_lent(application: str, platform: str, own: Predictor | None, lent: Iterable[Run]) -> Predictor | None:
    """The predictor for a platform with runs that are borrowed for one question.

    Parameters
    ----------
    application, platform : what it models.
    own : what has learned there; it answers itself if its runs are enough, or if its method borrows none.
    lent : runs on other platforms.

    Returns
    -------
    A fitted predictor, or ``own`` if no model can be fitted to the runs.
    """
    taught = () if own is None else teaching_of(own)
    if own is not None and (len(taught) >= ENOUGH or not isinstance(own, RobustPredictor)):
        return own
    here = () if own is None else borrowed_by(own)
    try:
        return RobustPredictor(application, platform).borrowing((*here, *lent)).fit(taught)
    except InputError:
        return own


class PlatformsPredictor(ByColumns):
    """One application on several platforms.

    Parameters
    ----------
    application : its name.
    models : by platform.
    cluster : the platform that it answers for; at first the one with most runs.

    Examples
    --------
    >>> sizes = [(n, p) for n in (9, 99) for p in (1, 2)]
    >>> made = [Run("cg", name, n, p, 1.0, 90.0, f * n / p) for name, f in (("a", 1.0), ("b", 2.0)) for n, p in sizes]
    >>> found = PlatformsPredictor("cg").fit(made)
    >>> sorted(found.models), found.on("c").cluster
    (['a', 'b'], 'c')
    """

    name = "platforms"

    def __init__(self, application: str, models: Mapping[str, RobustPredictor] | None = None) -> None:
        self.application = application
        self.models = dict(models or {})
        self._taught: list[RobustState] = []
        self._borrowing: dict[str, RobustPredictor] = {}

    @property
    def cluster(self) -> str:
        """The platform with the most runs, which is the default."""
        return max(self.models, key=lambda platform: self.models[platform].window.seen, default="")

    @property
    def window(self) -> RunWindow:
        """The runs of the platform with most."""
        return self.models[self.cluster].window

    def fit(self, runs: Iterable[Run]) -> PlatformsPredictor:
        """Learn the runs of each platform, and forget everything learned before."""
        runs = at_least_one(runs)
        self.models = {
            platform: RobustPredictor(self.application, platform).fit(run for run in runs if run.cluster == platform)
            for platform in dict.fromkeys(run.cluster for run in runs)
        }
        return self

    def on(self, platform: str) -> RobustPredictor:
        """The predictor for a platform, whether it was ever used or not.

        Raises
        ------
        InputError : it never was, and no other has runs enough.
        """
        own = self.models.get(platform)
        if own is not None and len(own.window) >= ENOUGH:
            return own
        # A borrowing predictor is fitted once for all that is asked until a model learns.
        taught = [model.state for model in self.models.values()]
        if [*map(id, taught)] != [*map(id, self._taught)]:
            self._taught, self._borrowing = taught, {}
        if platform not in self._borrowing and (made := borrower(self.application, platform, self.models)) is not None:
            self._borrowing[platform] = made.fit(own.teaching if own is not None else ())
        if platform in self._borrowing:
            return self._borrowing[platform]
        if own is None:
            raise InputError(f"no platform has {LENDS} runs of {self.application} to predict from on {platform}")
        return own

    def under(self, settings: Settings) -> RobustPredictor:
        """The predictor of the platform with most runs, for other settings."""
        return self.on(self.cluster).under(settings)

    def _predicted(self, columns: Columns, level: float) -> Predictions:
        return self.on(self.cluster).predict_many(*columns, level=level)

    def predict(self, request: Request, level: float = 0.9) -> Prediction:
        """Predict one execution time, on the platform with most runs."""
        return self.on(self.cluster).predict(request, level)

    def breakdown(self, request: Request) -> tuple[Term, ...]:
        """The terms on the platform with most runs."""
        return self.on(self.cluster).breakdown(request)

    def learn(self, run: Run) -> None:
        """Take one finished run into account, on its platform."""
        if not representable(run):
            return
        own = self.models.get(run.cluster)
        if own is None:
            self.models[run.cluster] = RobustPredictor(self.application, run.cluster).fit([run])
        else:
            own.learn(run)

    def settle(self) -> None:
        """Wait for searches that are running."""
        for model in self.models.values():
            model.settle()

    def learned(self) -> Learned:
        """What was learned on each platform."""
        each = {platform: model.learned() for platform, model in self.models.items()}
        parts = tuple(replace(part, name=platform) for platform, found in each.items() for part in found.parts)
        return Learned(parts, tuple(f"{platform}: {note}" for platform, found in each.items() for note in found.notes))
