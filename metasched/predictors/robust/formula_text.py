"""The formula of the robust method written out, with its numbers, for those who read it."""

from __future__ import annotations

import numpy as np

from metasched.predictors.robust.effects import Effects
from metasched.predictors.robust.structure import Structure


def texts(formula: Structure) -> tuple[str, str]:
    """Both terms as text, computation and then communication; N, P, cpu and bw as they are.

    >>> from metasched.predictors.robust.structure import Numbers
    >>> made = Numbers(np.log(10.0), 2.0, np.log(1e-9), 1.0, 1.0, np.log(1e-9), 0.0, 0.0, 1.0, 0.0)
    >>> texts(Structure(made, size=1000.0, processors=1.0, bandwidth=90.0))
    ('1e-05 N^2 (P^-1 + 1e-09) / cpu', '1.8e-12 N^2 (1 - 1/P) / bw')
    """
    t = formula.numbers
    amount = np.exp(t.amount) * formula.size**-t.growth
    shared, serial = formula.processors**t.speedup, np.exp(t.serial)
    sent = 2.0 * np.exp(t.amount + t.communication - (t.growth + t.volume) * np.log(formula.size))
    sent *= formula.bandwidth**t.bandwidth * 2.0**-t.spreading
    computation = f"{amount * shared:.3g}{_power('N', t.growth)} ({_power('P', -t.speedup).strip() or '1'} + "
    computation += f"{serial / shared:.2g}){_power('cpu', -t.cpu)}"
    communication = f"{sent:.3g}{_power('N', t.growth + t.volume)} (1 - 1/P){_power('P', t.spreading)}"
    communication += _power("bw", -t.bandwidth) + _power("cpu", -t.waiting)
    on_first, on_second = _factors(formula.effects, formula.powers)
    return computation + on_first, communication + on_second


def _factors(effects: Effects, numbers: tuple[float, ...]) -> tuple[str, str]:
    """The factors of computation and communication that the settings of the runs make."""
    first, second = "", ""
    places = iter(numbers)
    for column in effects.columns.columns:
        number = next(places)
        if column.kind == "per_node":
            linking, inside = next(places), np.exp(next(places))
            first += _power("k", number)
            second += _power("k", linking) + f" ({inside:.2g} + {1.0 - inside:.2g} (P - k) / (P - 1))"
        elif column.kind == "threads":
            first += _power("threads", -number)
        elif column.kind == "word":
            rarer = " or rarer" if column.rarer else ""
            both = f" ({np.exp(number):.3g} if {column.name} is {column.word}{rarer})"
            first, second = first + both, second + both
        else:
            both = (
                _power(f"({column.name} / {column.middle:.3g})", number)
                if column.kind in ("clock", "power")
                else f" exp({number / column.unit:.3g} ({column.name} - {column.middle:.3g}))"
            )
            first, second = first + both, second + both
    return first, second


def _power(name: str, exponent: float) -> str:
    exponent = round(exponent, 2)
    if exponent == 0.0:
        return ""
    if name in ("cpu", "bw"):
        return f" / {name}" + (f"^{-exponent:g}" if exponent != -1.0 else "")
    return f" {name}" + (f"^{exponent:g}" if exponent != 1.0 else "")
