"""Models that answer before the first runs: simulations and signatures whose files the configuration names."""

from __future__ import annotations

from pathlib import Path

from metasched.predictors.analytic.signature import SignaturePredictor
from metasched.predictors.analytic.simulated import SimulatedPredictor
from metasched.predictors.contract import Assumed
from metasched.records import InputError
from metasched.service.configuration import Configuration, SignedApplication, SimulatedApplication
from metasched.signature.rules.reporting import caveats
from metasched.signature.times.hardware import assumed
from metasched.store.files.hardware import hardware_of
from metasched.store.files.signatures import measured_in, read_application
from metasched.store.files.simulation import checked, read_system
from metasched.store.files.simulation import read_application as read_program
from metasched.store.files.whole_files import read_text

#: Most instructions of one simulation: a placement waits for one of each number of processors that was not asked for.
STEPS = 20_000


def analytic_models(configuration: Configuration) -> list[Assumed]:
    """The predictor of each table.

    Raises
    ------
    InputError : for the first that is wrong, with its file, or with the application that the table is of.
    """
    return [*map(_simulated, configuration.simulated), *map(_signed, configuration.signature)]


def _signed(table: SignedApplication) -> SignaturePredictor:
    path = Path(table.signature)
    rules, document = read_application(path)
    try:
        where = assumed() if table.hardware is None else hardware_of(
            table.hardware, table.network, table.processes_per_node
        )  # fmt: skip
        return SignaturePredictor(
            rules,
            where,
            problem_size=table.problem_size,
            timed=measured_in(document, path),
            application=table.application,
            cluster=table.platform,
            notes=caveats(document),
        )
    except InputError as error:
        raise InputError(f"signature of {table.application}: {error}", where=str(path)) from None


def _simulated(table: SimulatedApplication) -> SimulatedPredictor:
    system, program = Path(table.system), Path(table.program)
    known, code = read_system(system), read_program(program)
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
