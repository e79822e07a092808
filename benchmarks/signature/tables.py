"""The tables of the paper, computed by the real code from what the paper measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.signature import paper
from benchmarks.signature.general_equations import completed, distance_form
from benchmarks.signature.scalability import core_hours, efficiency, prediction_error
from metasched.signature.computation.instruction_table import total_instructions
from metasched.signature.equations.local_equations import local_equation
from metasched.signature.equations.transforms import PowerLaw, r_squared, weight_form


def tables() -> dict[str, Any]:
    """All of them in one document."""
    return {
        "local_equations": local_equations(),
        "table_1": table_1(),
        "table_3": table_3(),
        "instructions": instructions(),
        "table_9": table_9(),
        "core_hours": overheads(),
    }


def local_equations() -> dict[str, Any]:
    """Fig. 4's first communication and Fig. 5's null communications."""
    mesh = local_equation([1, 2, 3, 0, 5, 6, 7, 4])
    return {"figure_4": mesh.as_dict(), "figure_5": completed([4, -1], [1, 4, -1, -4])}


def table_1(processes: int = 4096) -> dict[str, Any]:
    """Partners of process 0 and volumes at more processes than were run."""
    forms = {
        name: distance_form([*paper.TABLE_2], [partner(int(n**0.5)) for n in paper.TABLE_2])
        for name, partner in paper.PARTNERS.items()
    }
    found = {name: {"equation": str(form), "partner": form(processes)} for name, form in forms.items() if form}
    volumes = [int(PowerLaw(factor, exponent)(processes)) for factor, exponent in paper.VOLUMES]
    return {"processes": processes, "partners": found, "volumes": volumes}


def table_3() -> dict[str, Any]:
    """Weights of each phase from Table 3's own and from Table 2's, and what a line in n would say."""
    counts = [*paper.TABLE_3]
    own = [_weights(counts, [paper.TABLE_3[n][phase] for n in counts]) for phase in range(7)]
    other = [_weights(counts, [paper.TABLE_2[n][phase][1] for n in counts]) for phase in range(7)]
    first = [float(paper.TABLE_3[n][0]) for n in counts]
    slope, constant = np.polyfit(counts, first, 1)
    fitted = [slope * n + constant for n in counts]
    line = {"r_squared": r_squared(first, fitted), "at_4096": round(float(slope * 4096 + constant))}
    return {"processes": list(paper.TABLE_3_PREDICTED), "table_3": own, "table_2": other, "line_in_n": line}


def _weights(counts: list[int], weights: list[int]) -> dict[str, Any]:
    form = weight_form(counts, weights)
    if form is None:
        raise LookupError(f"no transform makes {weights} whole")
    return {"equation": str(form), "weights": [form(n) for n in paper.TABLE_3_PREDICTED]}


def instructions() -> dict[str, Any]:
    """Eqs. 2 to 4 and Tables 4 and 5: instructions of each phase where nothing was run."""
    totals = {str(n): sum(each) for n, each in paper.TABLE_2_TOTALS.items()}
    computed = {
        str(n): sum(total_instructions(count, weight, n) for count, weight in phases)
        for n, phases in paper.TABLE_2.items()
    }
    largest = max(paper.TABLE_2)
    weights = [weight_form([*paper.TABLE_3], [paper.TABLE_3[n][phase] for n in paper.TABLE_3]) for phase in range(7)]
    predicted = {
        str(n): [
            round(total / n / form(n))
            for total, form in zip(paper.TABLE_2_TOTALS[largest], weights, strict=True)
            if form is not None
        ]
        for n in (*paper.TABLE_3_PREDICTED, 4900)
    }
    # DIF of Table 5, in percent of the prediction.
    differences = {
        str(n): round(100.0 * abs(1.0 - measured / predicted[str(n)][6]), 2) for n, measured in paper.TABLE_5.items()
    }
    return {"totals": totals, "computed_totals": computed, "per_process": predicted, "dif": differences}


def table_9() -> dict[str, Any]:
    """Errors of the predicted times, efficiency of the measured ones."""
    complete = [row for row in paper.TABLE_9 if row[4] is not None]
    errors = [prediction_error(float(row[4] or 0), row[2]) for row in complete]
    # One prediction is printed by its error alone: the means are those of the printed errors.
    small = [row[5] for row in paper.TABLE_9 if row[6] == row[1]]
    scaled = [row[5] for row in paper.TABLE_9 if row[6] != row[1]]
    shares = [100.0 * row[3] / row[2] for row in paper.TABLE_9 if row[3] is not None and row[6] != row[1]]
    base = {row[0]: row for row in reversed(paper.TABLE_9)}
    times = {(row[0], row[1]): row[2] for row in paper.TABLE_9}
    return {
        "rows": [
            {"application": row[0], "processes": row[1], "pete": round(error, 4), "printed": row[5]}
            for row, error in zip(complete, errors, strict=True)
        ],
        "mean_error": {"signatures": round(float(np.mean(small)), 2), "synthetic": round(float(np.mean(scaled)), 2)},
        "synthetic_share": {"mean": round(float(np.mean(shares)), 1), "most": round(max(shares), 1)},
        "efficiency": {
            f"{name} {n}": round(100.0 * efficiency(times[name, n], n, base[name][2], base[name][1]), 1)
            for name, n in paper.EFFICIENCIES
        },
    }


def overheads() -> dict[str, Any]:
    """Eq. 7 of each application whose runs are all printed."""
    found = {}
    for name in ("BT", "CG", "N-body", "Sweep3D"):
        rows = [row for row in paper.TABLE_9 if row[0] == name]
        found[name] = {
            "p3s": round(core_hours((row[3], row[6]) for row in rows if row[3] is not None), 2),
            "application": round(core_hours((row[2], row[1]) for row in rows), 2),
        }
    return found
