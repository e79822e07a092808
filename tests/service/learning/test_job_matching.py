"""Marks in comments, and which placement a finished job was for."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.advised_placements import AdvisedPlacement, Answer, Ask
from metasched.jobs import EndedJob, Mark, Sibling, digest, read_mark
from metasched.service.learning import job_matching
from metasched.service.learning.job_matching import Askers, match, owns


def advised_at(uid: str, at: float, processors: int, name: str = "", **more: object) -> AdvisedPlacement:
    asked = {"application": "cg", "problem_size": 5.0, "scheduler": "c", "user": "1", "name": name} | more
    ask = Ask.model_validate(asked | {"processors": [processors]})
    return AdvisedPlacement(at, ask, Answer(id=uid, mode="shadow", steer="nodes", placed=False, message=""))


@given(st.text())
def test_any_comment_is_read_or_passed_over(comment: str) -> None:
    mark = read_mark("metasched:" + comment)
    assert mark is None or mark.problem_size > 0


def test_a_mark_is_read_wherever_it_stands() -> None:
    expected = Mark("a.out", 12.5, 8, "0f")
    assert read_mark("please metasched:app=a.out,n=12.5,p=8,placement=0f now") == expected
    assert read_mark("metasched:app=$(reboot),n=5") is None
    assert read_mark("metasched:app=cg,n=nan") is None


@pytest.mark.parametrize(
    ("marked", "owned"), [("12345678901", True), ("1.23456789e+10", True), ("12345678", False), ("12345679901", False)]
)
def test_a_placement_is_owned_by_a_job_whose_hook_wrote_its_size_with_fewer_digits(marked: str, owned: bool) -> None:
    advised = advised_at("0a", 5.0, 2, "x", problem_size=12345678901.0)
    mark = read_mark(f"metasched:app=cg,n={marked},p=2,placement=0a")
    job = EndedJob("c", "7", "", "p", ("n",), 2, 9.0, 12.0, 0, "1", "x", 5.0)
    assert mark is not None
    assert owns(job, mark, advised) is owned
    found = match(job, replace(mark, placement=None), [advised])
    assert found is not None
    assert (found.placement == "0a") is owned


@given(
    st.lists(st.tuples(st.floats(0, 5), st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=12), st.randoms()
)
def test_no_job_gets_a_placement_of_another(made: list[tuple[float, int, int]], draw: random.Random) -> None:
    """Jobs of one user and name in bursts, whichever end first: with a placement only where it is certain."""
    at, advised, jobs = 0.0, [], {}
    for number, (pause, processors, text) in enumerate(made):
        at += pause
        script = digest(bytes([text]))
        advised.append(advised_at(f"{number:02x}", at, processors, "x", problem_size=float(text), script=script))
        answer = EndedJob(
            "c", str(number), "", "p", ("n",), processors, at + 5, at + 9, 0, "1", "x", float(int(at + 0.02))
        )
        jobs[f"{number:02x}"] = replace(answer, script=script)
    assert len(advised) == len(jobs) == len(made)
    draw.shuffle(advised)
    for uid, job in jobs.items():
        found = match(job, None, advised)
        assert found is not None
        assert (found.problem_size, found.processors) == (made[int(uid, 16)][2], made[int(uid, 16)][1])
        assert found.placement in (None, uid)
        assert match(replace(job, user="2"), None, advised) is None


def test_a_job_whose_number_was_told_is_matched_by_it() -> None:
    advised = [advised_at(f"{number:02x}", 100.0, 2, job=str(number)) for number in (7, 8)]
    job = EndedJob("c", "8", "", "p", ("n",), 2, 101.0, 102.0, 0, "1", "", 100.0)
    found = match(job, None, advised)
    assert found is not None
    assert found.placement == "08"
    assert match(replace(job, job="9"), None, advised) is None


def test_a_marked_job_is_not_matched_to_a_placement_of_another_size() -> None:
    job = EndedJob("c", "9", "", "p", ("n",), 2, 100.0, 101.0, 0, "1", "", 50.0)
    advice = advised_at("0a", 50.2, 2)
    other = Mark("cg", 6.0)
    assert match(job, other, [advice]) is other
    assert match(job, Mark("cg", 5.0), [advice]) == Mark("cg", 5.0, 2, "0a")


def test_a_job_that_says_nothing_gets_no_placement_of_one_whose_comment_says_what_it_is() -> None:
    """They were submitted together, with the same script and of the same name."""
    job = EndedJob("c", "9", "", "p", ("n",), 2, 100.0, 101.0, 0, "1", "x", 50.0)
    advice = advised_at("0a", 50.2, 2, "x", annotated=True)
    assert match(job, None, [advice]) is None
    numbers = Mark("cg", 5.0)
    assert match(job, numbers, [advice]) is numbers
    marked = replace(job, comment="metasched:app=cg,n=5")
    assert match(marked, read_mark(marked.comment), [advice]) == Mark("cg", 5.0, 2, "0a")


def test_a_job_that_states_no_number_gets_no_placement_of_one_that_has_stated_its_size_by_one() -> None:
    job = EndedJob("c", "9", "", "p", ("n",), 2, 100.0, 101.0, 0, "1", "x", 50.0)
    advice = advised_at("0a", 50.2, 2, "x", stated=True)
    assert match(job, None, [advice]) is None
    assert match(job, Mark("cg", 5.0), [advice]) == Mark("cg", 5.0, 2, "0a")


def test_a_job_whose_script_is_not_known_gets_no_placement_that_was_read_from_a_script() -> None:
    job = EndedJob("c", "9", "", "p", ("n",), 2, 100.0, 101.0, 0, "1", "", 50.0)
    assert match(job, None, [advised_at("0a", 50.2, 2, script=digest(b"a"))]) is None


def test_a_placement_is_made_shortly_before_its_job_is_submitted_by_clocks_that_cut_off_a_second() -> None:
    job = EndedJob("c", "12", "", "p", ("n0",), 4, 130.0, 140.0, 0, user="1", name="cg.sh", submitted=100.0)
    made = {
        at: match(job, None, [advised_at("0a", at, 4, "cg.sh")]) is not None for at in (97.4, 97.5, 100.9, 101.0, 102.0)
    }
    assert made == {97.4: False, 97.5: True, 100.9: True, 101.0: False, 102.0: False}
    assert match(replace(job, submitted=None), None, [advised_at("0a", 99.0, 4, "cg.sh")]) is None


@pytest.mark.parametrize(
    ("sibling", "others", "certain"),
    [
        ({}, (), False),
        ({}, ("0b",), True),
        ({"processors": 2}, (), True),
        ({"comment": "metasched:app=cg,n=6"}, (), True),
        ({"command": "3-4"}, (), True),
        ({"submitted": 103.0}, (), True),
    ],
    ids=["no other placement", "one for each", "of other processes", "says another size", "other command", "later"],
)
def test_a_placement_that_may_be_a_siblings_is_no_jobs(
    sibling: dict[str, Any], others: tuple[str, ...], certain: bool
) -> None:
    job = EndedJob("c", "12", "", "p", ("n0",), 4, 130.0, 140.0, 0, user="1", name="x", submitted=100.0,
                   script="1-2", command="2-3")  # fmt: skip
    beside = Sibling("13", "", 4, 101.0, "2-3")
    advised = [advised_at("0a", 100.0, 4, "x", script="1-2", command="2-3")]
    # Scripts of others are not known until they end.
    advised += [advised_at(uid, 100.5, 4, "x", script="5-6", command="2-3") for uid in others]
    found = match(replace(job, siblings=(replace(beside, **sibling),)), None, advised)
    assert found is not None
    assert (found.application, found.placement) == ("cg", "0a" if certain else None)


def test_who_asked_longest_ago_is_forgotten_for_one_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_matching, "MOST_ASKERS", 2)
    askers = Askers()
    jobs = [EndedJob("c", "12", "", "p", ("n0",), 4, 130.0, 140.0, 0, user="1", name=name) for name in ("a", "b", "c")]
    for name in ("a", "b", "a", "c"):
        askers.note(advised_at("0a", 1.0, 4, name).question, 1.0)
    assert [askers.know(job) for job in jobs] == [True, False, True]


def test_the_clock_of_a_scheduler_is_known_by_its_questions_although_some_come_late() -> None:
    askers = Askers()
    asked = [advised_at("0a", at, 4, "x", asked_at=at + 300.0 - late).question for at, late in ((5.0, 0.1), (6.0, 1.9))]
    for question, at in zip(asked, (5.0, 6.0), strict=True):
        askers.note(question, at)
    assert askers.clock_offset("c") == pytest.approx(299.9)
    assert askers.clock_offset("d") == 0.0
    for _ in range(20):  # it was set right
        askers.note(asked[0].model_copy(update={"asked_at": 7.0}), 7.0)
    assert askers.clock_offset("c") == 0.0


@pytest.mark.parametrize(("asked_at", "found"), [(None, False), (100.4, True), (97.0, False), (400.0, False)])
def test_a_job_is_found_by_the_clock_that_dates_its_submission(asked_at: float | None, found: bool) -> None:
    job = EndedJob("c", "12", "", "p", ("n0",), 4, 130.0, 140.0, 0, user="1", name="x", submitted=100.0)
    advised = advised_at("0a", 400.4, 4, "x", asked_at=asked_at)
    assert (match(job, None, [advised]) is not None) is found
