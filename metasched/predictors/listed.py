"""The sorted lists behind a predictor: one for a model, or one for each of its phases."""

from __future__ import annotations

from dataclasses import dataclass

from metasched.predictors.phases.predictor import PhasedPredictor
from metasched.predictors.porting.predictor import PortedPredictor
from metasched.predictors.published import PublishedPredictor
from metasched.predictors.robust import RobustPredictor
from metasched.predictors.sorted_list import SortedList

#: Predictors with a sorted list, or one for each phase.
WithList = PublishedPredictor | RobustPredictor | PhasedPredictor | PortedPredictor


@dataclass(frozen=True, slots=True)
class Listed:
    """A sorted list, and what a user of it should know."""

    models: SortedList
    notes: tuple[str, ...]


def sorted_lists(predictor: WithList) -> dict[str, Listed]:
    """The sorted list that answers for parallel runs, under the name of its phase, or none.

    A ported model has the list of its reference, whose terms it scales.

    Examples
    --------
    >>> from metasched.records import Run
    >>> runs = [Run("a", "c", n, p, 1.0, 90.0, 0.01 * n / p) for n in range(100, 900, 100) for p in (1, 2, 4)]
    >>> list(sorted_lists(RobustPredictor("a", "c").fit(runs)))
    ['']
    """
    if isinstance(predictor, PhasedPredictor):
        return {phase.name: sorted_lists(phase.slowest)[""] for phase in predictor.state.phases}
    if isinstance(predictor, PortedPredictor):
        models = sorted_lists(predictor.reference)[""].models
        scaled = (
            f"ported from {predictor.reference.cluster}: computation x {predictor.rcpu.value:.3g}, "
            f"communication x {predictor.rbw.value:.3g}"
        )
        return {"": Listed(models, (scaled, *predictor.state.notes))}
    if isinstance(predictor, PublishedPredictor):
        return {"": Listed(predictor.state.parallel, predictor.state.notes)}
    return {"": Listed(predictor.state.trend.models, predictor.state.notes)}
