"""Delays of links on networks whose delays are known: exact without noise, and within 10 % under noise of 5 %."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from command_line import call, refusal
from hypothesis import given
from hypothesis import strategies as st

from metasched.placement.clusters.switch_tree import Topology
from metasched.placement.clusters.tomography import link_delays, undetermined, ways_in
from metasched.records import InputError

#: Design took none; these judge.
SEEDS = range(101, 121)


def tree(random: np.random.Generator) -> tuple[Topology, list[str], dict[str, float]]:
    """Racks under a spine under a core, and the delay of each link."""
    racks, spines = 6, 2
    parent = [racks + rack % spines for rack in range(racks)] + [racks + spines] * spines + [-1]
    names = [f"r{k}" for k in range(racks)] + [f"s{k}" for k in range(spines)] + ["core"]
    leaf = [node % racks for node in range(24)]
    nodes = [f"n{k}" for k in range(24)]
    made = Topology(tuple(names), parent, [np.inf] * len(names), leaf)
    links = nodes + [f"uplink {name}" for name in names[:-1]]
    return made, nodes, {link: float(random.uniform(0.5, 2.0)) for link in links}


@pytest.mark.parametrize("seed", SEEDS)
def test_links_that_are_told_apart_are_known_within_a_tenth_under_noise(seed: int) -> None:
    random = np.random.default_rng(seed)
    made, nodes, delays = tree(random)
    # Every pair is measured ten times, as a clique does in an hour or so.
    pairs = [pair for pair in combinations(nodes, 2) for _ in range(10)]
    ways = ways_in(made, nodes, pairs)
    noise = random.normal(1.0, 0.05, len(ways))
    measured = np.array([sum(delays[link] for link in way) for way in ways]) * noise
    found = link_delays(ways, measured)
    errors = [
        abs(chain.delay - sum(delays[link] for link in chain.links)) / sum(delays[link] for link in chain.links)
        for chain in found.chains
        if chain.identifiable
    ]
    # Both spines' uplinks are crossed by the same ways: only their sum is known.
    assert [chain.links for chain in found.chains if len(chain.links) > 1] == [("uplink s0", "uplink s1")]
    assert len(errors) == len(delays) - 1
    assert max(errors) < 0.10
    assert found.residual == pytest.approx(0.05, rel=0.15)


@given(st.integers(0, 2**32 - 1), st.integers(2, 60))
def test_without_noise_all_that_is_called_identifiable_is_exact_and_every_measurement_is_explained(
    seed: int, count: int
) -> None:
    random = np.random.default_rng(seed)
    made, nodes, delays = tree(random)
    every = list(combinations(nodes, 2))
    pairs = [every[index] for index in random.choice(len(every), count, replace=False)]
    ways = ways_in(made, nodes, pairs)
    found = link_delays(ways, [sum(delays[link] for link in way) for way in ways], tuple(delays))
    wrong = [
        chain
        for chain in found.chains
        if chain.identifiable and chain.delay != pytest.approx(sum(delays[link] for link in chain.links), rel=1e-5)
    ]
    assert wrong == []
    assert found.residual < 1e-6
    # A path that was not measured is known exactly, or not at all.
    others = {pair: found.along(way) for pair, way in zip(every, ways_in(made, nodes, every), strict=True)}
    assert all(others[pair] is not None for pair in pairs)
    assert [
        pair
        for pair, delay in others.items()
        if delay is not None and delay != pytest.approx(sum(delays[link] for link in ways_in(made, nodes, [pair])[0]))
    ] == []
    crossed = {link for way in ways for link in way}
    assert sorted(link for chain in found.chains for link in chain.links) == sorted(crossed)
    assert set(found.uncrossed) == set(delays) - crossed


@given(st.lists(st.lists(st.integers(0, 1), min_size=4, max_size=4), min_size=1, max_size=6))
def test_identifiable_columns_are_those_that_raise_the_rank_by_nothing(rows: list[list[int]]) -> None:
    matrix = np.array(rows, dtype=float)
    rank = np.linalg.matrix_rank(matrix)
    brute = [bool(np.linalg.matrix_rank(np.vstack([matrix, unit])) == rank) for unit in np.eye(4)]
    assert (np.linalg.norm(undetermined(matrix), axis=1) < 1e-8).tolist() == brute


@pytest.mark.parametrize(
    ("ways", "measured", "why"),
    [
        ([], [], "at least one"),
        ([["a"]], [1.0, 2.0], "2 delays of 1 paths"),
        ([["a"]], [0.0], "not a finite number above 0"),
        ([["a"]], [float("nan")], "not a finite number above 0"),
        ([[]], [1.0], "crosses no link"),
    ],
)
def test_measurements_that_cannot_be_are_refused(ways: list[list[str]], measured: list[float], why: str) -> None:
    with pytest.raises(InputError, match=why):
        link_delays(ways, measured)


DESCRIBED = """
[[cluster]]
name = "c"
nodes = [{ names = "n[1-4]" }]
[[cluster.switches]]
name = "r1"
nodes = "n[1-2]"
[[cluster.switches]]
name = "r2"
nodes = "n[3-4]"
[[cluster.switches]]
name = "top"
switches = "r[1-2]"
"""
DELAYS = "from,to,delay\nn1,n2,2\nn1,n3,6\nn1,n4,6\nn2,n3,6\nn3,n4,2\n"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    return call(capsys, "network", *words)


def test_the_command_prints_links_and_what_is_known_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.toml").write_text(DESCRIBED)
    (tmp_path / "d.csv").write_text(DELAYS)
    words = (str(tmp_path / "d.csv"), "--clusters", str(tmp_path / "c.toml"))
    status, out, _ = run(capsys, *words, "--json")
    document = json.loads(out)
    assert status == 0
    assert document["links"][-1] == {
        "links": ["uplink r1", "uplink r2"], "delay": pytest.approx(4.0), "identifiable": True, "ways": 3,
    }  # fmt: skip
    assert [each["identifiable"] for each in document["links"]] == [True] * 5
    assert "uplink r1 + uplink r2" in run(capsys, *words)[1]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("from,to\nn1,n2\n", "delay"),
        ("from,to,delay\n", "has no row"),
        ("from,to,delay\nn1,n2,fast\n", "row 2: delay is 'fast', expected a number"),
        ("from,to,delay\nn1,n2,-1\n", "row 2: delay is -1, expected a number from 1e-30 to 1e+30"),
        ("from,to,delay\nn1,n2,1e-320\n", "row 2: delay is 1e-320, expected a number from 1e-30"),
        ("from,to,delay\nn1,n9,1\n", "node n9 is not in the network"),
        ("from,to,delay\nn1,n1,1\n", "node n1 was measured against itself"),
    ],
)
def test_the_command_refuses_wrong_files_in_one_line(
    rows: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.toml").write_text(DESCRIBED)
    (tmp_path / "d.csv").write_text(rows)
    assert why in refusal(run(capsys, str(tmp_path / "d.csv"), "--clusters", str(tmp_path / "c.toml")))
