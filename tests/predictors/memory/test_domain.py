"""What is said of requests outside what was learned: up to each bound, word for word."""

from __future__ import annotations

import pytest

from metasched.predictors.memory.domain import Domain
from metasched.predictors.memory.setting_columns import SettingColumns
from metasched.records import Request, Run, Settings


def run(n: float, p: int) -> Run:
    return Run("cg", "c8", n, p, 1.0, 90.0, 1.0)


LEARNED = Domain.of([run(200.0, 8), run(100.0, 4), run(150.0, 16)])


def test_the_ranges_are_those_of_the_runs() -> None:
    assert Domain(100.0, 200.0, 4, 16) == LEARNED
    assert Domain.of([]) == Domain()
    assert Domain.of([run(50.0, 2)]) == Domain(50.0, 50.0, 2, 2)


@pytest.mark.parametrize(
    ("n", "p", "said"),
    [
        *[(n, p, []) for n in (50.0, 100.0, 400.0) for p in (4, 16, 32)],
        (401.0, 4, ["problem_size 401 is 2 times the largest learned (200)"]),
        (500.0, 4, ["problem_size 500 is 2.5 times the largest learned (200)"]),
        (49.9, 4, ["problem_size 49.9 is far below the smallest learned (100)"]),
        (100.0, 33, ["33 processors are more than twice the most learned (16)"]),
        (100.0, 3, ["3 processors are fewer than the fewest learned (4)"]),
        (
            1000.0,
            1,
            [
                "problem_size 1000 is 5 times the largest learned (200)",
                "1 processor is fewer than the fewest learned (4)",
            ],
        ),
    ],
)
def test_a_request_is_warned_of_beyond_twice_what_was_learned(n: float, p: int, said: list[str]) -> None:
    assert list(LEARNED.warnings(Request(n, p, 1.0, 90.0))) == said


@pytest.mark.parametrize(
    ("steps", "shift", "word", "said"),
    [
        *[(steps, shift, "cg", "") for steps in (50.0, 200.0, 800.0) for shift in (-4.99, 0.0, 6.99)],
        (49.9, 0.0, "amg", "steps 49.9 is far below the 100 to 400 learned"),
        (801.0, 0.0, "amg", "steps 801 is far above the 100 to 400 learned"),
        (100.0, -5.1, "amg", "shift -5.1 is far below the -1 to 3 learned"),
        (100.0, 7.1, "amg", "shift 7.1 is far above the -1 to 3 learned"),
    ],
)
def test_a_number_is_far_beyond_a_factor_of_two_or_of_a_range_its_length(
    steps: float, shift: float, word: str, said: str
) -> None:
    known = [
        Settings.of(parameters={"steps": steps, "shift": shift, "solver": solver})
        for steps, shift, solver in ((100.0, -1.0, "amg"), (200.0, 0.0, "cg"), (400.0, 3.0, "amg"))
    ]
    found = SettingColumns.of(known, [2.0, 2.0, 2.0])  # type: ignore[arg-type]
    asked = Settings.of(parameters={"steps": steps, "shift": shift, "solver": word})
    assert found.doubts(asked) == ((said,) if said else ())
