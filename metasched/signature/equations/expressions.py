"""Whole numbers as expressions in the number of processes, coordinates in a grid, and the steps of loops.

An expression is ``constant + sum of coefficient * atom``, perhaps modulo a side; an atom is a product of factors.

Names: ``n`` processes, ``r`` the rank, ``P0``, ``P1``, ... sides of the grid, ``x0``, ``x1``, ... coordinates in it,
``i0``, ``i1``, ... steps of the loops around an action from the outermost, ``c0``, ... how many those are, ``j`` a
place in a list and ``m`` how long it is, ``p`` the partner of a message, ``q`` how many requests are open where a call
waits for all; ``some(q)`` where it is only made if there are any. Shares are dealt out along a side (``block0:960``),
the steps of a loop (``blocki1:960``) or all processes but the first (``blockw:960``). ``rounds(n)`` is the logarithm to
the base 2, rounded up, ``doublings(n)`` rounded down, and ``power(n)`` the largest power of two up to n. In a binomial
tree ``tree(r)`` is the number of processes below a rank, itself too. Where processes hold twice as many blocks after
each round, until they hold all n, each sends ``passed(i0)`` blocks in round i0, and ``left(n)`` in the last one. Of the
blocks 0 to n - 1, ``holding(i0)`` have bit i0 set in their number: those that go on in a round of an exchange of all
with all. Among the processes along a side these are ``passed1(i0)`` and ``holding1(i0)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from metasched.arrays import Flags, Floats
from metasched.records import InputError

#: Arrays by name, all of one shape, or of shapes that broadcast.
Env = Mapping[str, Floats]

_VARIABLE = r"(?:n|r|m|j|q|p|P\d|x\d|i\d{1,2}|c\d{1,2})"
_NAMES = re.compile(rf"(?<![a-z]){_VARIABLE}(?![a-z0-9(])")
#: A share: how it is dealt out, along what, and of how much.
_SHARE = re.compile(r"(floor|block|spread|ceil|most)(\d|i\d{1,2}|w):(\d{1,15})")
_FACTOR = re.compile(
    rf"(?:1/)?(?:{_VARIABLE}|\(n-1\)|2\^{_VARIABLE}|(?:sqrt|cbrt|log2|rounds|doublings|power|left|tz|two|wide|many|some)\({_VARIABLE}\)"
    r"|(?:passed|holding)\d?\(i\d{1,2}\)"
    r"|(?:low|above|under|over|tree)\((?:r|p|x\d)\)"
    rf"|{_SHARE.pattern})"
)
#: Most terms of an expression, and most factors of an atom.
MOST_TERMS, MOST_FACTORS = 4, 4
#: The dimension that a list lies along.
LISTED = 9
#: All processes but the first, as a line along which shares are dealt out; their number.
WORKERS, MANY_WORKERS = "w", "(n-1)"
#: What sides of a grid may be asked: whether they are two processes long, longer, or longer than one.
GUARDS: Mapping[str, Callable[[Floats], Flags]] = {
    "two": lambda side: side == 2,
    "wide": lambda side: side > 2,
    "many": lambda side: side > 1,
}
#: The bytes of the numbers that most data are made of; they may also be half or a quarter as large.
LARGEST_NUMBER = 8
#: What arithmetic in floating point may lose of a whole number, and of each of its size.
CARRIED, CARRIED_OF = 1e-6, 1e-11
#: Powers of two beyond this are no numbers of anything.
MOST_BITS = 60.0
#: Largest multiple of a product of shares, as of the numbers in each cell of a grid.
MOST_IN_CELL = 16


def part_of(kind: str, size: Floats | float, side: Floats, at: Floats) -> Floats:
    """How much of ``size`` the process at a coordinate has, by the ways in which programs share out."""
    side = np.maximum(side, 1)  # where there is one process, there are no workers
    whole = np.floor(size / side)
    if kind == "floor":
        return whole
    if kind == "block":
        return whole + (at < size - whole * side)
    if kind == "spread":
        return np.floor((at + 1) * size / side) - np.floor(at * size / side)
    most = np.ceil(size / side)
    if kind == "most":
        return most + 0 * at
    return np.clip(size - at * most, 0, most)


def place_on(line: str, env: Env) -> tuple[Floats, Floats]:
    """The length of a line along which shares are dealt out, and the place of each row on it.

    Parameters
    ----------
    line : the number of a side, the name of the steps of a loop, or :data:`WORKERS`.
    env : the names, arrays of one shape (rows,).

    Raises
    ------
    KeyError : the rows have no such line.

    Examples
    --------
    >>> [each.tolist() for each in place_on("w", {"n": np.array([8.0]), "r": np.array([1.0])})]
    [[7.0], [0.0]]
    """
    if line == WORKERS:
        return env["n"] - 1, env["r"] - 1
    length, at = _names_on(line)
    return env[length], env[at]


def _names_on(line: str) -> tuple[str, str]:
    """The names that the length of a line and the place on it are computed from."""
    if line == WORKERS:
        return "n", "r"
    return (f"c{line[1:]}", line) if line.startswith("i") else (f"P{line}", f"x{line}")


def low_bit(ranks: Floats) -> Floats:
    """The lowest bit that is set in ranks; 0 for rank 0."""
    whole = np.asarray(ranks, dtype=np.int64)
    return (whole & -whole).astype(np.float64)


def power_above(ranks: Floats) -> Floats:
    """The smallest powers of two above ranks."""
    return np.asarray(2.0 ** np.floor(np.log2(np.maximum(2.0 * ranks, 1.0))))


def _powers_below(numbers: Floats) -> Floats:
    """How many powers of two are less than numbers."""
    return np.ceil(np.log2(np.maximum(numbers, 1.0)))


def children_under(ranks: Floats, count: Floats) -> Floats:
    """Of so many processes in a tree, those that a rank reaches by setting one bit below all that are set in it."""
    lower = np.where(ranks > 0, _trailing_zeros(ranks), np.inf)
    return np.asarray(np.minimum(lower, _powers_below(count - ranks)))


def children_over(ranks: Floats, count: Floats) -> Floats:
    """Of so many processes in a tree, those that a rank reaches by setting one bit above all that are set in it."""
    return np.asarray(np.maximum(_powers_below(count - ranks) - np.log2(power_above(ranks)), 0.0))


def processes_under(ranks: Floats, count: Floats) -> Floats:
    """Of so many processes in a tree, a rank and those that it reaches by setting bits below all that are set in it.

    >>> processes_under(np.arange(6.0), np.full(1, 6.0)).tolist()
    [6.0, 1.0, 2.0, 1.0, 2.0, 1.0]
    """
    return np.asarray(np.minimum(np.where(ranks > 0, low_bit(ranks), np.inf), count - ranks))


#: Of a rank, or of a coordinate along a side: what tells where a process stands in a binomial tree.
IN_TREES: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "low": lambda rank, count: low_bit(rank),
    "above": lambda rank, count: power_above(rank),
    "under": children_under,
    "over": children_over,
    "tree": processes_under,
}


def _among(name: str) -> str:
    """Of how many processes a tree is in which ranks, or coordinates along a side, have a place."""
    return f"P{name[1:]}" if name[0] == "x" else "n"


def _trailing_zeros(ranks: Floats) -> Floats:
    return np.asarray(np.log2(np.maximum(low_bit(ranks), 1.0)))


def power_in(numbers: Floats) -> Floats:
    """The largest powers of two up to numbers; 1 for what is less."""
    # What is below 1 has none, and a half would be one.
    return np.asarray(power_above(np.maximum(numbers, 1.0)) / 2.0)


#: Of how many there are: the rounds after which all have heard of all, of whom twice as many have in each; how often
#: one can be doubled; and what it is then.
BY_POWERS: Mapping[str, Callable[[Floats], Floats]] = {
    "rounds": _powers_below,
    "doublings": lambda numbers: np.log2(power_in(numbers)),
    "power": power_in,
}


def blocks_passed(step: Floats, count: Floats) -> Floats:
    """How many blocks a process sends in a round in which it doubles what it holds, in the last one up to all.

    >>> blocks_passed(np.arange(4.0), np.full(1, 12.0)).tolist()
    [1.0, 2.0, 4.0, 4.0]
    """
    held = 2.0 ** np.minimum(step, MOST_BITS)
    return np.maximum(np.minimum(held, count - held), 0.0)


def blocks_holding(bit: Floats, count: Floats) -> Floats:
    """How many of the numbers from 0, as many as there are processes, have a bit set.

    >>> blocks_holding(np.arange(4.0), np.full(1, 12.0)).tolist()
    [6.0, 6.0, 4.0, 4.0]
    """
    half = 2.0 ** np.minimum(bit, MOST_BITS)
    return np.asarray(np.floor(count / (2 * half)) * half + np.maximum(np.mod(count, 2 * half) - half, 0.0))


def left_for_last(count: Floats) -> Floats:
    """How many processes are left for the last round, if twice as many have what is sent after each.

    >>> left_for_last(np.array([8.0, 9.0, 12.0])).tolist()
    [4.0, 1.0, 4.0]
    """
    return np.asarray(count - power_in(count - 1.0))


#: Of a round in which messages go as far as a power of two: the blocks in one, where there is a block for each process.
IN_ROUNDS: Mapping[str, Callable[[Floats, Floats], Floats]] = {"passed": blocks_passed, "holding": blocks_holding}


def _processes_in_rounds(function: str) -> tuple[str, str]:
    """The kind of a factor of :data:`IN_ROUNDS`, and the name of how many processes pass on blocks."""
    kind = function.rstrip("0123456789")
    return kind, f"P{function[len(kind) :]}" if len(function) > len(kind) else "n"


def factor_value(name: str, env: Env) -> Floats:
    """A factor's value; KeyError where a name is not there."""
    if name.startswith("1/"):
        below = factor_value(name[2:], env)
        return np.divide(1.0, below, out=np.zeros_like(below, dtype=np.float64), where=below != 0)
    if name in env:
        return env[name]
    if name.startswith("2^"):
        return np.asarray(2.0 ** np.minimum(env[name[2:]], MOST_BITS))
    if name == MANY_WORKERS:
        return env["n"] - 1
    if (share := _SHARE.fullmatch(name)) is not None:
        return part_of(share[1], float(share[3]), *place_on(share[2], env))
    function, _, inner = name.rstrip(")").partition("(")
    value = env[inner]
    if function in IN_TREES:
        return IN_TREES[function](value, env[_among(inner)])
    if function == "left":
        return left_for_last(value)
    kind, among = _processes_in_rounds(function)
    if kind in IN_ROUNDS:
        return IN_ROUNDS[kind](value, env[among])
    if function in GUARDS:
        return GUARDS[function](value).astype(np.float64)
    if function == "sqrt":
        return np.sqrt(value)
    if function == "cbrt":
        return np.cbrt(value)
    if function == "log2":
        return np.log2(np.maximum(value, 1.0))
    if function == "some":
        return value
    if function in BY_POWERS:
        return BY_POWERS[function](value)
    return _trailing_zeros(value)


