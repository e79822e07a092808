"""Entries of hardware: values that no hardware has are refused, whatever their unit."""

from __future__ import annotations

import pytest

from metasched.blocks.entry import Block, Entry, Kind, Quantity
from metasched.blocks.terms import Term
from metasched.records import InputError


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [("D_tu", 1e-300, "B"), ("bandwidth", 1e308, "Gbit/s"), ("latency", 5e-324, "ns"), ("T_p2p", -1e308, "s")],
)
def test_what_overflows_or_vanishes_is_refused(name: str, value: float, unit: str) -> None:
    with pytest.raises(InputError, match=f"values.{name} is .*, which no hardware has"):
        Entry("x", Kind.cluster, "", {name: Quantity(value, unit, "made up")})


def test_nothing_may_be_0_where_that_has_a_meaning() -> None:
    assert Entry("x", Kind.link, "", {"latency": Quantity(0.0, "ns", "made up")}).get("latency") == 0.0


@pytest.mark.parametrize("block", [Block.power, Block.p2p])
def test_a_fitted_block_has_a_term(block: Block) -> None:
    with pytest.raises(InputError, match=f"blocks.{block} has no term"):
        Entry("x", Kind.cluster, "", blocks={block: ()})


def test_a_probability_is_no_sum_of_terms() -> None:
    with pytest.raises(InputError, match=r"blocks\.success is not known, expected lambda in values"):
        Entry("x", Kind.cluster, "", blocks={Block.success: (Term(5.0),)})
