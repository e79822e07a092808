"""Applications that the configuration has simulated before their first runs: read from the files that it names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from metasched.predictors.analytic.simulated import SimulatedPredictor
from metasched.records import InputError
from metasched.service.configuration import SimulatedApplication
from metasched.store.files.simulation import checked, read_application, read_system
from metasched.store.files.whole_files import read_text

#: Most instructions of one simulation: a placement waits for one of each number of processors that was not asked for.
STEPS = 20_000


def simulated_applications(tables: Sequence[SimulatedApplication]) -> list[SimulatedPredictor]:
    """The predictor of each table.

    Raises
    ------
    InputError
        For the first that is wrong, with its file, or with the application that the table is of.
    """
    return [_read(each) for each in tables]


def _read(table: SimulatedApplication) -> SimulatedPredictor:
    system, program = Path(table.system), Path(table.program)
    known, code = read_system(system), read_application(program)
    labels = list(code.code)
    if not table.label and len(labels) > 1:
        raise InputError(f"simulated {table.application} has no label, expected one of {', '.join(labels)}")
    label = table.label or labels[0]
    try:
        counts = checked(known, code, dict(table.processes))
        return SimulatedPredictor(
            known,
            read_text(program),
            label=label,
            size=table.size,
            processes={name: count for name, count in counts.items() if name != label},
            variables=_numbers(table, set(code.variables)),
            application=table.application,
            cluster=table.platform,
            steps=STEPS,
        )
    except InputError as error:
        raise InputError(f"simulated {table.application}: {error}", where=str(program)) from None


def _numbers(table: SimulatedApplication, variables: set[str]) -> dict[str, float]:
    """The values of the variables; whole numbers count rounds of loops."""
    for name in table.variables:
        if name not in variables:
            raise InputError(f"{name} is not a variable, expected one of {', '.join(sorted(variables))}")
    return {name: int(each) if each == int(each) else each for name, each in table.variables.items()}
