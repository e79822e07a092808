"""The settings of runs as columns, besides N, P and loads: layout on nodes, and named parameters.

Only what varies among the runs makes a column, so nothing is said of what never varied. A number above 0 is taken by
its logarithm, other numbers relative to their range, a word by a column for each but the most common one; rare words
share the last column if there are many. Middles are 0. What a run or a request does not tell stands at the middle;
processes per node at what runs on as many processors had. A run that names no type of GPUs had none, and differs by
that from those that do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from metasched.arrays import Floats
from metasched.predictors.memory.domain import FAR
from metasched.records import WITHOUT, InputError, Settings, has_words
from metasched.records.settings import parsed

#: Words of one parameter that have columns of their own at most, and columns altogether.
MOST_WORDS, MOST_COLUMNS = 8, 16
#: Largest distance of a number from the middle, in ranges: the square of its effect stays within double precision.
FARTHEST = 1e100
#: Differences of logarithms up to this size are those of rounding.
ROUNDING = 1e-9

Kind = Literal["per_node", "threads", "clock", "power", "range", "word"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Parameters
    ----------
    kind : what it holds: log processes per node, log threads, log(frequency / middle), log(value / middle),
        (value - middle) / unit, or 1 where the word is ``word`` or one of ``rarer`` and 0 elsewhere.
    name : of the parameter; ``processes_per_node`` or ``threads`` for the layout, ``frequency`` for the clock.
    """

    kind: Kind
    name: str
    middle: float = 0.0
    unit: float = 1.0
    word: str = ""
    rarer: tuple[str, ...] = ()

    def value(self, settings: Settings, *, learned: bool = False) -> float:
        """The cell of some settings, NaN where they do not tell; of a run learned also for a word among numbers.

        It is minus infinity for a number that is not above 0 where all that were learned are.
        """
        if self.kind == "per_node":
            return math.nan if settings.processes_per_node is None else math.log(settings.processes_per_node)
        if self.kind == "threads":
            return math.log(settings.threads)
        if self.kind == "clock":
            return math.nan if settings.frequency is None else math.log(settings.frequency / self.middle)
        given = dict(settings.parameters).get(self.name)
        if self.kind == "word":
            given = WITHOUT.get(self.name) if given is None else given
            return math.nan if given is None else float(_word(given) in (self.word, *self.rarer))
        if given is None:
            return math.nan
        if isinstance(given, str):
            if learned:
                return math.nan
            raise InputError(f"parameter {self.name} is {given!r}, expected a number, as in the runs learned")
        if self.kind == "range":
            cell = (given - self.middle) / self.unit
            if abs(cell) > FARTHEST:
                raise InputError(f"parameter {self.name} is {given:g}, which is too far from those of the runs learned")
            return cell
        return math.log(given) - math.log(self.middle) if given > 0.0 else -math.inf

    def number(self, cell: float) -> float:
        """What a cell of a number stands for."""
        if self.kind == "range":
            return self.middle + cell * self.unit
        return math.exp(cell) * (self.middle or 1.0)


