"""Amounts that one process deals out to all others: divided by one less than the number of processes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from metasched.signature.equations.expressions import Expression, place_on
from metasched.signature.rules.application import Application
from metasched.signature.rules.expanding import expanded
from metasched.signature.rules.fitting import fit
from metasched.signature.rules.number_rules import shared_out
from metasched.signature.rules.open_choices import open_rules
from metasched.signature.rules.samples import Samples
from metasched.signature.traces.trace import Trace, trace_of

#: How many of some rows one of some workers has.
Dealt = Callable[[int, int, int], int]
DEALT: dict[str, Dealt] = {
    "rounded down": lambda rows, workers, at: rows // workers,
    "the first one more": lambda rows, workers, at: rows // workers + (at < rows % workers),
    "rounded ends": lambda rows, workers, at: (at + 1) * rows // workers - at * rows // workers,
}


def farm(n: int, rows: int, dealt: Dealt) -> Trace:
    """Rows of four numbers go to all workers, and a number for each comes back."""
    parts = [dealt(rows, n - 1, at) for at in range(n - 1)]
    sent = [("send", (1 + at, 1, 32 * part, 6)) for at, part in enumerate(parts)]
    got = [("recv", (1 + at, 2, 8 * part, 6)) for at, part in enumerate(parts)]
    actions = {0: [("init", ()), *(3 * [*sent, *got, ("barrier", ())]), ("finalize", ())]}
    for at, part in enumerate(parts):
        turn = [("recv", (0, 1, 32 * part, 6)), ("send", (0, 2, 8 * part, 6)), ("barrier", ())]
        actions[1 + at] = [("init", ()), *(3 * turn), ("finalize", ())]
    return trace_of(actions)


def texts(trace: Trace) -> list[list[str]]:
    """All actions of all processes, as they are written."""
    return [[trace.table.text(action) for action in process.tolist()] for process in trace.processes]


@pytest.mark.parametrize("counts", [(4, 8, 16), (8, 16, 32), (6, 10, 20)])
@pytest.mark.parametrize(
    ("rows", "dealt"), [(4321, "rounded down"), *((rows, each) for rows in (1000, 4321) for each in [*DEALT][1:])]
)
def test_what_all_but_the_first_share_is_right_in_larger_runs(rows: int, dealt: str, counts: tuple[int, ...]) -> None:
    found = fit([farm(n, rows, DEALT[dealt]) for n in counts])
    assert found.ruled == 1.0
    read = Application.of(found.application.as_dict())
    for n in (64, 100):
        assert texts(expanded(read, n)) == texts(farm(n, rows, DEALT[dealt]))


def test_a_share_of_one_worker_is_all() -> None:
    share = Expression(0.0, ((8.0, "blockw:960"),))
    assert share({"n": np.full(1, 2.0), "r": np.ones(1)}).tolist() == [7680.0]
    assert np.isfinite(share({"n": np.ones(1), "r": np.zeros(1)})).all()


def test_a_line_that_is_not_there_is_none() -> None:
    with pytest.raises(KeyError):
        place_on("i1", {"i0": np.zeros(1), "c0": np.ones(1)})


def test_pieces_that_could_be_half_as_large_are_said_with_the_run_that_decides() -> None:
    found = fit([farm(n, 1000, DEALT["rounded down"]) for n in (8, 16, 32)])
    said = "the runs do not tell 64 floorw:500 of send from 32 floorw:1000: the first is taken, a run of "
    (line,) = (each for each in open_rules(found.application) if each.startswith(said))
    deciding = int(line.removeprefix(said).split()[0])
    assert 500 // (deciding - 1) * 64 != 1000 // (deciding - 1) * 32


@pytest.mark.parametrize(("workers", "rule"), [(True, "7e+06 1/(n-1)"), (False, "n^")])
def test_work_that_workers_share_is_divided_by_their_number(workers: bool, rule: str) -> None:
    counts = np.array([4, 8, 16])
    samples = Samples(counts, {"r": np.ones(3)}, 0, "line")
    assert rule in str(shared_out(samples, 7e6 / (counts - 1.0), 0.05, workers))
