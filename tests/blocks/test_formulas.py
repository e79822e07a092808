"""Table 1 with the parameters of Table 3, and what is odd about them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.blocks.entry import Block, Entry, Kind, Quantity
from metasched.blocks.formulas import answer
from metasched.blocks.terms import Term
from metasched.records import InputError
from metasched.store.files.hardware import read_entry

MEBIBYTE, DAY = 2.0**20, 86_400.0
#: Worked out by hand from the printed parameters: entry, block, what is asked, the answer in us, W, or a probability.
EXPECTED = [
    *(
        ("galera-plus", "compute", {"instructions": 11e6, "threads": threads}, value)
        for threads, value in ((12, 18_150.0), (24, 21_340.0), (25, 25_509.0), (48, 45_647.8))
    ),
    *(
        ("galera-plus", "power", {"threads": threads}, value)
        for threads, value in ((0, 78.0), (12, 136.08), (13, 133.7), (24, 154.6), (25, 151.0))
    ),
    ("galera-plus", "p2p", {"data_size": 1}, 4.99024),
    ("galera-plus", "p2p", {"data_size": MEBIBYTE}, 664.30288),
    ("galera-plus", "bcast", {"data_size": MEBIBYTE, "nodes": 64}, 3_562.26391),
    ("galera-plus", "scatter", {"data_size": MEBIBYTE, "nodes": 64}, 105.61434),
    ("galera-plus", "gather", {"data_size": MEBIBYTE, "nodes": 64}, 110.48989),
    ("galera-plus", "alltoall", {"data_size": MEBIBYTE, "nodes": 64}, 8_060.56368),
    ("galera-plus", "barrier", {"nodes": 64}, 14.94635),
    ("galera-plus", "read", {"data_size": MEBIBYTE}, 7_852.89728),
    ("galera-plus", "write", {"data_size": MEBIBYTE}, 6_170.25024),
    ("gluster-galera-plus", "read", {"data_size": MEBIBYTE}, 7_852.89728),
    ("galera", "bcast", {"data_size": MEBIBYTE, "nodes": 64}, 3_767.79478),
    ("galera", "compute", {"instructions": 1e6, "threads": 9}, 2_231.0),
    ("kask", "barrier", {"nodes": 64}, 39.01967),
    ("galera-plus", "success", {"nodes": 192, "duration": DAY}, 0.9916844),
    ("galera-plus", "success", {"nodes": 192, "duration": 7 * DAY}, 0.9432232),
    ("galera-plus", "success", {"nodes": 100_000, "duration": DAY}, 0.0129180),
]


@pytest.mark.parametrize(("name", "block", "asked", "expected"), EXPECTED)
def test_blocks_come_out_as_the_printed_parameters_say(name: str, block: str, asked: dict, expected: float) -> None:
    shown = answer(read_entry(name), Block(block), **asked)
    unit = 1e6 if shown.quantity == "time" else 1.0
    # the expected values are rounded to 5 decimals of a microsecond, 7 of a probability
    assert shown.value * unit == pytest.approx(expected, rel=1e-6, abs=6e-6 if unit > 1 else 6e-8)


@pytest.mark.parametrize(
    ("name", "block", "asked", "warned"),
    [
        ("galera-plus", "power", {"threads": 13}, "falls from 136.08 W at 12 threads to 133.7 W at 13"),
        ("galera-plus", "power", {"threads": 15}, ""),
        ("galera-plus", "power", {"threads": 25}, "falls from 154.6 W at 24 threads to 151 W at 25"),
        ("galera", "bcast", {"data_size": 1, "nodes": 1}, "gives -1.1 us, answered as 0"),
        ("kask", "barrier", {"nodes": 1}, "gives -1.8 us, answered as 0"),
        ("kask", "barrier", {"nodes": 2}, ""),
        ("galera-plus", "scatter", {"data_size": MEBIBYTE, "nodes": 4}, ""),
        ("galera-plus", "scatter", {"data_size": MEBIBYTE, "nodes": 5}, "faster than its point-to-point bandwidth"),
        ("galera-plus", "gather", {"data_size": MEBIBYTE, "nodes": 4}, ""),
        ("galera-plus", "gather", {"data_size": MEBIBYTE, "nodes": 5}, "faster than its point-to-point bandwidth"),
    ],
)
def test_what_is_odd_about_printed_parameters_is_said(name: str, block: str, asked: dict, warned: str) -> None:
    shown = answer(read_entry(name), Block(block), **asked)
    assert shown.value >= 0
    assert [warned in line for line in shown.warnings] == [True] * bool(warned)


@pytest.mark.parametrize(
    ("block", "asked", "expected"),
    [
        ("p2p", {}, "p2p needs --data-size"),
        ("p2p", {"data_size": -1}, "data size is -1, expected a number from 0"),
        ("p2p", {"data_size": float("nan")}, "data size is nan"),
        ("bcast", {"data_size": 1, "nodes": 0}, "nodes is 0, expected a number from 1"),
        ("success", {"nodes": 1, "duration": float("inf")}, "duration is inf"),
        ("power", {"threads": 4}, "kask has no PW_low, KW_low, which power needs"),
        ("success", {"nodes": 4, "duration": 1}, "kask has no lambda, which success needs"),
    ],
)
def test_a_question_without_an_answer_is_refused_in_a_line(block: str, asked: dict, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        answer(read_entry("kask"), Block(block), **asked)


def test_own_entries_need_no_middle_piece_and_take_logarithms_to_base_two() -> None:
    values = {"P_low": (4, "1"), "T_min": (2, "ns"), "T_hi": (0, "ns"), "K_hi": (0.5, "ns")}
    values |= {"T_barrier": (1, "us"), "K_barrier": (3, "us")}
    entry = Entry("own", Kind.cluster, "", {name: Quantity(*each, "measured") for name, each in values.items()})
    assert answer(entry, Block.compute, instructions=1e9, threads=8).value == pytest.approx(4.0)
    assert answer(entry, Block.barrier, nodes=8).value == pytest.approx(10e-6)


SIZES = st.floats(0, 1e9)


@pytest.mark.parametrize(("block", "said"), [("power", "power gives -4 W,"), ("compute", "compute gives -3e+06 us,")])
def test_what_is_below_0_is_said_in_the_unit_of_its_block(block: str, said: str) -> None:
    values = {"P_low": Quantity(8, "1", ""), "PW_low": Quantity(-5, "W", ""), "KW_low": Quantity(1, "W", "")}
    entry = Entry("own", Kind.cluster, "", values | {"T_min": Quantity(-3, "s", "")})
    found = answer(entry, Block(block), instructions=1 if block == "compute" else None, threads=1)
    assert (found.value, found.warnings) == (0.0, (f"own: the formula of {said} answered as 0",))


@given(SIZES, SIZES, st.integers(2, 1000), st.integers(2, 1000))
def test_fitted_blocks_never_fall_with_size_or_nodes(one: float, other: float, few: int, many: int) -> None:
    terms = (
        Term(1e-6),
        Term(2e-9, growth="log2(P)", above=0.0, below=8192.0),
        Term(1e-9, growth="(P-1)/P", above=8192.0),
    )
    entry = Entry("own", Kind.cluster, blocks={Block.bcast: terms})
    low = answer(entry, Block.bcast, data_size=min(one, other), nodes=min(few, many)).value
    assert low <= answer(entry, Block.bcast, data_size=max(one, other), nodes=max(few, many)).value * (1 + 1e-12)


def test_what_is_odd_is_said_by_the_parameters_that_there_are() -> None:
    """Of the first piece only its end is known, and no second piece."""
    known = {"P_low": Quantity(4, "1", "made"), "PW_max": Quantity(90, "W", "made")}
    entry = Entry("x", Kind.cluster, "", known, published=True)
    assert (answer(entry, Block.power, threads=9).value, answer(entry, Block.power, threads=9).warnings) == (90.0, ())
