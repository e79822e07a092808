"""The ranking of sites that a program gets: what is asked, what is believed, and nothing where it is not sound."""

from __future__ import annotations

from typing import Any

import pytest

from metasched.client import sites
from metasched.client.advice import MOST_BYTES
from metasched.client.sites import FORMAT, MOST, SiteAdvice, ranked_sites
from metasched.records import InputError

ONE = {"site": "west", "partition": "new", "processors": 4, "completion": 60.5, "reason": "idle\nand near"}
TWO = {"site": "east", "partition": "", "processors": 8, "completion": 90, "reason": "x" * 2000}
GOOD = {"format": FORMAT, "sites": [ONE, TWO]}


def ranked(monkeypatch: pytest.MonkeyPatch, answer: Any, **demands: Any) -> tuple[list[Any], tuple[SiteAdvice, ...]]:
    """What the daemon was asked, and what is made of its answer."""
    asked: list[Any] = []

    def ask(*words: Any, **more: Any) -> Any:
        asked.append((*words, more))
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(sites, "ask", ask)
    return asked, ranked_sites("grid.sock", "cg", 1400, timeout=5.0, token="t", verify="file", **demands)


def test_what_the_daemon_ranks_is_given_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, found = ranked(monkeypatch, GOOD, data=2.5, processors=[4, 8], sites=["east", "west", "north"])
    question = {"application": "cg", "problem_size": 1400, "within": 4.0, "data": 2.5}
    question |= {"processors": [4, 8], "sites": ["east", "west", "north"]}
    link = {"token": "t", "verify": "file", "timeout": 5.0, "most": MOST_BYTES}
    assert asked == [("grid.sock", "POST", "/v1/sites/rankings", question, link)]
    west, east = SiteAdvice("west", "new", 4, 60.5, "idle and near"), SiteAdvice("east", "", 8, 90.0, "x" * 1000)
    assert found == (west, east)
    assert ranked(monkeypatch, GOOD, within=1.0)[0][0][3]["within"] == 1.0
    assert ranked(monkeypatch, GOOD)[1] == (west, east)
    assert ranked(monkeypatch, GOOD | {"sites": []})[1] == ()
    many = [ONE | {"site": f"s{number}"} for number in range(MOST + 1)]
    assert len(ranked(monkeypatch, GOOD | {"sites": many})[1]) == MOST


@pytest.mark.parametrize(
    ("answer", "demands"),
    [
        (RuntimeError("away"), {}), (InputError("refused"), {}), (OverflowError("long"), {}), (None, {}), ([], {}),
        (GOOD | {"format": 2}, {}), (GOOD | {"format": True}, {}), (GOOD | {"sites": {"west": ONE}}, {}),
        ({"sites": [ONE]}, {}), (GOOD | {"sites": [ONE, ONE]}, {}), (GOOD, {"processors": [4]}),
        (GOOD, {"sites": ["west"]}),
        *((GOOD | {"sites": [ONE | lie]}, {}) for lie in (
            {"site": ""}, {"site": "--x"}, {"site": None}, {"partition": "a b"}, {"processors": 0},
            {"processors": 2.0}, {"completion": 0}, {"completion": float("inf")}, {"completion": "60"},
        )),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_not_sound_names_no_site(answer: Any, demands: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert ranked(monkeypatch, answer, **demands)[1] == ()
