"""The nouns of the house, all immutable: a run, a load, a resource set, a request, a prediction, a placement.

Every record checks itself when it is made, so that whatever holds a record holds a sound one. A record that cannot be
made raises :class:`InputError`, one line that names the field, the value, and what was expected. Times are seconds,
bandwidths Mbit/s, available CPU is the fraction of one processor that a new process would get.
"""

from __future__ import annotations

from metasched.records.errors import (
    InputError,
    check_above_zero,
    check_count,
    check_fraction,
    check_level,
    check_seconds,
)
from metasched.records.loads import Load
from metasched.records.placements import Place, Placement, ResourceSet
from metasched.records.predictions import Interval, Prediction, Request
from metasched.records.runs import IDLE_BANDWIDTH, IDLE_CPU, PhaseMark, Run
from metasched.records.settings import (
    DEFAULT_SETTINGS,
    FASTEST,
    LONGEST_WORD,
    MOST_PARAMETERS,
    PARAMETER,
    SETTING_COLUMNS,
    SLOWEST,
    WITHOUT,
    Settings,
    has_words,
)

__all__ = [
    "DEFAULT_SETTINGS",
    "FASTEST",
    "IDLE_BANDWIDTH",
    "IDLE_CPU",
    "LONGEST_WORD",
    "MOST_PARAMETERS",
    "PARAMETER",
    "SETTING_COLUMNS",
    "SLOWEST",
    "WITHOUT",
    "InputError",
    "Interval",
    "Load",
    "PhaseMark",
    "Place",
    "Placement",
    "Prediction",
    "Request",
    "ResourceSet",
    "Run",
    "Settings",
    "check_above_zero",
    "check_count",
    "check_fraction",
    "check_level",
    "check_seconds",
    "has_words",
]
