from __future__ import annotations

from pathlib import Path

import pytest

from candidate_functions import BANDWIDTH, COMPLEXITY, SCALABILITY, Family

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "candidate-functions.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("family", [COMPLEXITY, BANDWIDTH, SCALABILITY], ids=lambda family: family.variable)
def test_every_function_stands_in_the_table_under_its_number(family: Family) -> None:
    rows = [f"| {number} | `{function.formula}` |" for number, function in enumerate(family, start=1)]
    assert len(rows) >= 8
    assert [row for row in rows if row not in PAGE] == []
