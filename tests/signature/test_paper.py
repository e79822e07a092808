"""The numbers of Panadero et al. (2018), computed by the code that users run."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.signature.tables import tables


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return tables()


def test_figures_4_and_5(document: dict[str, Any]) -> None:
    assert document["local_equations"] == {
        "figure_4": {"kind": "EC2", "distances": [1, 1, 1, -3], "repetitions": 2},
        "figure_5": [None, 4, -1, None],
    }


def test_table_1_at_4096(document: dict[str, Any]) -> None:
    partners = [each["partner"] for each in document["table_1"]["partners"].values()]
    assert partners == [1, 63, 64, 4032, 127, 4033]
    assert document["table_1"]["volumes"] == [64651, 9765, 1270400]


@pytest.mark.parametrize("table", ["table_2", "table_3"])
def test_weights_of_table_3(document: dict[str, Any], table: str) -> None:
    weights = [each["weights"] for each in document["table_3"][table]]
    assert weights == [[31031, 44044, 63063]] * 6 + [[999, 999, 999]]


def test_a_line_in_n_goes_astray(document: dict[str, Any]) -> None:
    line = document["table_3"]["line_in_n"]
    assert (round(line["r_squared"], 4), line["at_4096"]) == (0.9985, 115357)


def test_instructions_of_tables_2_4_and_5(document: dict[str, Any]) -> None:
    answer = document["instructions"]
    printed = {"256": 6944666984521470, "324": 7010059180350640, "484": 7063260748176780}
    assert answer["totals"] == pytest.approx(printed, rel=1e-14)
    assert answer["computed_totals"] == pytest.approx(printed, rel=1e-14)
    at = answer["per_process"]
    assert [at[n][0] for n in ("1024", "2025", "4096")] == [62678681, 22330775, 7710473]
    assert [at[n][6] for n in ("1024", "2025", "4096", "4900")] == [731934355, 370123842, 182983589, 152959343]
    assert [*answer["dif"].values()] == [0.01, 7.17, 0.21, 1.15]


def test_table_9(document: dict[str, Any]) -> None:
    rows = document["table_9"]["rows"]
    assert len(rows) == 32
    assert [row for row in rows if abs(row["pete"] - row["printed"]) > 0.01] == []
    assert document["table_9"]["efficiency"] == {
        "BT 4096": 95.3,
        "BT 4900": 91.2,
        "CG 2048": 84.2,
        "CG 4096": 45.9,
        "Sweep3D 2025": 86.0,
        "Sweep3D 4096": 75.5,
    }
    assert document["table_9"]["mean_error"] == {"signatures": 1.27, "synthetic": 3.04}
    assert document["table_9"]["synthetic_share"] == {"mean": 4.1, "most": 12.5}


def test_core_hours(document: dict[str, Any]) -> None:
    assert document["core_hours"] == {
        "BT": {"p3s": 84.09, "application": 4243.94},
        "CG": {"p3s": 37.11, "application": 2386.25},
        "N-body": {"p3s": 34.85, "application": 5480.7},
        "Sweep3D": {"p3s": 18.13, "application": 616.32},
    }
