"""Forms chosen by held-out error: sums of non-decreasing terms, cut where protocols switch, or the form of Table 1.

A library sends small messages at once and asks before it sends large ones, and takes other algorithms for other sizes,
so that a block's time bends and jumps with the data size. Here it is a sum of terms of :mod:`metasched.blocks.terms`,
none negative: continuous, and never falling with size, threads or (from 2 on) nodes. Which growths with the number of
nodes there are, and at which sizes slopes change, is chosen by the error on sizes and on numbers of nodes left out of
the fit. Table 1's form stays where it does as well and does not fall.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

import numpy as np
import scipy

from metasched.arrays import Flags, Floats
from metasched.blocks.calibration import published
from metasched.blocks.calibration.measurements import Measurements
from metasched.blocks.entry import Block, Entry
from metasched.blocks.formulas import as_printed
from metasched.blocks.terms import GROWTHS, Term, evaluate, stretch
from metasched.records import InputError

#: Sets of growths with the number of nodes that are tried.
GROWTH_SETS: tuple[tuple[str, ...], ...] = (
    ("1",),
    ("log2(P)",),
    ("ceil(log2(P))",),
    ("P-1",),
    ("(P-1)/P",),
    ("1", "log2(P)"),
    ("1", "P-1"),
    ("(P-1)/P", "P-1"),
    ("ceil(log2(P))", "(P-1)/P"),
    ("ceil(log2(P))", "P-1"),
    ("ceil(log2(P))", "(P-1)/P", "P-1"),
    ("P-1", "P log2(P)"),
    ("P-1", "(P-1)^2"),
)
#: Most sizes at which slopes change.
MOST_CUTS = 5
#: Most sizes that are tried for each, spread evenly.
MOST_TRIED = 16
#: Sets of growths, the best with evenly spread cuts, whose cuts are then chosen.
MOST_REFINED = 2
#: What has fewer cuts, and Table 1's form, may err so much more on what was left out.
SIMPLER, PUBLISHED = 1.03, 1.15
#: Relative errors below are of the arithmetic, and choose no form: which is the smaller differs between processors.
EXACT = 1e-9

Shape = tuple[tuple[str, ...], tuple[float, ...]]


def fit(measured: Mapping[Block, Measurements], name: str, title: str = "") -> Entry:
    """Fit an entry: each block has the form with the smallest held-out error.

    Raises
    ------
    InputError : when the measurements of a block determine no form.
    """
    try:
        values = published.fit(measured)
    except InputError:
        values = {}
    kept: published.Values = {}
    terms: dict[Block, tuple[Term, ...]] = {}
    for block, each in ((block, repeated.medians()) for block, repeated in measured.items()):
        shape, error = _shape(block, each)
        if values and _published_error(block, each, values) <= PUBLISHED * error and not _falls(block, each, values):
            kept |= {key: value for key, value in values.items() if key in published.coefficients(block, each, values)}
            kept |= {key: values[key] for key in ("D_tu", "P_low", "P_hi") if _uses(block, key, values)}
        else:
            terms[block] = _terms(block, each, shape)
    entry = published.entry_of(name, kept, title)
    return Entry(name, entry.kind, title, entry.values, blocks=terms)


def _uses(block: Block, name: str, values: published.Values) -> bool:
    return name in values and (name == "D_tu") == (block in published.SIZED) and block != Block.barrier


def _published_error(block: Block, measured: Measurements, values: published.Values) -> float:
    errors = []
    for held in _folds(measured):
        try:
            found = values | published.coefficients(block, measured.part(~held), values)
        except InputError:
            return math.inf
        entry = published.entry_of("", found)
        errors.append(_error(published_values(entry, block, measured.part(held)), measured.value[held]))
    return float(np.concatenate(errors).mean()) if errors else math.inf


def published_values(entry: Entry, block: Block, measured: Measurements) -> Floats:
    """The values of Table 1's formula at the measurements, shape (n,) (s or W); nan if the entry lacks a parameter."""
    asked = zip(measured.data_size, measured.nodes, measured.threads, strict=True)
    try:
        return np.array(
            [as_printed(entry, block, data_size=d, nodes=p, threads=t, instructions=1.0) for d, p, t in asked]
        )
    except InputError:
        return np.full(len(measured), np.nan)


def _falls(block: Block, measured: Measurements, values: published.Values) -> bool:
    """Whether a fitted form of Table 1 decreases somewhere or is negative."""
    entry = published.entry_of("", values)
    if block not in published.PIECES:
        return any(values[f"{letter}_{block}"].value < 0 for letter in "TK")
    threads = np.arange(1.0, measured.threads.max() + 1)
    line = Measurements(*(np.ones_like(threads),) * 3, threads)
    return not bool(np.all(np.diff(published_values(entry, block, line)) >= 0))


def _x(block: Block, measured: Measurements) -> Floats:
    """The variable that the terms of a block are piecewise linear in, shape (n,)."""
    return measured.threads if block in published.PIECES else measured.data_size


def _folds(measured: Measurements) -> Iterator[Flags]:
    """The folds of cross-validation: each size, number of nodes and number of threads inside the measured range."""
    for column in (measured.data_size, measured.nodes, measured.threads):
        inner = np.unique(column)[1:-1]
        # A few at a time where there are many, never two neighbours.
        groups = min(inner.size, 6)
        for group in range(groups):
            yield np.isin(column, inner[group::groups])