def atom_value(atom: str, env: Env) -> Floats:
    """An atom's value, of the shape that its factors broadcast to; KeyError where a name is not there.

    >>> atom_value("P0*1/2^i0", {"P0": np.array([8.0]), "i0": np.array([1.0])}).tolist()
    [4.0]
    """
    value = np.ones(1)
    for name in atom.split("*"):
        value = value * factor_value(name, env)
    return value


@dataclass(frozen=True, slots=True)
class Expression:
    """``constant + sum of coefficient * atom``, modulo ``modulus`` where there is one.

    >>> str(Expression(1.0, ((2.0, "P0"),))), Expression(1.0, ((2.0, "P0"),))({"P0": np.array([4.0])}).tolist()
    ('2 P0 + 1', [9.0])
    """

    constant: float = 0.0
    terms: tuple[tuple[float, str], ...] = ()
    modulus: str = ""

    def raw(self, env: Env) -> Floats:
        """The value before it is rounded."""
        value = np.full(1, self.constant)
        for coefficient, atom in self.terms:
            value = value + coefficient * atom_value(atom, env)
        return value

    def __call__(self, env: Env) -> Floats:
        """The value rounded down to an integer, as programs drop the remainder of a division."""
        raw = self.raw(env)
        value = np.trunc(raw + np.copysign(CARRIED + CARRIED_OF * np.abs(raw), raw))
        return np.mod(value, env[self.modulus]) if self.modulus else value

    def __str__(self) -> str:
        parts = [f"{coefficient:g} {atom}" if coefficient != 1 else atom for coefficient, atom in self.terms]
        if self.constant or not parts:
            parts.append(f"{self.constant:g}")
        text = " + ".join(parts).replace("+ -", "- ")
        return f"({text}) mod {self.modulus}" if self.modulus else text

    @property
    def product(self) -> tuple[float, str] | None:
        """The coefficient and the atom of an expression that is nothing else; None for any other.

        Examples
        --------
        >>> Expression(0.0, ((8.0, "1/P0"),)).product, Expression(1.0, ((8.0, "1/P0"),)).product
        ((8.0, '1/P0'), None)
        """
        return self.terms[0] if len(self.terms) == 1 and not self.constant and not self.modulus else None

    def of_shares(self, env: Env, squares: bool) -> Expression:
        """The same where all divisions come out even, as a product of a length's shares along several sides.

        What is divided by sides is a face or a block whose lengths are divided each by itself: where it does not come
        out even, the product of whole shares is less than the share of the product.

        Parameters
        ----------
        env : the names at the rows where the expression holds.
        squares : whether ``n`` is known to be the product of two equal sides, not only a number of processes.

        Returns
        -------
        The product, or the expression itself where it is none.

        Examples
        --------
        >>> sides = {"P0": np.array([4.0, 6.0]), "P1": np.array([4.0, 6.0])}
        >>> str(Expression(0.0, ((518400.0, "1/n"),)).of_shares(sides, squares=True))
        'floor0:720*floor1:720'
        """
        if self.product is None:
            return self
        coefficient, atom = self.product
        sides = ["P0", "P1"] if squares and atom == "1/n" and "P1" in env else [
            each.removeprefix("1/") for each in atom.split("*") if re.fullmatch(r"1/P\d", each)
        ]  # fmt: skip
        if len(set(sides)) < 2 or (atom != "1/n" and len(sides) < len(atom.split("*"))):
            return self
        for multiple in range(1, MOST_IN_CELL + 1):
            length = round((coefficient / multiple) ** (1.0 / len(sides))) if coefficient > 0 else 0
            if length and length ** len(sides) * multiple == coefficient:
                if any(np.any(np.mod(length, env[side])) for side in sides):
                    continue
                return Expression(0.0, ((float(multiple), "*".join(f"floor{side[1]}:{length}" for side in sides)),))
        return self

    @property
    def names(self) -> set[str]:
        """The names that must be known where the expression stands.

        >>> sorted(Expression(1.0, ((2.0, "1/2^i0*n"), (1.0, "block1:64"))).names)
        ['P1', 'i0', 'n', 'x1']
        """
        found = {self.modulus} - {""}
        for factor in (factor for _, atom in self.terms for factor in atom.split("*")):
            share = _SHARE.fullmatch(factor)
            found |= {*_names_on(share[2])} if share is not None else {*_NAMES.findall(factor)}
            if factor.removeprefix("1/").partition("(")[0] in IN_TREES:
                found |= {_among(name) for name in _NAMES.findall(factor)}
            kind, among = _processes_in_rounds(factor.removeprefix("1/").partition("(")[0])
            found |= {among} if kind in IN_ROUNDS else set()
        return found

    def as_dict(self) -> dict[str, Any]:
        """The expression as a JSON document: its terms, constant and modulus."""
        return {"constant": self.constant, "terms": [list(term) for term in self.terms], "modulus": self.modulus}

    @classmethod
    def of(cls, document: Any) -> Expression:
        """The expression of a document; InputError for what is none."""
        try:
            terms = tuple((float(coefficient), str(atom)) for coefficient, atom in document["terms"])
            constant, modulus = float(document["constant"]), str(document["modulus"])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"expression {str(document)[:60]!r} is not valid") from None
        sound = (
            all(abs(each) < 1e18 for each in (constant, *(c for c, _ in terms)))
            and len(terms) <= MOST_TERMS
            and all(
                len(atom) < 200
                and len(atom.split("*")) <= MOST_FACTORS
                and all(_FACTOR.fullmatch(factor) for factor in atom.split("*"))
                for _, atom in terms
            )
            and (not modulus or re.fullmatch(_VARIABLE, modulus))
        )
        if not sound:
            raise InputError(f"expression {str(document)[:60]!r} is not valid")
        return cls(constant, terms, modulus)
