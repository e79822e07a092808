"""Energy without metered runs: the predicted time times the power by the formula of the hardware."""

from __future__ import annotations

from dataclasses import replace

from metasched.blocks.entry import Entry
from metasched.blocks.power import drawn
from metasched.records import Interval, Prediction


def energy_by_hardware(found: Prediction, entry: Entry, processors: int, per_node: int | None = None) -> Prediction:
    """The energy (J) of a predicted run on as few nodes as suffice, with joules instead of seconds.

    The interval is that of the time; the error of the formula is unknown, and a warning says so.

    Parameters
    ----------
    found : predicted time.
    entry : whose power formula answers.
    processors : P.
    per_node : that it takes of a node; all cores of the entry where None.

    Raises
    ------
    InputError : when the entry gives no power.

    Examples
    --------
    >>> from metasched.blocks.power import of_processors
    >>> energy_by_hardware(Prediction(10.0, Interval(9.0, 12.0, 0.9), "m"), of_processors(50.0), 4).interval.high
    2400.0
    """
    watts = float(drawn(entry, [processors], per_node)[0])
    interval = Interval(found.interval.low * watts, found.interval.high * watts, found.interval.level)
    warning = f"no run learned has a recorded energy: {watts:.4g} W by the power formula of {entry.name}, not measured"
    return replace(found, execution_time=found.execution_time * watts, interval=interval, warnings=(warning,))