@dataclass(frozen=True)
class SettingColumns:
    """The columns of some runs.

    Parameters
    ----------
    columns : what makes them.
    known : for each parameter by name the words it had, most common first; none for a number.
    constant : the settings that no column stands for, as they always were, in words such as ``threads 2``.
    knots : log P, and log processes per node of the runs on as many, each of shape (k,), ascending.
    ranges : the least and the largest cell of each column.

    Examples
    --------
    >>> stated = [Settings.of(4, parameters={"steps": steps, "k": 3}) for steps in (10, 1000)]
    >>> found = SettingColumns.of(stated, np.log([8.0, 16.0]))
    >>> found.names, found.rows(stated).round(2).tolist()
    (('steps',), [[-2.3], [2.3]])
    >>> found.rows([Settings.of(parameters={"step": 7})])
    Traceback (most recent call last):
    metasched.records.errors.InputError: parameter 'step' is unknown, expected one of k, steps
    """

    columns: tuple[Column, ...] = ()
    known: tuple[tuple[str, tuple[str, ...]], ...] = ()
    constant: tuple[tuple[str, str], ...] = ()
    knots: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    ranges: tuple[tuple[float, float], ...] = ()

    @classmethod
    def of(cls, settings: Sequence[Settings], log_p: Floats) -> SettingColumns:
        """The columns of runs with some settings on exp(log_p) processors, shape (n,)."""
        if not any(
            each.processes_per_node or each.threads > 1 or each.frequency or each.parameters for each in settings
        ):
            return NO_COLUMNS
        columns: list[Column] = []
        constant: dict[str, str] = {}
        knots: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
        processes = np.array(
            [math.nan if each.processes_per_node is None else each.processes_per_node for each in settings]
        )
        known = ~np.isnan(processes)
        if len(set(processes[known])) > 1:
            columns.append(Column("per_node", "processes_per_node"))
            counts = np.unique(log_p[known])
            usual = [float(np.log(processes[known & (log_p == count)]).mean()) for count in counts]
            knots = tuple(counts.tolist()), tuple(usual)
        elif known.any():
            constant["processes_per_node"] = f"{processes[known][0]:g}"
        threads = {each.threads for each in settings}
        if len(threads) > 1:
            columns.append(Column("threads", "threads"))
        elif threads != {1}:
            constant["threads"] = str(*threads)
        clocks = [each.frequency for each in settings if each.frequency is not None]
        if len(set(clocks)) > 1:
            columns.append(Column("clock", "frequency", middle=float(np.exp(np.log(clocks).mean()))))
        elif clocks:
            constant["frequency"] = f"{clocks[0]:g}"
        words: dict[str, tuple[str, ...]] = {}
        for name in sorted({name for each in settings for name, _ in each.parameters}):
            values = [value for each in settings for other, value in each.parameters if other == name]
            numbers = not has_words(values)
            if numbers:
                values = [value for value in values if not isinstance(value, str)]
            elif name in WITHOUT:
                values += [WITHOUT[name]] * (len(settings) - len(values))
            words[name] = () if numbers else tuple(word for word, _ in Counter(map(_word, values)).most_common())
            if len(set(values if numbers else words[name])) == 1:
                constant[name] = _word(values[0])
            else:
                columns += _columns(name, values, MOST_COLUMNS - len(columns))
        made = cls(tuple(columns), tuple(words.items()), tuple(constant.items()), knots)
        cells = made.rows(settings, learned=True)
        ranges = zip(np.nanmin(cells, axis=0).tolist(), np.nanmax(cells, axis=0).tolist(), strict=True)
        return replace(made, ranges=tuple(ranges))

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each column, with its word where it stands for one."""
        return tuple(f"{each.name}={each.word}" if each.word else each.name for each in self.columns)

    @property
    def laid_out(self) -> bool:
        """Whether the runs differ in their layout, or all had several threads."""
        return "threads" in dict(self.constant) or any(each.kind in ("per_node", "threads") for each in self.columns)

    def rows(self, settings: Sequence[Settings], *, learned: bool = False) -> Floats:
        """The cells, shape (n, c), NaN where the settings do not tell, infinite where what they tell was never learned.

        This is a word, or a number up to 0 where all were above it.

        Parameters
        ----------
        settings : of runs or requests.
        learned : of the runs that the columns were made of: the few words among numbers count as not given.

        Raises
        ------
        InputError : a parameter is unknown, or a word where numbers were.
        """
        asked = {name for each in settings for name, value in each.parameters if value != WITHOUT.get(name)}
        for name in sorted(asked - dict(self.known).keys()):
            expected = (
                f"one of {', '.join(dict(self.known))}" if self.known else "none, since the runs learned had none"
            )
            raise InputError(f"parameter {name!r} is unknown, expected {expected}")
        cells = [[column.value(each, learned=learned) for column in self.columns] for each in settings]
        found = np.array(cells, dtype=np.float64).reshape(len(settings), len(self.columns))
        words = {name: known for name, known in self.known if known}
        for row, each in zip(found, settings, strict=True):
            strange = {name for name, value in each.parameters if name in words and _word(value) not in words[name]}
            row[[column.name in strange for column in self.columns]] = math.inf
        return found

    def filled(self, rows: Floats, log_p: Floats) -> Floats:
        """Rows for exp(log_p) processors, the usual where cells are not finite: (n, c) or (c,), and (n,), to (n, c).

        No node has more processes than there are.
        """
        whole = np.broadcast_to(rows, (len(log_p), len(self.columns))).copy()
        for place, column in enumerate(self.columns):
            per_node, untold = column.kind == "per_node", ~np.isfinite(whole[:, place])
            if untold.any():
                whole[untold, place] = np.interp(log_p[untold], *self.knots) if per_node else 0.0
            if per_node:
                whole[:, place] = np.minimum(whole[:, place], log_p)
        return whole

    def changes(self, settings: Settings) -> dict[str, tuple[str, str]]:
        """What settings state that no column stands for, as it was always the same: by name, stated and learned value.

        >>> found = SettingColumns.of([Settings.of(parameters={"steps": 100})] * 2, np.zeros(2))
        >>> found.changes(Settings.of(threads=2, parameters={"steps": 500}))
        {'threads': ('2', '1'), 'steps': ('500', '100')}
        """
        constant = {"threads": "1"} | dict(self.constant)
        if any(column.kind == "threads" for column in self.columns):
            del constant["threads"]
        asked = self._asked(settings)
        return {name: (asked[name], value) for name, value in constant.items() if asked.get(name, value) != value}

    def departures(self, settings: Settings) -> list[tuple[Kind, float]]:
        """The kind of each of the :meth:`changes`, and how far it leads: the logarithm of a ratio, or 1.

        It is 1 for a word, and for numbers that are not both above 0.
        """
        kinds: dict[str, Kind] = {"processes_per_node": "per_node", "threads": "threads", "frequency": "clock"}
        far = {name: _far_apart(*values) for name, values in self.changes(settings).items()}
        return [(kinds.get(name, "power"), each) if each else ("word", 1.0) for name, each in far.items()]

    def _asked(self, settings: Settings) -> dict[str, str]:
        """What settings tell, in words by name."""
        asked = {name: WITHOUT[name] for name, words in self.known if words and name in WITHOUT}
        asked |= {name: _word(value) for name, value in settings.parameters}
        if settings.processes_per_node is not None:
            asked["processes_per_node"] = str(settings.processes_per_node)
        asked["threads"] = str(settings.threads)
        if settings.frequency is not None:
            asked["frequency"] = f"{settings.frequency:g}"
        return asked

    def doubts(self, settings: Settings) -> tuple[str, ...]:
        """Warnings about predictions for these settings."""
        asked = self._asked(settings)
        names = {"threads", *dict(self.constant), *(column.name for column in self.columns)}
        if settings.processes_per_node is not None and "processes_per_node" not in names:
            return (
                f"processes_per_node {asked['processes_per_node']}: no learned run states it, so its effect is unknown",
            )
        notes = [
            f"{name} {stated} was never learned (it was always {learned}), so its effect is unknown"
            for name, (stated, learned) in self.changes(settings).items()
        ]
        notes += [
            f"{column.name} {asked[column.name]} is one of {len(column.rarer) + 1} rare words, which count as one"
            for column in self.columns
            if column.rarer and asked.get(column.name) in (column.word, *column.rarer)
        ]
        words = {name: known for name, known in self.known if known}
        if settings.frequency is not None and "frequency" not in names:
            notes.append(f"frequency {asked['frequency']}: no learned run states it, so its effect is unknown")
        for name in dict.fromkeys(column.name for column in self.columns):
            if name == "gpus" and asked.get("gpu") == WITHOUT["gpu"]:
                continue
            if name not in asked:
                notes.append(f"{name} is not given, the usual value is assumed")
            elif name in words and asked[name] not in words[name]:
                notes.append(f"{name} {asked[name]} was never learned, {words[name][0]} is assumed")
        notes += [
            f"{column.name} {asked[column.name]} was never learned (all were above 0), the usual value is assumed"
            for column in self.columns
            if column.kind == "power" and column.value(settings) == -math.inf
        ]
        notes += [note for place in range(len(self.ranges)) if (note := self._far(place, settings))]
        if without := dict(self.known).keys() - names:
            notes.append(f"the effect of {', '.join(sorted(without))} is not learned: there are too many parameters")
        return tuple(notes)

    def _far(self, place: int, settings: Settings) -> str:
        """What to say where a number is far outside what was learned; nothing where it is not."""
        column, (low, high) = self.columns[place], self.ranges[place]
        cell = column.value(settings)
        far = 2.0 if column.kind == "range" else math.log(FAR)  # of a range, its own length
        far += ROUNDING
        # It is not finite where none is given, or one that was never learned.
        if column.kind == "word" or not math.isfinite(cell) or low - far <= cell <= high + far:
            return ""
        value, least, most = (column.number(each) for each in (cell, low, high))
        return f"{column.name} {value:g} is far {'above' if cell > high else 'below'} the {least:g} to {most:g} learned"


NO_COLUMNS = SettingColumns()


def _columns(name: str, values: Sequence[float | str], most: int) -> list[Column]:
    """The columns, at most so many, of a parameter with several values."""
    if not most:
        return []
    if has_words(values):
        words = [word for word, _ in Counter(map(_word, values)).most_common()]
        own = min(MOST_WORDS, most)
        made = [Column("word", name, word=word) for word in words[1 : own + 1]]
        return [*made[:-1], replace(made[-1], rarer=tuple(words[own + 1 :]))]
    numbers = np.array(values, dtype=np.float64)
    if numbers.min() > 0.0:
        return [Column("power", name, middle=float(np.exp(np.log(numbers).mean())))]
    return [Column("range", name, middle=float(numbers.mean()), unit=float(np.ptp(numbers)) / 2.0)]


def _far_apart(one: str, other: str) -> float:
    """The distance of the logarithms of two different numbers above 0; 0 for others and for words."""
    try:
        values = parsed(one), parsed(other)
    except ValueError:
        return 0.0
    return abs(math.log(values[0]) - math.log(values[1])) if min(values) > 0.0 else 0.0


def _word(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"
