"""Warnings about what the runs of a robust model do not determine."""

from __future__ import annotations

import numpy as np

from candidate_functions.terms import Observations
from metasched.plain_numbers import number_of

#: Number of runs from which on they determine most of the model.
FEW = 10
#: Inputs whose logarithms vary by less than this say nothing about their effect.
HARDLY = 0.1


def notes_on(runs: Observations) -> tuple[str, ...]:
    """The assumptions about what the runs do not determine, each a clause for the user.

    >>> notes_on(Observations.of([100.0], [1], [1.0], [90.0], [2.0]))[1]
    '1 run on 1 processor count with 1 problem size: how time grows with N and falls with P is mostly assumed'
    """
    notes = []
    if len(runs) < FEW:
        notes.append(
            f"with {number_of(len(runs), 'run')} the model relies largely on what is typical of parallel applications"
        )
    sizes, counts = len(np.unique(runs.problem_size)), len(np.unique(runs.processors))
    assumed = [what for few, what in ((sizes < 2, "grows with N"), (counts < 2, "falls with P")) if few]
    if assumed:
        points = f"{number_of(counts, 'processor count')} with {number_of(sizes, 'problem size')}"
        notes.append(f"{number_of(len(runs), 'run')} on {points}: how time {' and '.join(assumed)} is mostly assumed")
    unmeasured = int(np.count_nonzero(np.isnan(runs.cpu) | np.isnan(runs.bw)))
    if unmeasured:
        notes.append(
            f"loads were not measured during {unmeasured} of {number_of(len(runs), 'run')}, which have less weight"
        )
    return tuple(notes)


def assumed_effects(runs: Observations) -> tuple[str, ...]:
    """The loads whose effect runs cannot tell, as they hardly varied, each a clause for the user.

    >>> assumed_effects(Observations.of([100.0, 200.0], [2, 2], [1.0, 0.5], [90.0, 90.0], [2.0, 3.0]))
    ('available bandwidth hardly varied in the runs: its effect is assumed',)
    """
    notes = []
    for name, values in (("available CPU", runs.cpu), ("available bandwidth", runs.bw[runs.processors > 1])):
        known = np.log(values[~np.isnan(values)])
        if not len(known) or np.ptp(known) < HARDLY:
            notes.append(f"{name} hardly varied in the runs: its effect is assumed")
    return tuple(notes)
