"""Which runs of a campaign are learned, which are predicted, and which platforms borrow: table by table."""

from __future__ import annotations

import pytest

from metasched.predictors.judging.groups import Group, draw, groups, judged_groups, lending
from metasched.records import InputError, Run


def run(n: float, phase: str | None = None, application: str = "cg", cluster: str = "a", p: int = 2) -> Run:
    return Run(application, cluster, n, p, 1.0, 90.0, 1.0, phase=phase)


def sizes(found: Group) -> tuple[list[float], list[float]]:
    return [each.problem_size for each in found.training], [each.problem_size for each in found.rest]


def test_rows_are_divided_by_application_and_platform_in_their_order() -> None:
    runs = [
        run(1, "train", "lu", "b"),
        run(2, "train"),
        run(3, "predict", "lu", "b"),
        run(4),
        run(5, "train", "lu", "a"),
    ]
    assert [(each.key, each.name, sizes(each)) for each in groups(runs)] == [
        (("lu", "b"), "lu on b", ([1], [3])),
        (("cg", "a"), "cg on a", ([2], [4])),
        (("lu", "a"), "lu on a", ([5], [])),
    ]


@pytest.mark.parametrize(
    ("training", "learned", "predicted"),
    [(None, [1, 2, 3], [4, 5]), (3, [1, 2, 3], [4, 5]), (2, 2, [4, 5]), (1, 1, [4, 5])],
)
def test_of_rows_with_phases_training_runs_are_drawn_among_those_to_train_with(
    training: int | None, learned: list[float] | int, predicted: list[float]
) -> None:
    (found,) = groups([*(run(n, "train") for n in (1, 2, 3)), run(4, "predict"), run(5)], training)
    chosen, rest = sizes(found)
    assert rest == predicted
    assert chosen == learned if isinstance(learned, list) else (len(chosen) == learned and set(chosen) <= {1, 2, 3})
    assert chosen == sorted(chosen)


def test_of_rows_without_phases_what_is_not_drawn_is_predicted() -> None:
    runs = [run(n) for n in range(1, 11)]
    assert sizes(groups(runs)[0]) == ([], [*range(1, 11)])
    drawn = {tuple(sizes(groups(runs, 6, seed)[0])[0]) for seed in range(5)}
    assert len(drawn) > 1
    for seed in range(5):
        (found,) = groups(runs, 6, seed)
        learned, rest = sizes(found)
        assert (len(learned), sorted(learned + rest)) == (6, [*range(1, 11)])
        assert groups(runs, 6, seed) == (found,)
    # Of equal rows those that were not drawn are predicted.
    learned, rest = sizes(groups([run(7) for _ in range(5)], 2)[0])
    assert (len(learned), len(rest)) == (2, 3)


@pytest.mark.parametrize(("phase", "what"), [("train", "train rows"), (None, "rows")])
def test_more_training_runs_than_any_group_has_are_refused_and_a_smaller_group_gives_all(
    phase: str | None, what: str
) -> None:
    runs = [run(n, phase) for n in (1, 2, 3)] + [run(n, phase, cluster="b") for n in (1, 2)]
    assert [len(each.training) for each in groups(runs, 3)] == [3, 2]
    with pytest.raises(InputError, match=rf"^has 3 {what} to draw from, expected at least 4$"):
        groups(runs, 4)
    with pytest.raises(InputError, match=r"^has 0 rows to draw from, expected at least 1$"):
        groups([], 1)


@pytest.mark.parametrize("count", [4, 5])
def test_from_four_on_a_draw_holds_two_sizes_and_two_counts_where_there_are_two(count: int) -> None:
    rare = [run(2.0), *(run(1.0) for _ in range(40)), run(1.0, p=4)]
    for seed in range(20):
        found = draw(rare, count, seed)
        assert {each.problem_size for each in found} == {1.0, 2.0}
        assert {each.processors for each in found} == {2, 4}
    assert len(draw([run(1.0)] * 9, count, 0)) == count
    few = [draw(rare, 3, seed) for seed in range(20)]
    assert any(len({each.processors for each in found}) == 1 for found in few)


def of(application: str, cluster: str, learned: int, predicted: int = 1) -> list[Run]:
    return [run(n + 1.0, "train", application, cluster) for n in range(learned)] + [
        run(n + 1.0, "predict", application, cluster) for n in range(predicted)
    ]


def test_platforms_lend_from_three_runs_on_where_there_is_another_one() -> None:
    every = groups([*of("cg", "a", 3), *of("cg", "b", 2), *of("lu", "a", 9), *of("ft", "a", 2), *of("ft", "b", 2)])
    assert {name: [each.cluster for each in able] for name, able in lending(every).items()} == {"cg": ["a"]}


def test_groups_without_training_runs_are_left_unless_they_may_borrow_or_need_none() -> None:
    runs = [*of("cg", "a", 3), *of("cg", "b", 0), *of("lu", "a", 0), *of("lu", "b", 4, 0)]
    plain = judged_groups(runs, where="x.csv")
    assert ([each.name for each in plain.groups], [each.name for each in plain.left]) == (
        ["cg on a"], ["cg on b", "lu on a"],
    )  # fmt: skip
    assert plain.lenders == {}
    borrowing = judged_groups(runs, where="x.csv", borrowing=True)
    assert ([each.name for each in borrowing.groups], borrowing.left) == (["cg on a", "cg on b", "lu on a"], [])
    assert [len(borrowing.lent(each)) for each in borrowing.groups] == [0, 3, 4]
    untrained = judged_groups(runs, where="x.csv", untrained=True)
    assert [each.name for each in untrained.groups] == ["cg on a", "cg on b", "lu on a"]


@pytest.mark.parametrize(("own", "lent"), [(19, 5), (20, 0)])
def test_from_twenty_runs_on_a_platform_borrows_none(own: int, lent: int) -> None:
    found = judged_groups([*of("cg", "a", own), *of("cg", "b", 5)], where="x.csv", borrowing=True)
    assert len(found.lent(found.groups[0])) == lent
    assert {each.cluster for each in found.lent(found.groups[1])} == {"a"}


@pytest.mark.parametrize(
    ("runs", "training", "said"),
    [
        (of("cg", "a", 3, 0), None, r"^x.csv: no row has phase predict, expected at least one$"),
        (of("cg", "a", 0, 3), None, r"^x.csv: no row has phase train, expected at least one$"),
        ([run(1.0), run(2.0)], None, r"expected at least one, or --training K to draw K runs$"),
        ([run(1.0), run(2.0)], 3, r"^x.csv, --training: has 2 rows to draw from, expected at least 3$"),
    ],
)  # fmt: skip
def test_a_campaign_that_cannot_be_judged_says_what_it_lacks(runs: list[Run], training: int | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        judged_groups(runs, training, where="x.csv")
