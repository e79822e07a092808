"""How the verbs show sorted lists."""

from __future__ import annotations

from typing import Any

from candidate_functions.terms import formula, names
from metasched.cli import output
from metasched.plain_numbers import number_of
from metasched.predictors.contract import Ranked


def list_document(models: Ranked, top: int) -> list[dict[str, Any]]:
    """The top of a sorted list for --json."""
    return [_model_document(models, position) for position in range(min(top, len(models)))]


def show_list(title: str, models: Ranked, top: int, by: str) -> None:
    """Print the top of a sorted list.

    Parameters
    ----------
    title : what the models are of.
    models, top : the list, and how many of it are shown.
    by : the method, or what else the title should say of the models.
    """
    error = f"standard error ({'relative' if models.relative else 's'})"
    best = f"best {min(top, len(models))} of {number_of(len(models), 'candidate model')}"
    table = output.table("#", error, title=f"{title}: {best}; {by}")
    table.add_column("model", overflow="fold")
    for position in range(min(top, len(models))):
        table.add_row(
            str(position + 1),
            f"{models.standard_error[position]:.4g}",
            formula(models.combinations[position], models.coefficients[position]),
        )
    output.show(table)


def _model_document(models: Ranked, position: int) -> dict[str, Any]:
    return {
        "formula": formula(models.combinations[position], models.coefficients[position]),
        "functions": list(names(models.combinations[position])),
        "coefficients": models.coefficients[position].tolist(),
        "standard_error": float(models.standard_error[position]),
    }
