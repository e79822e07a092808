"""What equations, rules and costs come to over whole tables, for :mod:`tests.signature.rules.test_whole_answers`.

``make answers`` writes it down anew; read the difference before it is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import permutations, product
from typing import Any

import numpy as np
from whole_documents import written_down

from metasched.records import InputError
from metasched.signature.computation.instruction_groups import ALIKE, grouped, levels, placed, profiled
from metasched.signature.computation.workloads import one_workload
from metasched.signature.equations.expression_search import atoms
from metasched.signature.equations.expressions import atom_value
from metasched.signature.equations.local_equations import local_equation
from metasched.signature.equations.topologies import (
    TOPOLOGIES,
    as_simgrid,
    asks_for_squares,
    balanced,
    coordinates,
    different,
    greedy,
)  # fmt: skip
from metasched.signature.equations.transforms import PowerLaw, WholeForm, weight_form
from metasched.signature.rules.application import Application
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.number_rules import number, regression, shared_out
from metasched.signature.rules.numbered_runs import spread
from metasched.signature.rules.rank_rules import rank
from metasched.signature.rules.roles import FEATURES, candidates, cells
from metasched.signature.rules.samples import Samples
from metasched.signature.rules.step_rules import attribute
from metasched.signature.synthetic.collective_times import MEASURED, Collective, collective_named, grown, times_by_size
from metasched.signature.times.costs import BlockCosts
from metasched.signature.times.hardware import LABEL, assumed
from metasched.signature.traces.actions import LISTS, PEERS, shape_of
from tests.signature.answers import digest_of
from tests.signature.drawn_on_grids import drawn

COUNTS = ([8, 16, 32], [16, 36, 64], [4, 16, 64], [9, 18, 27], [12, 24, 48], [60])
AMOUNTS: tuple[Callable[[int, int], float], ...] = (
    lambda r, n: 1.0 + (r < n // 2), lambda r, n: 1.0 + 2.0 * (3 * r >= n), lambda r, n: 2.0 - (r == 0),
    lambda r, n: 1.0 + (r >= n - 3), lambda r, n: 1.0 + r % 3, lambda r, n: 1.0 + r / n, lambda r, n: 1.0,
    lambda r, n: 1.0 + (n // 4 <= r < n // 2), lambda r, n: 1.0 + (r * r % 7), lambda r, n: 1.0 + r // 4 % 2,
)  # fmt: skip


def answers() -> dict[str, Any]:
    """Tables by their name, and of each place of a table what stands there, or a digest of many places."""
    return {
        "sides": {of.__name__: digest_of([of(n, many) for n in range(1, 200) for many in (1, 2, 3, 4)])
                  for of in (balanced, greedy, as_simgrid)},
        "topologies": {name: digest_of([sides(n) for n in range(1, 200)]) for name, sides in TOPOLOGIES.items()},
        "different": [different(counts) for counts in COUNTS],
        "squares": [asks_for_squares(counts, grids) for counts in COUNTS
                    for grids in ((), ["simgrid 01"], ["grid 01"])],
        "coordinates": digest_of([each.tolist() for each in coordinates(np.arange(60), (3, 4, 5))]),
        "cells": {f"{features} {name}": digest_of([cells(features, name, n) for n in (4, 16, 36)])
                  for features in (*FEATURES, "borders+parity") for name in ("line", "grid 01", "grid 012")},
        "candidates": digest_of(candidates(["line", "grid 01"])),
        "local equations": digest_of([local_equation(each).as_dict() for each in destinations()]),
        "weights": [str(weight_form([16, 64, 256], each)) for each in weights()],
        "forms": [str(form) for form in (WholeForm(0), WholeForm(-3), WholeForm(2, (("n", 1), ("sqrt(n)", -4))))],
        "laws": [[law.factor, law.exponent, law.r_squared, law(77.0)] for law in (
            PowerLaw.fitted([4, 8, 16], values) for values in ([8.0, 4.0, 2.0], [1.0, 3.0, 2.0], [5.0, 5.0, 5.0])
        )],
        "workloads": [one_workload(dict(zip((16, 32, 64), each, strict=True)))
                      for each in product((0.0, 1e9, 1.12e9, 1.5e9, 2e9), repeat=3)],
        "groups": digest_of([grouped(np.array(each)).tolist()
                             for each in product((0.0, 1.0, 1.04, 1.06, 2.0), repeat=4)]),
        "placed": [str(placed_by(amount, name)) for amount in AMOUNTS for name in ("line", "grid 01")],
        "profiled": [profile_of(amount) for amount in AMOUNTS],
        "levels": [levels([np.array([amount(r, 40) for r in range(40)])]).tolist()[::5] for amount in AMOUNTS],
        "spread": digest_of([spread(size, most).tolist() for size in range(1, 40) for most in (1, 3, 7, 20, 40)]),
        "shapes": digest_of([list(map(str, shape_of(name, range(many), False)))
                             for name in (*LISTS, *PEERS, "Ialltoallv") for many in range(1, 13)]),
        "numbers": {name: list(numbers(name)) for name in ("line", "grid 01", "grid 012")},
        "ranks": {name: list(ranks(name)) for name in ("line", "grid 01", "grid 10")},
        "steps": list(steps()),
        "shares": [str(each) for each in shares()],
        "collective operations": digest_of([list(collective_named(name, 4800.0, count)) for name in NAMES
                                            for count in (1, 6, 8)]),
        "grown": [grown([2, 4, 8, 16], each, 100) for each in product((1e-6, 3e-6), repeat=4)],
        "costs": {name: costs_of(name) for name in NAMES},
        "times by size": times(),
        "documents": dict(changed()),
    }  # fmt: skip


#: Names of operations with lists of amounts too, and others that are not measured.
NAMES = (*MEASURED, "gatherv", "scatterv", "allgatherv", "alltoallv", "exscan", "other")


def destinations() -> Iterator[tuple[int | None, ...]]:
    """Every order of four processes, exchanges and moved bits of eight, and such with null communications."""
    yield from permutations(range(4))
    for bits in range(8):
        yield tuple(each ^ bits for each in range(8))
    for moved in permutations(range(3)):
        yield tuple(sum((each >> bit & 1) << to for bit, to in enumerate(moved)) for each in range(8))
    for count in (1, 2, 6, 8):
        yield tuple(each + 1 if each + 1 < count else None for each in range(count))
        yield tuple((each + 2) % count for each in range(count))


def weights() -> Iterator[list[int]]:
    """How often a phase runs on 16, 64 and 256 processes, in whole forms, and nearly so."""
    forms: tuple[Callable[[int], int], ...] = (
        lambda n: n, lambda n: round(n**0.5), lambda n: n.bit_length() - 1, lambda n: n * (n.bit_length() - 1),
        lambda n: n * n,
    )  # fmt: skip
    for form in forms:
        for factor, constant in ((1, 0), (3, 5), (1001, -1001), (1001, 7)):
            exact = [factor * form(n) + constant for n in (16, 64, 256)]
            yield exact
            yield [each + off for each, off in zip(exact, (1, -1, 2), strict=True)]
    yield from ([7, 7, 7], [2000, 2001, 2002], [2000, 2003, 2001], [7, 8, 7])


def placed_by(amount: Callable[[int, int], float], topology: str) -> Any:
    groups = {n: grouped(np.array([amount(r, n) for r in range(n)])) for n in (16, 64, 144)}
    return placed(groups, {n: np.arange(n) for n in groups}, [topology])


def profile_of(amount: Callable[[int, int], float]) -> Any:
    amounts = {n: np.array([amount(r, n) for r in range(n)]) for n in (32, 64)}
    found = profiled(amounts, {n: np.arange(n) for n in amounts}, ["line", "grid 01"], ALIKE)
    return found and [str(found[0])[:40], *found[1].tolist()[::5]]


def samples(topology: str, loops: int = 0) -> Samples:
    """The rows of all processes of some runs, in each step of a loop."""
    rows = [(n, r, i) for n in (8, 16, 64) for r in range(n) for i in range(1 + loops * (n // 4))]
    counts, of, step = np.array(rows).T
    env = {"r": of.astype(np.float64)}
    if loops:
        env |= {"i0": step.astype(np.float64), "c0": 1.0 + counts // 4}
    return Samples(counts, env, loops, topology)


def numbers(topology: str) -> Iterator[str]:
    """The rule of each multiple of an atom, and of what is left over when it is divided."""
    rows = samples(topology)
    for atom in atoms(len(TOPOLOGIES[topology](8)), 0, False, True):
        try:
            values = np.broadcast_to(atom_value(atom, rows.grid(topology)), rows.counts.shape)
        except KeyError:
            continue
        yield f"{atom}: {number(rows, np.trunc(960.0 * values) + 7.0, [topology])}"
        yield f"{atom}: {number(rows, 1e6 * values, [topology], 1e-3)}"


def ranks(topology: str) -> Iterator[str]:
    """The rules of partners: shifts, exchanges, mirrors and places, also where a parameter grows."""
    rows = samples(topology)
    env = rows.grid(topology)
    r, n = env["r"], env["n"]
    partners = (
        r, (r + 1) % n, (r - 3) % n, (r + n / 2) % n, n - 1 - r, (n - r) % n, 0 * r, n - 1, n / 2, r - r % 2,
        np.bitwise_xor(r.astype(np.int64), 1), np.bitwise_xor(r.astype(np.int64), (n / 2).astype(np.int64)), r * r % n,
        (2 * r) % n, r + env["P0"], (r + 2 * env["P0"]) % n, (r + np.sqrt(n)) % n, -1 + 0 * r,
    )  # fmt: skip
    for values in partners:
        for simple in (False, True):
            yield str(rank(rows, np.asarray(values, dtype=np.float64), [topology, "line"], simple))


def steps() -> Iterator[str]:
    """The rules of numbers that depend on the step of a loop."""
    rows = samples("line", 1)
    r, n, i, c = (rows.env[each] for each in ("r", "n", "i0", "c0"))
    for values in (
        i, 8.0 * (i + 1), c - i, (r + i) % n, (r - i - 1) % n, np.where(i % 2 == 0, r, n - 1 - r),
        np.where(i == 0, 5, 9), np.where(i == c - 1, 5, 9), np.where(i < c / 2, (r + 1) % n, (r - 1) % n),
        (r + 2.0**i) % n, i * i % 3, r * i % 7,
    ):  # fmt: skip
        for peer in (False, True):
            yield str(attribute(rows, np.asarray(values, dtype=np.float64), ["line", "grid 01"], peer))


def shares() -> Iterator[Any]:
    """What is shared out among processes and steps, and what is outside of that."""
    rows = samples("line", 1)
    n, c = rows.env["n"], rows.env["c0"]
    for values in (
        1e9 / n,
        1e9 / n / c,
        1e9 * (1 + 0.01 * (n == 8)),
        1e9 / n**0.5,
        0 * n,
        1e9 / n * (1 + 0.04 * (n == 8)),
        n * n,
    ):
        yield shared_out(rows, values, 0.05)
        yield regression(rows, values)


def costs_of(name: str) -> list[float]:
    """Seconds of a message in the tree of an operation, and of the operation of all and of some, by its bytes."""
    costs = BlockCosts(assumed().placement(24), LABEL)
    found = [costs.branch(name, 1e4)]
    for size in (0.0, 100.0, 1e5, 1e7):
        found += [costs.together(name, size), *(costs.among(name, size, count) for count in (1, 2, 7, 16))]
    return found


def times() -> dict[str, Any]:
    """What is measured of operations of two sizes, on more processes."""
    measured = {
        Collective(name, size): {2: 1e-6 + 1e-9 * size, 4: 3e-6, 8: 4e-6 + 2e-9 * size}
        for name in ("alltoall", "bcast") for size in (1000.0, 10.0)
    }  # fmt: skip
    return {name: [each.tolist() for each in both] for name, both in times_by_size(measured, 40).items()}


#: Seeds of programs whose documents have every kind of rule.
DOCUMENTS = (2, 5, 7, 17)
ODD: tuple[Any, ...] = (-1, 0, 1, 64, 65, 101, 1e9, 1e41, -333, 0.5, "n", "last", "P7", "", None, [], [0], {})


def changed() -> Iterator[tuple[str, str]]:
    """Of each kind of place in documents which odd values are refused there (x), and last whether it may be missing."""
    kinds: dict[str, tuple[Any, list[Any]]] = {}
    for seed in DOCUMENTS:
        program = drawn(seed)
        whole = json.loads(json.dumps(fit([program.trace(count) for count in program.counts]).application.as_dict()))
        assert Application.of(whole).as_dict() == whole
        for place in places(whole):
            kinds.setdefault(re.sub(r"\d+", "", "/".join(map(str, place))), (whole, place))
    for kind, (whole, place) in sorted(kinds.items()):
        yield kind, "".join(".x"[refused(whole, place, odd)] for odd in (*ODD, MISSING))


MISSING = object()


def places(part: Any, place: tuple[Any, ...] = ()) -> Iterator[list[Any]]:
    """The ways to all values of a document, of parts too."""
    if place:
        yield list(place)
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in items:
        yield from places(value, (*place, key))


def refused(whole: Any, place: list[Any], odd: Any) -> bool:
    """Whether a document is refused with another value in a place."""
    *ways, last = place
    document = json.loads(json.dumps(whole))
    inner = document
    for way in ways:
        inner = inner[way]
    inner[last] = odd
    if odd is MISSING:
        del inner[last]
    try:
        Application.of(document)
    except InputError:
        return True
    return False


if __name__ == "__main__":
    print(written_down(answers(), 9))
