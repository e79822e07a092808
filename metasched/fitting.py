"""From the name of a method to its predictor, and from runs to a fitted one in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from metasched.frames import runs_from_frame
from metasched.predictors.adaptive import adaptive
from metasched.predictors.analytic.spmd.predictor import SpmdPredictor
from metasched.predictors.contract import Predictor
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.phases.predictor import PhasedPredictor
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.predictors.tournament import Tournament
from metasched.records import InputError, Run

if TYPE_CHECKING:
    import pandas as pd

#: Unfitted predictors by the name of their method, made for an application and the platform that it runs on.
METHODS: dict[str, Callable[[str, str], Predictor]] = {
    "robust": RobustPredictor,
    "published": PublishedPredictor,
    "phased": PhasedPredictor,
    "spmd": lambda application, cluster: SpmdPredictor(application=application, cluster=cluster),
}

#: Makes an unfitted predictor for an application and a platform, of runs that are known before it is fitted.
Factory = Callable[[str, str, Sequence[Run]], Predictor]


def unfitted(
    method: str,
    application: str,
    platform: str,
    runs: Sequence[Run] = (),
    described: Mapping[str, Factory] = MappingProxyType({}),
) -> Predictor:
    """An unfitted predictor for runs of an application on a platform.

    Parameters
    ----------
    method : one of :data:`METHODS` or of ``described``, or ``"tournament"``: the general methods and all of
        ``described``.
    application, platform : of the runs.
    runs : that it will be fitted to, as far as they are known: ``"robust"`` also learns the energies they have.
    described : by method, what makes models of applications that are described before any run.

    Raises
    ------
    InputError : when there is no such method.

    Examples
    --------
    >>> unfitted("tournament", "cg", "c8").name, unfitted("published", "cg", "c8").name
    ('tournament', 'published')
    """
    if method in described:
        return described[method](application, platform, runs)
    if method == "tournament":
        general = [METHODS[name](application, platform) for name in ("robust", "published", "spmd")]
        return Tournament([*general, *(make(application, platform, runs) for make in described.values())])
    if method not in METHODS:
        raise InputError(f"method is {method!r}, expected one of {', '.join(METHODS)}")
    return adaptive(application, platform, runs) if method == "robust" else METHODS[method](application, platform)


def fit(runs: Iterable[Run] | pd.DataFrame, method: str = "robust") -> Predictor:
    """Fit a predictor to the runs of one application on one platform.

    Parameters
    ----------
    runs : finished runs, such as :func:`metasched.read_runs` reads them, or a data frame of them.
    method : ``"robust"``, ``"published"``, ``"phased"`` or ``"spmd"``, as ``metasched fit --method`` has them.

    Returns
    -------
    A predictor that answers ``predict`` and ``predict_many`` (times in s) and goes on learning with ``learn``.

    Raises
    ------
    InputError : when there is no such method, no run, or more than one application or platform among the runs.

    Examples
    --------
    >>> runs = [Run("a", "c", n, p, 1.0, 90.0, 0.01 * n / p) for n in range(100, 900, 100) for p in (1, 2, 4)]
    >>> fit(runs, method="published").name
    'published'
    >>> fit([])
    Traceback (most recent call last):
    metasched.records.errors.InputError: there are no runs, expected at least one
    """
    chosen = tuple(runs_from_frame(runs) if hasattr(runs, "iterrows") else runs)
    kinds = sorted({(run.application, run.cluster) for run in chosen})
    if not kinds:
        raise InputError("there are no runs, expected at least one")
    if len(kinds) > 1:
        found = ", ".join(f"{application} on {cluster}" for application, cluster in kinds)
        raise InputError(f"there are runs of {found}, expected one application on one platform")
    predictor = unfitted(method, *kinds[0], chosen)
    predictor.fit(chosen)
    return predictor
