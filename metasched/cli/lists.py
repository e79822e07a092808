"""How the verbs show sorted lists: one for a model, or one for each of its phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.table import Table

from candidate_functions.terms import formula, names
from metasched.cli import output
from metasched.predictors.phases.predictor import PhasedPredictor
from metasched.predictors.published import PublishedPredictor
from metasched.predictors.robust import RobustPredictor
from metasched.predictors.sorted_list import SortedList


@dataclass(frozen=True, slots=True)
class Listed:
    """A sorted list, and what a user of it should know."""

    models: SortedList
    notes: tuple[str, ...]


def sorted_lists(predictor: PublishedPredictor | RobustPredictor | PhasedPredictor) -> dict[str, Listed]:
    """The sorted list that answers for parallel runs, under the name of its phase, or none."""
    if isinstance(predictor, PhasedPredictor):
        return {phase.name: sorted_lists(phase.slowest)[""] for phase in predictor.state.phases}
    if isinstance(predictor, PublishedPredictor):
        return {"": Listed(predictor.state.parallel, predictor.state.notes)}
    return {"": Listed(predictor.state.trend.models, predictor.state.notes)}


def list_document(models: SortedList, top: int) -> list[dict[str, Any]]:
    """The top of a sorted list for --json."""
    return [_model_document(models, position) for position in range(min(top, len(models)))]


def show_list(title: str, models: SortedList, top: int, method: str) -> None:
    """Print the top of a sorted list."""
    table = Table(title=f"{title}: best of {len(models)} models, {method}")
    table.add_column("#", justify="right")
    table.add_column(f"standard error ({'relative' if models.relative else 's'})", justify="right")
    table.add_column("model", overflow="fold")
    for position in range(min(top, len(models))):
        table.add_row(
            str(position + 1),
            f"{models.standard_error[position]:.4g}",
            formula(models.combinations[position], models.coefficients[position]),
        )
    output.out.print(table)


def _model_document(models: SortedList, position: int) -> dict[str, Any]:
    return {
        "formula": formula(models.combinations[position], models.coefficients[position]),
        "functions": list(names(models.combinations[position])),
        "coefficients": models.coefficients[position].tolist(),
        "standard_error": float(models.standard_error[position]),
    }
