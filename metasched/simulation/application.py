"""Applications as they are simulated: the instructions of each label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from metasched.simulation.expressions import Expression

#: Blocks of all processes of some labels, and whether they send data.
COLLECTIVES = {"bcast": True, "scatter": True, "gather": True, "alltoall": True, "barrier": False}


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step of a label's code.

    Parameters
    ----------
    kind : set, unless (go on at ``target`` where not true), jump, next (of a loop), end, or a block.
    line : in the text.
    name : variable, loop, or label of the other process.
    values : expressions.
    target : instruction to go on with.
    labels : who takes part in a collective operation.
    """

    kind: str
    line: int
    name: str = ""
    values: tuple[Expression, ...] = ()
    target: int = 0
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Application:
    """A parsed application: instructions by label, default values of variables, and the names used."""

    name: str
    code: Mapping[str, tuple[Instruction, ...]]
    variables: Mapping[str, float]
    used: frozenset[str]
