"""The default predictor for runs as they come: robust, with energy where runs record it, and borrowing where few."""

from __future__ import annotations

from collections.abc import Iterable

from metasched.predictors.contract import Saved
from metasched.predictors.energy.predictor import MeteredPredictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import Run


def is_metered(run: Run) -> bool:
    """Whether a run has its energy or its clock recorded."""
    return run.energy is not None or run.settings.frequency is not None


def adaptive(
    application: str, cluster: str, runs: Iterable[Run], lent: Iterable[Run] = ()
) -> RobustPredictor | MeteredPredictor:
    """The unfitted predictor of the robust method for such runs.

    Parameters
    ----------
    application, cluster : what it models.
    runs : those that it will be fitted to.
    lent : runs on other platforms that it may count with, where it can.

    Examples
    --------
    >>> adaptive("cg", "c8", [Run("cg", "c8", 100, 2, 0.5, 90.0, 3.0, extra={"frequency": "2000"})])
    MeteredPredictor('cg', 'c8')
    """
    if any(map(is_metered, runs)):
        return MeteredPredictor(application, cluster)
    return RobustPredictor(application, cluster).borrowing(lent)


def learned(known: Saved, run: Run, lent: Iterable[Run] = ()) -> Saved:
    """A predictor after one more run: itself, or one that learns energy and clock too from the first run that has them.

    Parameters
    ----------
    known : what has learned the runs before.
    run : one that has finished.
    lent : runs on other platforms that it may count with from now on, where it can.
    """
    if isinstance(known, RobustPredictor):
        known.borrowing(lent)
        if is_metered(run):
            known = MeteredPredictor.of_times(known)
    known.learn(run)
    return known
