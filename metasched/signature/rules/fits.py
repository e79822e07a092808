"""What a fit finds: the rules, and how much of the traces they explain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats
from metasched.signature.rules.application import Application
from metasched.signature.traces.actions import AMOUNTS


@dataclass(frozen=True)
class Irregular:
    """A part of a program that follows no rule and is modelled by its statistics, or a loop that is run as often.

    Parameters
    ----------
    where : between which collective operations.
    calls : what is done there, by name.
    events, time : its shares of the actions and of the time.
    """

    where: str
    calls: tuple[str, ...]
    events: float
    time: float


@dataclass(frozen=True)
class Fit:
    """The result of a fit, and how much of the traces its rules explain.

    Parameters
    ----------
    application : the rules.
    ruled : share of all actions whose every number follows rules.
    unruled : by the name of the action, the share of all actions of which some number follows no rule.
    times : the same, as shares of the time.
    irregular : the parts that follow no rule, in the order of the program.
    in_order : whether messages that are started together were put in order, see
        :mod:`metasched.signature.traces.message_order`.
    """

    application: Application
    ruled: float
    unruled: dict[str, float]
    times: dict[str, float]
    irregular: tuple[Irregular, ...] = ()
    in_order: bool = False

    @property
    def calls_ruled(self) -> float:
        """Share of all actions that follow rules, if computation did."""
        return 1.0 - sum(share for name, share in self.unruled.items() if name not in AMOUNTS)

    @property
    def partners(self) -> bool:
        """Whether all partners of messages follow rules."""
        return all(
            rule.numbers[place].ruled
            for each in self.application.each()
            for role in each.roles.values()
            for leaf, rule in zip(role.program.leaves, role.rules, strict=True)
            for place in each.shapes[leaf.shape].peers
        )


def add(to: dict[str, Floats], name: str, events: float, seconds: float) -> None:
    """Count actions that follow no rule, and their seconds."""
    to[name] = to.get(name, np.zeros(2)) + np.array([events, seconds], dtype=np.float64)


def shares_by_name(unruled: dict[str, Floats]) -> tuple[dict[str, float], dict[str, float]]:
    """Shares of the actions and of the time, by the name of the action."""
    events, seconds = ({name: float(each[place]) for name, each in unruled.items()} for place in (0, 1))
    return events, seconds
