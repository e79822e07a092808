"""How whole numbers grow with the number of processes n: weights (section 3.3.1) and volumes.

The paper replaces n by an index (the displacement) until a line fits exactly. Here the index is looked for: it is the
transform of n in which a line through the points has whole coefficients and leaves nothing over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: What n may be replaced by, simplest first.
TRANSFORMS: Mapping[str, Callable[[float], float]] = {
    "sqrt(n)": math.sqrt,
    "log2(n)": math.log2,
    "n": float,
    "cbrt(n)": lambda n: round(n ** (1 / 3), 12),
    "n log2(n)": lambda n: n * math.log2(n),
}
#: Steepest power of n, and largest factor of it.
MOST_EXPONENT, LARGEST_FACTOR = 4.0, 1e40
#: A count that a tool took may miss some at either end of the run: how many, by the size of the count.
MISSED, MISSED_OF = 2, 1_000


@dataclass(frozen=True, slots=True)
class WholeForm:
    """``constant + sum of factor * transform(n)``, all whole.

    >>> WholeForm(-1001, (("sqrt(n)", 1001),))(1024)
    31031
    >>> str(WholeForm(-1, (("sqrt(n)", 2),)))
    '2 sqrt(n) - 1'
    """

    constant: int
    terms: tuple[tuple[str, int], ...] = ()
    error: float = 0.0

    def __call__(self, n: int) -> int:
        """The value of the form at ``n`` processes."""
        return round(self.constant + sum(factor * TRANSFORMS[name](n) for name, factor in self.terms))

    def __str__(self) -> str:
        text = ""
        for name, factor in (*self.terms, ("", self.constant)):
            if factor or (not name and not text):
                sign = (" + " if factor > 0 else " - ") if text else ("" if factor >= 0 else "-")
                size = abs(factor)
                text += sign + (name if name and size == 1 else f"{size} {name}".strip())
        return text


def are_whole(values: Sequence[float]) -> bool:
    """Whether all are whole numbers, but for rounding."""
    return all(abs(value - round(value)) < 1e-9 for value in values)


def weight_form(counts: Sequence[int], weights: Sequence[int]) -> WholeForm | None:
    """How the weight of a phase grows: exact where it can be, else with at most :data:`MISSED` off everywhere.

    Among forms that leave something over, ``b (t(n) - k)`` with a small whole k stands for steps of a loop and is tried
    before any line.

    Parameters
    ----------
    counts : numbers of processes, at least three different ones tell the transform.
    weights : how often the phase was seen at each.

    Returns
    -------
    The form, or None where no transform fits.

    Examples
    --------
    >>> str(weight_form([256, 324, 484], [15013, 17016, 21019]))
    '1001 sqrt(n) - 1001'
    >>> str(weight_form([256, 324, 484], [999, 999, 999]))
    '999'
    """
    points = dict(zip(counts, weights, strict=True))
    least, most = min(weights), max(weights)
    missed = MISSED if least >= MISSED_OF else 0
    if most == least or (missed and most - least <= missed):
        return WholeForm(round(float(np.median(weights))), error=float(most - least))
    exact: list[WholeForm] = []
    near: list[WholeForm] = []
    for name, transform in TRANSFORMS.items():
        index = [transform(n) for n in points]
        if not are_whole(index):
            continue
        for shift in (0, 1, -1, 2):
            steps = [each - shift for each in index]
            slope = round(float(np.dot(steps, list(points.values())) / np.dot(steps, steps))) if any(steps) else 0
            error = max(abs(slope * step - weight) for step, weight in zip(steps, points.values(), strict=True))
            if slope and error <= missed:
                form = WholeForm(-slope * shift, ((name, slope),), float(error))
                (near if error else exact).append(form)
        if len(points) > 2:
            slope, constant = np.polyfit(index, list(points.values()), 1)
            form = WholeForm(round(float(constant)), ((name, round(float(slope))),))
            if all(form(n) == weight for n, weight in points.items()):
                exact.append(form)
    found = exact or sorted(near, key=lambda form: form.error)
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class PowerLaw:
    """``factor * n^exponent`` with how well it fits; volumes by regression (Table 1).

    >>> law = PowerLaw(3e8, -1.015)
    >>> int(law(4096))
    64651
    """

    factor: float
    exponent: float
    r_squared: float = 1.0

    def __call__(self, n: float) -> float:
        """The value of the form at ``n`` processes."""
        return float(self.factor * n**self.exponent)

    @classmethod
    def fitted(cls, counts: Sequence[float], values: Sequence[float]) -> PowerLaw:
        """The law by least squares of logarithms of values above 0; what is steeper than amounts of work are is noise.

        >>> PowerLaw.fitted([4, 8, 16], [1e9, 100.0, 1.0]).exponent
        -4.0
        """
        x, y = np.log(np.asarray(counts, dtype=float)), np.log(np.asarray(values, dtype=float))
        exponent = float(np.clip(np.polyfit(x, y, 1)[0], -MOST_EXPONENT, MOST_EXPONENT))
        constant = float(np.mean(y - exponent * x))
        return cls(float(np.exp(constant)), float(exponent), r_squared(y, exponent * x + constant))


def r_squared(values: Any, fitted: Any) -> float:
    """The share of the variance that a fit explains; 1 where there is none to explain."""
    values, fitted = np.asarray(values, dtype=float), np.asarray(fitted, dtype=float)
    spread = float(np.sum((values - values.mean()) ** 2))
    return 1.0 - float(np.sum((values - fitted) ** 2)) / spread if spread > 1e-18 else 1.0
