"""Folded node names, from whoever sends them."""

from __future__ import annotations

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st

from metasched.node_names import unfold
from metasched.records import InputError

DIGITS = st.integers(0, 120).map(str) | st.integers(0, 120).map(lambda number: f"{number:03}")


@given(st.sampled_from(["n", "n1", "a-b", ""]), DIGITS, DIGITS, st.sampled_from(["", "-ib", "x"]))
def test_a_range_is_unfolded_as_clustershell_does(before: str, low: str, high: str, after: str) -> None:
    text = f"{before}[{low}-{high}]{after}"
    try:
        expected = [str(name) for name in NodeSet(text, resolver=RESOLVER_NOGROUP)]
    except Exception:
        with pytest.raises(InputError):
            unfold(text, where="nodes")
    else:
        assert unfold(text, where="nodes") == expected


NINES = "9" * 5000


@pytest.mark.parametrize(
    "names",
    [
        "n[1-99999999999]",
        "n[1-1000][1-1000][1-1000]",
        "n[1-20001]",
        f"n[1-{NINES}]",
        f"n[{NINES}-{NINES}]",
        ",".join(["n[1-200]"] * 101),
    ],
)
def test_more_nodes_than_are_taken_are_refused_in_a_short_line(names: str) -> None:
    with pytest.raises(InputError, match="is more than 20000 nodes") as raised:
        unfold(names, where="exclude", most=20_000)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    "names", ["n[1-2" + ",3" * 20_000, "," * 60_000, "n[" + "2-1," * 9_000 + "1]", f"n[1-9/0]{NINES}"]
)
def test_what_names_no_nodes_is_refused_in_a_short_line_however_long_it_is(names: str) -> None:
    with pytest.raises(InputError, match=r"names no node|is not a set of node names") as raised:
        unfold(names, where="exclude")
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("names", ["", ",", " "])
def test_no_name_at_all_is_refused(names: str) -> None:
    with pytest.raises(InputError, match=r"^nodes: .* names no node$"):
        unfold(names, where="nodes")
