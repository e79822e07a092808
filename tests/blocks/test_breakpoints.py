"""Forms of Table 1 that are measured without noise are found again: their transfer unit, breakpoints and parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metasched.blocks.calibration.measurements import Measurements
from metasched.blocks.calibration.published import entry_of, fit
from metasched.blocks.entry import Block
from metasched.blocks.formulas import answer
from metasched.records import InputError

ONES = np.ones(1)


def sized(
    block: Block, unit: float, sizes: tuple[float, ...] = (1.0, 700.0, 1500.0, 4100.0, 9000.0, 20_000.0, 65_000.0)
):
    """T + K times the size in whole units times what the block does with n nodes."""
    grows = {
        Block.p2p: lambda n: 1.0, Block.read: lambda n: 1.0, Block.write: lambda n: 1.0, Block.bcast: math.log2,
        Block.scatter: lambda n: math.log2(n) / n, Block.gather: lambda n: math.log2(n) / n, Block.alltoall: float,
    }[block]  # fmt: skip
    points = [(size, n) for size in sizes for n in (2.0, 4.0, 8.0)]
    value = [2e-6 + 3e-9 * math.ceil(size / unit) * unit * grows(n) for size, n in points]
    data_size, nodes = np.array(points).T
    return Measurements(np.array(value), data_size, nodes, np.ones(len(points)))


@pytest.mark.parametrize(
    "block", [Block.p2p, Block.read, Block.write, Block.bcast, Block.scatter, Block.gather, Block.alltoall]
)
def test_the_transfer_unit_and_both_times_of_a_block_are_found_again(block: Block) -> None:
    found = fit({block: sized(block, 1024.0)})
    assert found["D_tu"].value == 1024.0
    assert found[f"T_{block}"].value == pytest.approx(2e-6, rel=1e-6)
    assert found[f"K_{block}"].value == pytest.approx(3e-9, rel=1e-6)
    assert len(found) == 3


def test_blocks_share_their_transfer_unit() -> None:
    found = fit({Block.p2p: sized(Block.p2p, 512.0), Block.bcast: sized(Block.bcast, 512.0)})
    assert sorted(found) == ["D_tu", "K_bcast", "K_p2p", "T_bcast", "T_p2p"]
    assert found["D_tu"].value == 512.0


def test_a_barrier_grows_with_the_logarithm_of_the_nodes_and_has_no_size() -> None:
    nodes = np.array([2.0, 4.0, 16.0])
    found = fit({Block.barrier: Measurements(1e-6 + 5e-6 * np.log2(nodes), np.zeros(3), nodes, np.ones(3))})
    assert {name: value.value for name, value in found.items()} == {
        "T_barrier": pytest.approx(1e-6), "K_barrier": pytest.approx(5e-6),
    }  # fmt: skip


def by_threads(value, threads: range) -> Measurements:
    count = np.array([*threads], dtype=float)
    noise = 1.0 + 1e-4 * (-1.0) ** np.arange(count.size)
    return Measurements(np.array([value(t) for t in count]) * noise, np.zeros(count.size), np.ones(count.size), count)


def watts(threads: float) -> float:
    return 60.0 + 9.0 * threads if threads <= 6 else 90.0 + 4.0 * threads if threads <= 14 else 150.0


def test_the_pieces_of_power_end_where_they_do() -> None:
    found = fit({Block.power: by_threads(watts, range(1, 21))})
    values = {name: each.value for name, each in found.items()}
    assert (values["P_low"], values["P_hi"]) == (6.0, 14.0)
    expected = {"PW_low": 60.0, "KW_low": 9.0, "PW_hi": 90.0, "KW_hi": 4.0, "PW_max": 150.0}
    assert {name: values[name] for name in expected} == pytest.approx(expected, rel=1e-2)
    assert (found["P_low"].uncertainty, found["P_hi"].uncertainty) == (0.0, 0.0)
    entry = entry_of("host", found, "A host")
    assert (entry.name, entry.title, entry.values["PW_max"].value) == ("host", "A host", found["PW_max"].value)
    assert {each.source for each in entry.values.values()} == {"fitted to measurements"}


def test_power_in_one_piece_ends_with_the_threads_that_were_measured() -> None:
    found = fit({Block.power: by_threads(lambda threads: 60.0 + 9.0 * threads, range(2, 13, 2))})
    assert {name: each.value for name, each in found.items()} == pytest.approx(
        {"P_low": 12.0, "PW_low": 60.0, "KW_low": 9.0}, rel=1e-2
    )


def test_power_in_two_pieces_ends_with_the_threads_that_were_measured() -> None:
    found = fit({Block.power: by_threads(watts, range(1, 15))})
    assert {name: each.value for name, each in found.items()} == pytest.approx(
        {"P_low": 6.0, "P_hi": 14.0, "PW_low": 60.0, "KW_low": 9.0, "PW_hi": 90.0, "KW_hi": 4.0}, rel=1e-2
    )
    assert answer(entry_of("host", found), Block.power, threads=10).value == pytest.approx(130.0, rel=1e-2)


def test_the_end_of_a_piece_is_as_uncertain_as_the_threads_that_were_left_out() -> None:
    found = fit({Block.power: by_threads(watts, range(2, 30, 4))})  # 2, 6, 10, 14, ...
    assert (found["P_low"].value, found["P_low"].uncertainty) == (6.0, 1.5)


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        ({Block.p2p: Measurements(ONES, np.zeros(1), 2 * ONES, ONES)}, "all data sizes are 0, expected several"),
        ({Block.p2p: Measurements(ONES, 8 * ONES, 2 * ONES, ONES)}, "the measurements determine no transfer unit"),
        ({Block.bcast: Measurements(np.ones(5), np.arange(1.0, 6.0), np.ones(5), np.ones(5))},
         "all measurements of bcast are of one node, expected 2 or more"),
        ({Block.barrier: Measurements(np.ones(2), np.zeros(2), np.full(2, 4.0), np.ones(2))},
         "do not determine T_barrier and K_barrier, expected more numbers of nodes or data sizes"),
        ({Block.power: Measurements(ONES, np.zeros(1), ONES, ONES)}, "determine no pieces, expected more numbers of"),
    ],
)  # fmt: skip
def test_measurements_that_do_not_suffice_are_refused(measured: dict[Block, Measurements], said: str) -> None:
    with pytest.raises(InputError, match=said):
        fit(measured)
