"""From runs to a fitted predictor in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from metasched.predictors.adaptive import adaptive
from metasched.predictors.analytic.spmd.predictor import SpmdPredictor
from metasched.predictors.contract import Predictor
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.phases.predictor import PhasedPredictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import InputError, Run

#: Unfitted predictors by the name of their method, made for an application and the platform that it runs on.
METHODS: dict[str, Callable[[str, str], Predictor]] = {
    "robust": RobustPredictor,
    "published": PublishedPredictor,
    "phased": PhasedPredictor,
    "spmd": lambda application, cluster: SpmdPredictor(application=application, cluster=cluster),
}


def fit(runs: Iterable[Run], method: str = "robust") -> Predictor:
    """Fit a predictor to the runs of one application on one platform.

    Parameters
    ----------
    runs : finished runs, such as :func:`metasched.read_runs` reads them.
    method : ``"robust"``, ``"published"``, ``"phased"`` or ``"spmd"``, as ``metasched fit --method`` has them.

    Returns
    -------
    A predictor that answers ``predict`` and ``predict_many`` (times in s) and goes on learning with ``learn``.

    Raises
    ------
    InputError
        When there is no such method, no run, or more than one application or platform among the runs.

    Examples
    --------
    >>> runs = [Run("a", "c", n, p, 1.0, 90.0, 0.01 * n / p) for n in range(100, 900, 100) for p in (1, 2, 4)]
    >>> fit(runs, method="published").name
    'published'
    >>> fit([])
    Traceback (most recent call last):
    metasched.records.InputError: there are no runs, expected at least one
    """
    chosen = tuple(runs)
    if method not in METHODS:
        raise InputError(f"method is {method!r}, expected one of {', '.join(METHODS)}")
    kinds = sorted({(run.application, run.cluster) for run in chosen})
    if not kinds:
        raise InputError("there are no runs, expected at least one")
    if len(kinds) > 1:
        found = ", ".join(f"{application} on {cluster}" for application, cluster in kinds)
        raise InputError(f"there are runs of {found}, expected one application on one platform")
    predictor = adaptive(*kinds[0], chosen) if method == "robust" else METHODS[method](*kinds[0])
    predictor.fit(chosen)
    return predictor
