"""What the mark in a job's comment says, at its limits too, and what jobs are known by."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from metasched.jobs import (
    LONGEST_CHECKPOINT,
    LONGEST_MARK,
    MOST_PROCESSORS,
    EndedJob,
    Mark,
    check_times,
    digest,
    moved_comment,
    plain,
    read_mark,
    understood_mark,
)  # fmt: skip
from metasched.records import InputError, Settings

CG = Mark("cg", 1400.0)
JOB = EndedJob("c8", "77", "", "batch", ("n1",), 4, 100.25, 160.0, 0)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", CG),
        (",p=4", replace(CG, processors=4)),
        (",p=1", replace(CG, processors=1)),
        (f",p={MOST_PROCESSORS}", replace(CG, processors=MOST_PROCESSORS)),
        (f",p={MOST_PROCESSORS + 1}", CG),
        (",p=0", CG),
        (",p=-4", CG),
        (",p=4.0", CG),
        (f",p={'0' * 8}1", CG),
        (f",placement={'a' * 32}", replace(CG, placement="a" * 32)),
        (f",placement={'a' * 33}", CG),
        (",placement=", CG),
        (",checkpoint=0", replace(CG, checkpoint=0.0)),
        (f",checkpoint={LONGEST_CHECKPOINT}", CG),
        (f",checkpoint={math.nextafter(LONGEST_CHECKPOINT, 0.0)!r}", replace(
            CG, checkpoint=math.nextafter(LONGEST_CHECKPOINT, 0.0)
        )),
        (",checkpoint=-1", CG),
        (",checkpoint=soon", CG),
        (",done=0.25", replace(CG, done=0.25)),
        (",done=1", CG),
        (",done=nan", CG),
        (",threads=2,processes_per_node=3", replace(CG, settings=Settings(3, 2))),
        (",steps=100,a=b", replace(CG, settings=Settings(parameters=(("a", "b"), ("steps", 100.0))))),
        (",steps=100,steps=100", replace(CG, settings=Settings(parameters=(("steps", 100.0),)))),
        (",", CG),
    ],
)  # fmt: skip
def test_a_mark_says_what_its_words_say(words: str, expected: Mark) -> None:
    assert understood_mark(f"night metasched:app=cg,n=1400{words} run") == expected


@pytest.mark.parametrize("comment", ["", "night run", "metasched:off", "night metasched:off run"])
def test_a_comment_without_a_mark_says_nothing(comment: str) -> None:
    assert understood_mark(comment) is None


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("app=cg", "the comment says app=cg and no problem size"),
        ("app=cg,n=0", "the comment says n=0,"),
        ("app=cg,n=-3", "the comment says n=-3,"),
        ("app=cg,n=inf", "the comment says n=inf,"),
        ("app=cg,n=1_000", "the comment says n=1_000,"),
        (f"app=cg,n={'9' * 400}", f"the comment says n={'9' * 80},"),
        ("n=100", "the comment says metasched:n=100 and names no application"),
        ("app=,n=100", "the comment says metasched:app=,n=100 and names no application"),
        (f"n=100,x={'y' * 99}", f"the comment says metasched:n=100,x={'y' * 62} and names no application"),
        ("app=ü,n=1", "the comment says metasched:app= and then 'ü', expected letters, digits and _=.,+-"),
        ("app=cg,n=1,p=²", "the comment says metasched:app=cg,n=1,p= and then '²', expected"),
        ("app=cg,n=1１", "the comment says metasched:app=cg,n=1 and then '１', expected letters"),
        ("app=a=b,n=1", "the comment says app=a=b, expected a name of at most 64 letters"),
        (f"app={'a' * 65},n=1", f"the comment says app={'a' * 65}, expected"),
        ("app=cg,n=100,n=200", "the comment says n=100 and n=200, expected one of them"),
        ("app=cg,n=100,steps=9,threads=two", "the comment's threads is 'two', expected a number"),
        ("app=cg,n=100,threads=0", "the comment's threads is 0.0, expected a whole number of at least 1"),
        ("app=cg,n=100,processes_per_node=1.5", "the comment's processes_per_node is 1.5, expected a whole number"),
        ("app=cg,n=100,frequency=3", "the comment's frequency is 3, expected MHz from 10 to 100000"),
        ("app=cg,n=1,400", "the comment says 400, expected words of the form NAME=VALUE"),
        ("app=cg,n=100,steps=", "the comment says steps= and no value"),
        ("app=cg,n=100,steps=1e999", "the comment's steps is inf, expected a finite number or a word"),
        (f"app=cg,n=100,x={'y' * LONGEST_MARK}", f"the comment's mark has {LONGEST_MARK + 15} characters"),
    ],
)
def test_a_mark_that_cannot_be_understood_is_refused_in_a_line(mark: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        understood_mark(f"metasched:{mark}")
    assert str(caught.value).startswith(said)
    assert read_mark(f"metasched:{mark}") is None


def test_a_name_of_64_letters_and_a_mark_of_the_longest_length_are_read() -> None:
    name = "aZ_9.+-" + "b" * 57
    start = f"app={name},n=1" + "".join(f",x{number}={'y' * 50}" for number in range(7)) + ",z="
    found = read_mark(f"metasched:{start}{'z' * (LONGEST_MARK - len(start))}")
    assert found is not None
    assert found.application == name


@pytest.mark.parametrize(
    ("comment", "done", "expected"),
    [
        ("night run", 0.5, "night run"),
        ("metasched:app=cg,n=1", 0.25, "metasched:app=cg,n=1,placement=0b,done=0.2500"),
        ("a metasched:app=cg,done=0.1,n=1 b", 1.0, "a metasched:app=cg,n=1,placement=0b,done=0.9999 b"),
        ("metasched:app=cg,n=1,placement=0a", 0.0, "metasched:app=cg,n=1,placement=0b,done=0.0000"),
    ],
)
def test_the_comment_of_a_moved_job_names_the_new_placement(comment: str, done: float, expected: str) -> None:
    assert moved_comment(comment, "0b", done) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [(b"a b~", "a b~"), (b"\x1f\x7f\xff", "???"), (b"", ""), (b"a" * 256, "a" * 255)],
)
def test_names_are_printable_ascii_of_255_characters(name: bytes, expected: str) -> None:
    assert plain(name) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [(b"", ""), (b"\x00", "1-1"), (b"\x00\x00", "2-102"), (b"a", "1-62"), (b"x" * 20, "14-74e73f41462")],
)
def test_a_digest_is_the_length_and_a_polynomial_of_the_bytes(text: bytes, expected: str) -> None:
    assert digest(text) == expected


def test_the_first_65536_bytes_count() -> None:
    whole = b"x" * 65_536
    assert digest(whole + b"y").partition("-")[2] == digest(whole).partition("-")[2]
    assert digest(whole[:-1] + b"y") != digest(whole)


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"end": 170.0}, True), ({"start": 100.2501}, True), ({"start": 100.26}, False), ({"job": "78"}, False),
        ({"scheduler": "c9"}, False),
    ],
)  # fmt: skip
def test_a_run_of_a_job_is_known_by_its_scheduler_number_and_start(changed: dict[str, Any], same: bool) -> None:
    assert (replace(JOB, **changed).uid == JOB.uid) is same
    assert len(JOB.uid) == 32


@pytest.mark.parametrize(
    ("start", "end", "sound"),
    [
        (1e-9, 2e-9, True), (0.0, 5.0, False), (-1.0, 5.0, False), (5.0, 5.0, False), (5.0, math.inf, False),
        (math.nan, 5.0, False),
    ],
)  # fmt: skip
def test_a_job_starts_after_0_and_ends_later(start: float, end: float, sound: bool) -> None:
    found = ""
    try:
        check_times(replace(JOB, start=start, end=end))
    except InputError as error:
        found = str(error)
    assert (found == "") is sound
