"""Effects of the layout on nodes and of named parameters on the two terms of the formula.

With k processes on a node, t threads a process, and numbers q and words w among the parameters:

    computation   *= k^sharing t^-threading  prod_q (q / q0)^e  prod_w f_w
    communication *= k^linking (o + inside (1 - o))  prod_q (q / q0)^e  prod_w f_w,     o = (P - k) / (P - 1)

The processes of a node share its memory and its link; o is the share of a process's partners outside its node, and
``inside`` the cost of a message within a node relative to one between nodes. A parameter q that can be 0 has the factor
exp(e (q - q0) / range) instead of the power. Each exponent and factor has a normal prior, those of ``inside`` and f_w
on the logarithm; a parameter that never varied has no effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.memory.setting_columns import NO_COLUMNS, SettingColumns
from metasched.records import Settings


class Prior(NamedTuple):
    """The prior of one parameter of the effects: its mean, its standard deviation, and its lower bound."""

    value: float
    spread: float
    least: float = -np.inf


#: At best memory and link are shared without loss. The last is the smallest distinguished share of partners outside.
#: Most of a run is paced by the clock, as ``energy.clock`` expects before any run.
SHARING, LINKING, INSIDE = Prior(0.1, 0.3, 0.0), Prior(0.5, 0.4, 0.0), Prior(float(np.log(0.1)), 1.0)
THREADING, POWER, WORD, CLOCK = Prior(0.85, 0.2, 0.0), Prior(0.5, 0.7), Prior(0.0, 0.7), Prior(-0.8, 0.4)
#: The priors of the exponents of columns that are no numbers; of the layout the one that changes times most.
_EXPONENTS = {"per_node": LINKING, "threads": THREADING, "word": WORD, "clock": CLOCK}


class Factors(NamedTuple):
    """The factors of the effects at n conditions.

    Parameters
    ----------
    computation, communication : logarithms of the factors of both terms, shape (n,).
    by_computation, by_communication : their derivatives by the numbers of the effects, shape (m, n).
    """

    computation: Floats
    communication: Floats
    by_computation: Floats
    by_communication: Floats


@dataclass(frozen=True)
class Effects:
    """The effects of the settings in which runs differ.

    >>> from metasched.records import Settings
    >>> layouts = [Settings.of(k) for k in (1, 4)]
    >>> effects = Effects(SettingColumns.of(layouts, np.log([8.0, 8.0])))
    >>> effects.names
    ('sharing', 'linking', 'inside')
    >>> found = effects.factors((0.5, 1.0, -20.0), np.log([8.0, 8.0]), effects.columns.rows(layouts))
    >>> np.exp(found.computation).round(2), np.exp(found.communication).round(2)
    (array([1., 2.]), array([1.  , 2.29]))
    """

    columns: SettingColumns = NO_COLUMNS

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each parameter of the effects, in their order."""
        return tuple(name for name, _ in self._numbers)

    @property
    def priors(self) -> tuple[Prior, ...]:
        """The prior of each parameter of the effects, in their order."""
        return tuple(prior for _, prior in self._numbers)

    @property
    def _numbers(self) -> list[tuple[str, Prior]]:
        found: list[tuple[str, Prior]] = []
        for name, column in zip(self.columns.names, self.columns.columns, strict=True):
            if column.kind == "per_node":
                found += [("sharing", SHARING), ("linking", LINKING), ("inside", INSIDE)]
            else:
                found.append(("threading" if column.kind == "threads" else name, _EXPONENTS.get(column.kind, POWER)))
        return found

    def factors(self, numbers: tuple[float, ...], log_p: Floats, rows: Floats) -> Factors:
        """The factors at exp(log_p) processors, shape (n,), for whole rows of the columns, shape (n, c).

        Parameters
        ----------
        numbers : parameters of the effects, in the order of their priors.
        log_p : logarithms of the numbers of processors, shape (n,).
        rows : complete rows of settings, shape (n, c).
        """
        n = len(log_p)
        on_first: list[Floats] = []
        on_second: list[Floats] = []
        none = np.zeros(n)
        inside_cost = none
        for column, values in zip(self.columns.columns, rows.T, strict=True):
            if column.kind == "per_node":
                outside = _outside(log_p, values)
                cost = float(np.exp(numbers[len(on_first) + 2]))
                share = outside + cost * (1.0 - outside)
                inside_cost = np.log(share)
                on_first += [values, none, none]
                on_second += [none, values, cost * (1.0 - outside) / share]
            elif column.kind == "threads":
                on_first.append(-values)
                on_second.append(none)
            else:
                on_first.append(values)
                on_second.append(values)
        shape = len(on_first), n  # also where there is no request
        first, second = np.reshape(on_first, shape), np.reshape(on_second, shape)
        weights = np.array(numbers)
        of_second = weights.copy()
        if "inside" in self.names:  # it counts as its share, not as a power
            of_second[self.names.index("inside")] = 0.0
        return Factors(weights @ first, of_second @ second + inside_cost, first, second)

    def unstated(self, numbers: tuple[float, ...], setting: tuple[float, ...]) -> float:
        """Variance of log time by the parameters that are not stated, about their usual values.

        Any number between those learned may be meant, and any of the words. The effect of a word that was never learned
        is as large as those of the other words, to which the prior counts as one more; that of a number up to 0 where
        all were above it, as large as from the middle of those learned to an end.

        Parameters
        ----------
        numbers : the parameters of the effects.
        setting : a row of settings, NaN where not stated, infinite for what was never learned, shape (c,).

        Examples
        --------
        >>> from metasched.records import Settings
        >>> steps = [Settings.of(parameters={"steps": k}) for k in (10, 1000)]
        >>> effects = Effects(SettingColumns.of(steps, np.zeros(2)))
        >>> effects.unstated((1.0,), (math.nan,)), effects.unstated((1.0,), (0.5,))
        (1.76..., 0.0)
        """
        powers, variance = dict(zip(self.names, numbers, strict=True)), 0.0
        # Models of older files have no ranges.
        stated = zip(self.columns.names, self.columns.columns, self.columns.ranges, setting, strict=False)
        for name, column, (low, high), cell in stated:
            if not math.isfinite(cell) and column.kind == "word":
                alike = sum(other.name == column.name for other in self.columns.columns)
                prior = WORD.spread**2 / alike if math.isinf(cell) else 0.0
                variance += (powers[name] ** 2 + prior) / (1 + alike)
            elif not math.isfinite(cell) and column.kind in ("power", "range"):
                variance += (powers[name] * (high - low)) ** 2 / (12.0 if math.isnan(cell) else 4.0)
        return variance

    def unlearned(self, settings: Settings) -> float:
        """Variance of log time by settings that are stated and were always others: their effects, as before any run.

        The expected time stays that of the settings learned, so the mean of a prior counts as doubt, too.

        >>> effects = Effects(SettingColumns.of([Settings.of(parameters={"steps": 10})], np.zeros(1)))
        >>> [round(effects.unlearned(Settings.of(parameters={"steps": steps})), 2) for steps in (10, 20, 1000)]
        [0.0, 0.36, 15.69]
        """
        found = [(_EXPONENTS.get(kind, POWER), far) for kind, far in self.columns.departures(settings)]
        return sum(((prior.value**2 + prior.spread**2) * far**2 for prior, far in found), start=0.0)


NO_EFFECTS = Effects()


def _outside(log_p: Floats, log_k: Floats) -> Floats:
    """Share of a process's partners that are on other nodes; 1 for a process alone."""
    p, k = np.exp(log_p), np.exp(log_k)
    return np.where(p > 1.0, np.maximum(p - k, 0.0) / np.maximum(p - 1.0, 1.0), 1.0)
