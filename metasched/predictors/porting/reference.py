"""The part of a model that is ported: its two terms, which Eq. (3) scales to the new platform."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from candidate_functions.terms import Observations, evaluate, formula
from metasched.arrays import Floats
from metasched.predictors.formulas.few_runs import supports_search
from metasched.predictors.formulas.published import PublishedPredictor
from metasched.predictors.formulas.sorted_list import SortedList
from metasched.predictors.gaussian_process import ResidualProcess, most_probable, well_chosen
from metasched.predictors.memory.window import measured, observations
from metasched.predictors.porting.transfer import PRIOR, inputs
from metasched.predictors.robust.model import Model
from metasched.predictors.robust.predictor import RobustPredictor
from metasched.records import DEFAULT_SETTINGS, Run, Settings

#: Standard deviation of the level of the residuals of a published formula.
LEVEL_SPREAD = 0.1

Pair = tuple[Floats, Floats]


@dataclass(frozen=True)
class Reference:
    """The terms of a model.

    Parameters
    ----------
    terms : computation and communication (s) for N, P, available CPU and bandwidth, arrays of one shape (n,); infinite
        where the model is not defined.
    texts : both written out.
    communicates : whether there is a communication term for Rbw to scale.
    asked : where settings of the runs differ, for which they answer, in words; empty where none differ.
    """

    terms: Callable[[Floats, Floats, Floats, Floats], Pair]
    texts: tuple[str, str]
    communicates: bool
    asked: str = ""

    @classmethod
    def of(cls, predictor: PublishedPredictor | RobustPredictor, dedicated_runs: Iterable[Run] = ()) -> Reference:
        """The terms of a predictor, corrected by dedicated runs on its platform.

        These runs belong to what was learned there: where the model misses them by some percent, it misses those on
        the target by as much, and no scale factor is to blame. Runs of distrusted users do not. A robust model answers
        for threads and parameters of the dedicated runs, where these all have the same.
        """
        dedicated_runs = tuple(dedicated_runs)
        if not isinstance(predictor, RobustPredictor):
            runs = [*predictor.window, *dedicated_runs]
            return _of_lists(predictor.state.parallel, predictor.state.alone, observations(runs))
        runs = [*predictor.teaching, *dedicated_runs]
        scales, settings = predictor.state.model.scales, [run.settings for run in runs]
        model = Model.fit(measured(runs), scales, search=False, settings=settings)
        return _of_model(model, _in_common(dedicated_runs))


def _in_common(runs: Sequence[Run]) -> Settings:
    """The settings but for the layout that all runs have; the usual ones if they differ."""
    found = {replace(run.settings, processes_per_node=None) for run in runs}
    return found.pop() if len(found) == 1 else DEFAULT_SETTINGS


def _of_model(model: Model, settings: Settings) -> Reference:
    model = model.under(settings)

    def terms(n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Pair:
        found = model.formula.terms(n, p, cpu, bw)
        residual = np.exp(model.residual(np.log(np.stack([n, p], axis=1)))[:, 0])
        return found.computation * residual, found.communication * residual

    differ = ", ".join(dict.fromkeys(column.name for column in model.formula.effects.columns.columns))
    asked = f"{differ} differ, predictions are for {settings.text or 'the usual ones'}" if differ else ""
    return Reference(terms, model.texts, True, asked)


def _of_lists(parallel: SortedList, alone: SortedList | None, runs: Observations) -> Reference:
    """The best formulas of the published lists, and a process on their residuals."""

    def bare(n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Pair:
        computation, communication = _evaluated(parallel, n, p, cpu, bw)
        if alone is None:
            return computation, communication
        single = p == 1.0
        first, second = _evaluated(alone, n, p, cpu, bw)
        return np.where(single, first, computation), np.where(single, second, communication)

    process = _process(bare, runs) if supports_search(runs) else None

    def terms(n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Pair:
        computation, communication = bare(n, p, cpu, bw)
        if process is None:
            return computation, communication
        points = inputs(n, p, cpu, bw)
        residual = np.exp(process.predict(points, np.ones((len(points), 1)))[0])
        return computation * residual, communication * residual

    combination, (a, b) = parallel.combinations[0], parallel.coefficients[0]
    texts = formula(combination, (a, 0.0)), formula(combination, (0.0, b))
    return Reference(terms, texts, bool(b))


def _process(bare: Callable[[Floats, Floats, Floats, Floats], Pair], runs: Observations) -> ResidualProcess:
    points = inputs(runs.problem_size, runs.processors, runs.cpu, runs.bw)
    chosen = well_chosen(points)
    runs, points = runs.at(chosen), points[chosen]
    time = np.sum(bare(runs.problem_size, runs.processors, runs.cpu, runs.bw), axis=0)
    defined = (time > 0.0) & (time < np.inf)
    error = np.log(runs.time / np.where(defined, time, 1.0))
    level = np.ones((int(defined.sum()), 1))
    points, error, spreads = points[defined], error[defined], np.array([LEVEL_SPREAD])
    scales = most_probable(points, level, spreads, error, PRIOR, PRIOR.medians)
    return ResidualProcess(points, level, spreads, error, scales)


def _evaluated(models: SortedList, n: Floats, p: Floats, cpu: Floats, bw: Floats) -> Pair:
    combination, (a, b) = models.combinations[0], models.coefficients[0]
    return evaluate(combination, (a, 0.0), n, p, cpu, bw), evaluate(combination, (0.0, b), n, p, cpu, bw)
