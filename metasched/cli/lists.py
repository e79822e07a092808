"""How the verbs show sorted lists."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from candidate_functions.terms import formula, names
from metasched.cli import output
from metasched.predictors.cloud.predictor import CloudPredictor
from metasched.predictors.contract import Predictor
from metasched.predictors.sorted_list import SortedList
from metasched.predictors.spmd.fitting import PARAMETERS
from metasched.predictors.spmd.predictor import SpmdPredictor
from metasched.predictors.tournament import Tournament


def list_document(models: SortedList, top: int) -> list[dict[str, Any]]:
    """The top of a sorted list for --json."""
    return [_model_document(models, position) for position in range(min(top, len(models)))]


def fitted_document(predictor: Predictor) -> dict[str, Any]:
    """What a predictor without a sorted list has learned, by name."""
    if isinstance(predictor, Tournament):
        return {"chosen": predictor.chosen.name, "reason": predictor.reason}
    if isinstance(predictor, SpmdPredictor) and predictor.fitted is not None:
        names = (*PARAMETERS, "growth_of_computation", "growth_of_data")
        return dict(zip(names, predictor.fitted.values.tolist(), strict=True))
    if isinstance(predictor, CloudPredictor):
        model = predictor.model
        return {
            "cpu_constant": model.cpu_constant,
            "net_constant": model.net_constant,
            "message_size": str(model.workload.message_size),
            "sends": str(model.workload.sends),
            "growth": predictor.growth,
        }
    return {}


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
