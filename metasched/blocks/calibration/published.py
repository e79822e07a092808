"""The forms of Table 1 fitted to measurements, with their breakpoints: the transfer unit, P_low and P_hi."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from metasched.arrays import Floats
from metasched.blocks.calibration.least_squares import Line, fitted
from metasched.blocks.calibration.measurements import Measurements
from metasched.blocks.entry import MEASURES, Block, Entry, Kind, Quantity
from metasched.records import InputError

PIECES = (Block.compute, Block.power)
SIZED = (Block.p2p, Block.bcast, Block.scatter, Block.gather, Block.alltoall, Block.read, Block.write)
#: Numbers of threads among which breakpoints are looked for; more are thinned out.
MOST_THREADS = 96
SOURCE = "fitted to measurements"


@dataclass(frozen=True)
class Value:
    """A fitted parameter and its standard uncertainty, in internal units (:mod:`metasched.blocks.units`)."""

    value: float
    uncertainty: float


Values = dict[str, Value]


def fit(measured: Mapping[Block, Measurements]) -> Values:
    """Fit every block that was measured; logarithms have base 2.

    Raises
    ------
    InputError : when the measurements of a block do not determine its parameters.
    """
    values: Values = {}
    sized = {block: each for block, each in measured.items() if block in SIZED}
    if sized:
        values["D_tu"] = _transfer_unit(sized)
    pieces = {block: each for block, each in measured.items() if block in PIECES}
    if pieces:
        values |= _breakpoints(pieces)
    for block, each in measured.items():
        values |= coefficients(block, each, values)
    return values


def coefficients(block: Block, measured: Measurements, values: Values) -> Values:
    """Fit the linear parameters of a block whose breakpoints are known.

    Raises
    ------
    InputError : when the measurements do not determine them.
    """
    if block in PIECES:
        low, high = values["P_low"].value, values["P_hi"].value if "P_hi" in values else math.inf
        lines = _in_pieces(block, measured, low, high)
        if lines is None:
            raise InputError(f"the measurements of {block} do not determine its pieces, expected more threads")
        named = _NAMES[block]
        return {
            name: value for names, line in zip(named, lines, strict=True) if line for name, value in _of(names, line)
        }
    line = fitted(
        _columns(block, measured, values["D_tu"].value if block in SIZED else 0.0), measured.value, measured.weights
    )
    if line is None:
        varied = "data sizes" if block in (Block.p2p, Block.read, Block.write) else "numbers of nodes or data sizes"
        raise InputError(
            f"the measurements of {block} do not determine T_{block} and K_{block}, expected more {varied}"
        )
    return dict(_of((f"T_{block}", f"K_{block}"), line))


def entry_of(name: str, values: Values, title: str = "") -> Entry:
    """An entry that holds fitted parameters."""
    quantities = {
        each: Quantity(value.value, MEASURES[each], SOURCE, value.uncertainty) for each, value in values.items()
    }
    return Entry(name, Kind.cluster, title, quantities)


_NAMES = {
    Block.compute: (("T_min",), ("T_low",), ("T_hi", "K_hi")),
    Block.power: (("PW_low", "KW_low"), ("PW_hi", "KW_hi"), ("PW_max",)),
}


def _of(names: tuple[str, ...], line: Line) -> list[tuple[str, Value]]:
    pairs = zip(line.coefficients.tolist(), line.uncertainties.tolist(), strict=True)
    return [(name, Value(*pair)) for name, pair in zip(names, pairs, strict=True)]


def _columns(block: Block, measured: Measurements, unit: float) -> Floats:
    """The design matrix: the factors of T and K of a block, shape (n, 2)."""
    nodes = measured.nodes
    log = np.log2(nodes)
    by_nodes = {Block.bcast: log, Block.scatter: log / nodes, Block.gather: log / nodes}
    by_nodes |= {Block.alltoall: nodes, Block.barrier: log}
    size = np.ceil(measured.data_size / unit) * unit if unit else np.ones_like(nodes)
    return np.column_stack([np.ones_like(nodes), size * by_nodes.get(block, np.ones_like(nodes))])


def _transfer_unit(sized: Mapping[Block, Measurements]) -> Value:
    """The transfer unit (bytes) of maximum likelihood; a power of two where one is as likely.

    All blocks share it. Twice the logarithm of its likelihood is the sum over blocks of -n log(squares).
    """
    sizes = np.unique(np.concatenate([each.data_size for each in sized.values()]))
    sizes = sizes[sizes > 0]
    if not sizes.size:
        raise InputError("all data sizes are 0, expected several")

    # The logarithm of one node is 0.
    for block in (Block.bcast, Block.scatter, Block.gather):
        if block in sized and np.all(sized[block].nodes == 1.0):
            raise InputError(f"all measurements of {block} are of one node, expected 2 or more")

    def unlikelihood(unit: float) -> float:
        total = 0.0
        for block, each in sized.items():
            line = fitted(_columns(block, each, unit), each.value, each.weights)
            if line is None:
                return math.inf
            total += len(each) * math.log(line.squares)
        return total

    most = float(sizes.max())
    powers = 2.0 ** np.arange(0, math.floor(math.log2(most)) + 1)
    tried = np.unique(np.concatenate([powers, sizes[:200], np.round(np.geomspace(1, most, 240))]))
    cost = {unit: unlikelihood(unit) for unit in tried.tolist()}
    best = min(cost, key=cost.__getitem__)
    for spread in (0.05, 0.005):
        cost |= {
            unit: unlikelihood(unit) for unit in np.linspace(best * (1 - spread), best * (1 + spread), 41).tolist()
        }
        best = min(cost, key=cost.__getitem__)
    if math.isinf(cost[best]):
        raise InputError("the measurements determine no transfer unit, expected several data sizes")
    as_likely = [unit for unit in powers.tolist() if cost[unit] < cost[best] + 4.0]
    chosen = min(as_likely, key=cost.__getitem__, default=best)
    near = [unit for unit, each in cost.items() if each < cost[best] + 1.0 and 0.5 < unit / chosen < 2.0]
    return Value(chosen, max(abs(unit - chosen) for unit in [*near, chosen]))


def _breakpoints(pieces: Mapping[Block, Measurements]) -> Values:
    """The numbers of threads at which pieces end, chosen by Schwarz's criterion (BIC) and shared by all blocks."""
    threads = np.unique(np.concatenate([each.threads for each in pieces.values()]))
    if threads.size > MOST_THREADS:
        threads = threads[np.linspace(0, threads.size - 1, MOST_THREADS).astype(int)]
    total = sum(map(len, pieces.values()))
    best, chosen = math.inf, None
    for low, high in itertools.combinations_with_replacement([*threads.tolist(), math.inf], 2):
        cost = 0.0
        for block, each in pieces.items():
            lines = _in_pieces(block, each, low, high)
            if lines is None:
                cost = math.inf
                break
            known = [line for line in lines if line is not None]
            unknown = sum(line.coefficients.size for line in known)
            cost += len(each) * math.log(sum(line.squares for line in known)) + unknown * math.log(total)
        cost += sum(math.isfinite(end) for end in {low, high}) * math.log(total)
        if cost < best - 1e-9:
            best, chosen = cost, (low, high)
    if chosen is None:
        raise InputError("the measurements of compute and power determine no pieces, expected more numbers of threads")
    low, high = chosen
    steps = np.diff(threads)

    def until(end: float) -> Value:
        place = min(int(np.searchsorted(threads, end)), max(steps.size - 1, 0))
        return Value(end, float(steps[place] - 1) / 2 if steps.size else 0.0)

    # The last piece ends with what was measured.
    ends = {"P_low": low} | ({"P_hi": high} if low < high else {})
    most = float(threads.max())
    return {name: until(end) if math.isfinite(end) else Value(most, 0.0) for name, end in ends.items()}


def _in_pieces(block: Block, measured: Measurements, low: float, high: float) -> list[Line | None] | None:
    """Fit each piece; None for a piece without measurements. Returns None if a piece is not determined."""
    threads = measured.threads
    lines: list[Line | None] = []
    ends = ((-math.inf, low), (low, high), (high, math.inf))
    for names, (above, below) in zip(_NAMES[block], ends, strict=True):
        chosen = (threads > above) & (threads <= below)
        if not chosen.any():
            lines.append(None)
            continue
        columns = np.column_stack([np.ones(chosen.sum()), threads[chosen]])[:, : len(names)]
        line = fitted(columns, measured.value[chosen], measured.weights[chosen])
        if line is None:
            return None
        lines.append(line)
    return lines