def _shape(block: Block, measured: Measurements) -> tuple[Shape, float]:
    """The growths and cuts with the smallest held-out error, and that error (relative)."""
    x = np.unique(_x(block, measured))
    tried = x[(x > 0) & (x < x.max())]
    tried = (
        tried[np.unique(np.linspace(0, tried.size - 1, min(tried.size, MOST_TRIED)).astype(int))]
        if tried.size
        else tried
    )
    alone = np.unique(measured.nodes).size == 1
    cuts = [(cut,) for cut in tried.tolist()] + [*itertools.pairwise(tried.tolist())]
    even = tuple(tried[1:-1:3].tolist())
    sets = GROWTH_SETS[:1] if alone else GROWTH_SETS
    found = sorted(((_held_out(block, measured, (growths, even)), growths) for growths in sets), key=itemgetter(0))
    best: tuple[Shape, float] = ((("1",), ()), math.inf)
    for _, growths in found[:MOST_REFINED]:
        shape: Shape = (growths, ())
        error = _held_out(block, measured, shape)
        for _ in range(MOST_CUTS):
            more = [(growths, tuple(sorted({*shape[1], *each}))) for each in cuts if not {*each} <= {*shape[1]}]
            errors = [_held_out(block, measured, each) for each in more]
            if not errors or min(errors) * SIMPLER >= error:
                break
            error = min(errors)
            shape = more[errors.index(error)]
        if error < best[1]:
            best = shape, error
    return best


def _held_out(block: Block, measured: Measurements, shape: Shape) -> float:
    errors = []
    for held in _folds(measured):
        known = measured.part(~held)
        columns, _ = _columns(_x(block, known), known.nodes, shape)
        found = _solved(columns, known.value)
        columns, _ = _columns(_x(block, measured)[held], measured.nodes[held], shape)
        errors.append(_error(columns @ found, measured.value[held]))
    if not errors:
        columns, _ = _columns(_x(block, measured), measured.nodes, shape)
        return float(_error(columns @ _solved(columns, measured.value), measured.value).mean())
    return float(np.concatenate(errors).mean())


def _error(fitted: Floats, value: Floats) -> Floats:
    return np.where(np.isnan(fitted), np.inf, np.maximum(np.abs(fitted / value - 1.0), EXACT))


def _columns(x: Floats, nodes: Floats, shape: Shape) -> tuple[Floats, list[Term]]:
    """The design matrix of a shape, shape (n, terms), and its terms with coefficient 0."""
    growths, cuts = shape
    ends: list[tuple[float | None, float]] = [(None, math.inf), *itertools.pairwise([0.0, *cuts, math.inf])]
    terms = [Term(0.0, growth=growth, above=above, below=below) for above, below in ends for growth in growths]
    # A constant too, so that what takes no time among one node is not asked of what does.
    if "1" not in growths:
        terms.insert(0, Term(0.0))
    return np.column_stack([stretch(x, t.above, t.below) * GROWTHS[t.growth](nodes) for t in terms]), terms


def _solved(columns: Floats, value: Floats) -> Floats:
    """Non-negative least squares of relative errors."""
    design = columns / value[:, None]
    scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
    try:
        return np.asarray(
            scipy.optimize.nnls(design / scale, np.ones_like(value), maxiter=50 * design.shape[1])[0] / scale
        )
    except RuntimeError:  # the iteration did not end
        return np.zeros(design.shape[1])


def _terms(block: Block, measured: Measurements, shape: Shape) -> tuple[Term, ...]:
    """The terms of a shape fitted to all measurements, each with its uncertainty."""
    x = _x(block, measured)
    columns, terms = _columns(x, measured.nodes, shape)
    found = _solved(columns, measured.value)
    kept = found > 0
    # One point determines no line through it, however often it was measured; of computation and power, a constant.
    points = np.unique(np.column_stack([x, measured.nodes]), axis=0)
    least = 1 if block in published.PIECES else 2
    if not kept.any() or len(points) < max(least, int(kept.sum())):
        raise InputError(f"the measurements of {block} determine no form, expected more of them")
    design = columns[:, kept] / measured.value[:, None]
    scale = np.abs(design).max(axis=0)
    residual = design @ found[kept] - 1.0
    variance = float(residual @ residual) / max(len(measured) - int(kept.sum()), 1)
    design /= scale
    doubt = np.sqrt(np.maximum(np.diag(np.linalg.pinv(design.T @ design)) * variance, 0.0)) / scale
    chosen: Sequence[Term] = [term for term, keep in zip(terms, kept, strict=True) if keep]
    return tuple(
        Term(float(value), float(each), term.growth, term.above, term.below)
        for term, value, each in zip(chosen, found[kept], doubt, strict=True)
    )


def fitted_values(entry: Entry, block: Block, measured: Measurements) -> Floats:
    """The fitted values of an entry at the measurements, shape (n,) (s or W)."""
    if block in entry.blocks:
        return evaluate(entry.blocks[block], _x(block, measured), measured.nodes)
    return published_values(entry, block, measured)
