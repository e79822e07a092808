"""Which form a block gets: that of Table 1 where it does as well and never falls, else a sum of terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from metasched.blocks.calibration import published, robust
from metasched.blocks.calibration.least_squares import LEAST, fitted
from metasched.blocks.calibration.measurements import Measurements
from metasched.blocks.entry import Block
from metasched.blocks.formulas import as_printed
from metasched.blocks.terms import Term
from metasched.records import InputError
from tests.blocks.test_calibration import THREADS, TRUTH

SIZES = [0.0, *(700.0 * np.arange(1, 40)).tolist()]


def rows(found: Iterable[tuple[float, float, float, float]]) -> Measurements:
    return Measurements(*np.array([*found], dtype=np.float64).T)


def table_1(block: Block) -> Measurements:
    """What the parameters of TRUTH give, without noise, where they tell one another apart."""
    sizes = [0.0] if block in (Block.compute, Block.power, Block.barrier) else SIZES
    nodes = [1, 2, 4, 8, 16] if block in (Block.bcast, Block.alltoall, Block.barrier) else [1]
    threads = THREADS if block in (Block.compute, Block.power) else [1]
    return rows(
        (as_printed(TRUTH, block, data_size=size, nodes=node, threads=thread, instructions=1.0), size, node, thread)
        for size in sizes for node in nodes for thread in threads
    )  # fmt: skip


@pytest.mark.parametrize(
    ("block", "names"),
    [
        (Block.p2p, ["D_tu", "K_p2p", "T_p2p"]),
        (Block.bcast, ["D_tu", "K_bcast", "T_bcast"]),
        (Block.read, ["D_tu", "K_read", "T_read"]),
        (Block.compute, ["K_hi", "P_hi", "P_low", "T_hi", "T_low", "T_min"]),
    ],
)
def test_the_form_of_table_1_stays_where_it_does_as_well(block: Block, names: list[str]) -> None:
    entry = robust.fit({block: table_1(block)}, "own", "made up")
    assert (entry.name, entry.title, entry.blocks, sorted(entry.values)) == ("own", "made up", {}, names)
    for name in names:
        assert entry[name] == pytest.approx(TRUTH[name], rel=1e-6)
    measured = table_1(block)
    assert robust.fitted_values(entry, block, measured) == pytest.approx(measured.value, rel=1e-6)


def test_two_blocks_keep_their_own_forms() -> None:
    bent = rows((2e-6 + 1e-9 * max(size - 8000.0, 0.0), size, 1, 1) for size in SIZES)
    entry = robust.fit({Block.p2p: table_1(Block.p2p), Block.write: bent}, "own")
    assert (Block.write in entry.blocks, "T_write" in entry.values, "K_write" in entry.values) == (True, False, False)
    assert robust.fitted_values(entry, Block.write, bent) == pytest.approx(bent.value, rel=0.15)


@pytest.mark.parametrize(
    ("block", "measured"),
    [
        # A line that falls with the size, and pieces of which one falls with the threads, or jumps down.
        (Block.p2p, rows((1e-3 - 1e-8 * size, size, 1, 1) for size in SIZES)),
        (Block.compute, rows((1e-9 * (30.0 - min(n, 20)), 0, 1, n) for n in THREADS)),
        (Block.power, rows((300.0 - 2.0 * n, 0, 1, n) for n in THREADS)),
    ],
)
def test_what_falls_is_a_sum_of_terms_that_never_do(block: Block, measured: Measurements) -> None:
    entry = robust.fit({block: measured}, "own")
    assert not entry.values
    assert all(term.coefficient > 0 for term in entry.blocks[block])
    x = np.linspace(0.0 if block == Block.p2p else 1.0, 50.0, 200)
    over = rows((0.0, size if block == Block.p2p else 0.0, 1, 1 if block == Block.p2p else size) for size in x)
    assert np.all(np.diff(robust.fitted_values(entry, block, over)) >= 0)


def test_measurements_among_one_number_of_nodes_have_terms_that_do_not_grow_with_it() -> None:
    alone = rows((1e-6 + 2e-9 * size + 1e-12 * size**1.5, size, 8, 1) for size in SIZES)
    assert {term.growth for term in robust.fit({Block.gather: alone}, "own").blocks[Block.gather]} == {"1"}
    several = rows((1e-6 + 3e-6 * (nodes - 1), 0, nodes, 1) for nodes in (1, 2, 3, 5, 9, 17, 30))
    terms = robust.fit({Block.barrier: several}, "own").blocks[Block.barrier]
    counting = [(term.growth, round(term.coefficient * 1e6, 6)) for term in terms if term.coefficient > 1e-12]
    assert counting == [("1", 1.0), ("P-1", 3.0)]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 9, 30])
def test_each_value_inside_the_range_is_left_out_once_and_never_beside_a_neighbour(count: int) -> None:
    measured = rows((1.0, size, 1, 1) for size in range(count) for _ in range(2))
    left_out = [sorted({*measured.data_size[held].tolist()}) for held in robust._folds(measured)]
    assert sorted(each for fold in left_out for each in fold) == [float(size) for size in range(1, count - 1)]
    assert len(left_out) == max(min(count - 2, 6), 0)
    if count > 8:
        assert min(np.diff(fold).min(initial=99.0) for fold in left_out) > 1


@pytest.mark.parametrize(
    ("block", "measured", "line"),
    [
        (Block.p2p, [(1.0, 0.0, 1, 1), (2.0, 0.0, 2, 1)], "all data sizes are 0, expected several"),
        (Block.p2p, [(1.0, 8.0, 1, 1), (2.0, 8.0, 1, 1)],
         "the measurements determine no transfer unit, expected several data sizes"),
        (Block.barrier, [(1.0, 0.0, 4, 1), (2.0, 0.0, 4, 1)],
         "the measurements of barrier do not determine T_barrier and K_barrier, expected more numbers of nodes or data "
         "sizes"),
        (Block.barrier, [(1.0, 0.0, 4, 1)],
         "the measurements of barrier do not determine T_barrier and K_barrier, expected more numbers of nodes or data "
         "sizes"),
        (Block.power, [(1.0, 0.0, 1, 1)],
         "the measurements of compute and power determine no pieces, expected more numbers of threads"),
    ],
)  # fmt: skip
def test_what_table_1_cannot_be_fitted_to_is_refused(
    block: Block, measured: Sequence[tuple[float, float, float, float]], line: str
) -> None:
    with pytest.raises(InputError) as refused:
        published.fit({block: rows(measured)})
    assert str(refused.value) == line


def test_breakpoints_are_found_among_many_numbers_of_threads() -> None:
    many = rows((10.0 + 2.0 * min(n, 120) + 0.5 * max(n - 120, 0), 0, 1, n) for n in range(1, 301))
    found = published.fit({Block.power: many})
    assert 120 - 4 <= found["P_low"].value <= 120 + 4
    assert (found["PW_low"].value, found["KW_low"].value) == pytest.approx((10.0, 2.0), rel=0.05)


def test_lines_and_their_uncertainties_are_those_of_the_normal_equations() -> None:
    rng = np.random.default_rng(4)
    columns = np.column_stack([np.ones(12), rng.uniform(1, 9, 12) * 1e6])
    value, weights = rng.uniform(1, 2, 12), rng.uniform(0.5, 2, 12)
    line = fitted(columns, value, weights)
    assert line is not None
    design, target = columns * weights[:, None], value * weights
    inverse = np.linalg.inv(design.T @ design)
    expected = inverse @ design.T @ target
    squares = float(((design @ expected - target) ** 2).sum())
    assert line.coefficients == pytest.approx(expected, rel=1e-6)
    assert line.squares == pytest.approx(squares)
    assert line.uncertainties == pytest.approx(np.sqrt(np.diag(inverse) * squares / 10), rel=1e-6)


@pytest.mark.parametrize(
    ("columns", "known"),
    [
        ([[1.0, 2.0]], False),
        ([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], False),
        ([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]], False),
        ([[1.0, 2.0], [1.0, 3.0]], True),
    ],
)
def test_columns_that_determine_no_line_give_none(columns: list[list[float]], known: bool) -> None:
    line = fitted(np.array(columns), np.ones(len(columns)), np.ones(len(columns)))
    assert (line is not None) is known
    if line is not None:
        assert (line.squares, line.uncertainties.max()) == (pytest.approx(2 * LEAST), pytest.approx(0.0, abs=1e-9))


def test_terms_of_one_point_are_refused_but_for_computation_and_power() -> None:
    point = rows([(2.0, 8.0, 4, 1)] * 3)
    with pytest.raises(InputError, match=r"^the measurements of p2p determine no form, expected more of them$"):
        robust._terms(Block.p2p, point, (("1",), ()))
    threads = rows([(2.0, 0.0, 1, 4)] * 3)
    assert robust._terms(Block.power, threads, (("1",), ())) == (Term(2.0, 0.0, "1", None, np.inf),)
