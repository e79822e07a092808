"""Numbers in arguments and scripts: each with its place, and nothing else of what users write."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.history.argument_numbers import (
    LONGEST_LINE,
    LONGEST_SCRIPT,
    LONGEST_TEXT,
    MOST_NUMBERS,
    in_arguments,
    in_command,
    in_sbatch,
    in_script,
    merged,
    numbers_of,
)

READERS = (in_arguments, in_command, in_sbatch, in_script)


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("400", "$1=400"),
        ("-n 400 -n 8", "-n=400 -n.2=8"),
        ("-n400 --size=1e3 size=1.50", "-n=400 --size=1000 size==1.5"),
        ("in.dat 007", "$2=7"),
        ("/home/u123/case_400.dat", "$1=400"),
        ("mesh:200x100", "$1=200 $1.2=100"),
        ("--fast 400", "--fast=400"),
        ("'a title of 7 words' 400", "$1=7 $2=400"),
        ('an "open quote 400', "$4=400"),
        ("10G 400k 50% 1:30:00 12:00", ""),
        ("0 -5 --n=-5 0.0 1e99 nan inf 1_000", "$8=1"),
        ("1234567890123 --id=1234567890123", ""),
        ("--password 1234 --api-key=5 --token=7 -pin 9 --spin 3", "--spin=3"),
        (f"--{41 * 'x'}=400 --n\u00f6=4 --$(reboot)=5", ""),
        ("\u0664\u0660\u0660 \uff14", ""),
        ("--a 1\u00a02 pin=7 my-pwd=8", "--a=1 --a.2=2"),
    ],
)
def test_numbers_of_arguments_have_the_option_or_the_position_that_they_belong_to(line: str, numbers: str) -> None:
    assert in_arguments(line) == numbers


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("sbatch --time 60 -N2 -Hn 4 run.sh 400 -n 7", "$1=400 -n=7"),
        ("/usr/bin/sbatch --exclusive --array=1-9 -- run.sh -n 7", "-n=7"),
        ("sbatch -n 8 --wrap ./solve -n 400", "-n=400"),
        ("sbatch -n 1 : -n 2 -N1 : -n4 run.sh : 400", "$2=400"),
        ("sbatch -n 1 :", ""),
        ("sbatch -n 8", ""),
        ("srun -n 8 solve 400", ""),
        ("salloc", ""),
    ],
)
def test_of_a_submitted_line_the_options_of_sbatch_do_not_count(line: str, numbers: str) -> None:
    assert in_sbatch(line) == numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("mpirun ./solve -n 400", "script:-n=400"),
        ("srun -n 8 \\\n ./solve \\\n -n 400", "script:-n=8 script:-n.2=400"),
        ("export SIZE=400 # or 800\n./solve $SIZE", "script:SIZE==400"),
        ("sleep 5; ./solve 400 < in.7 2>&1 | tee out.7", "script:$1=5 script:$1.2=400"),
        ("#SBATCH -n 8\n#SBATCH --time=60", ""),
        ("module load gcc/12.2\ncd /scratch/u123", ""),
        ("TOKEN=1234\nSECRET=5\nPIN=9", ""),
        ("./solve 7>8>9 -n\u00a0400 5\u20286", ""),
        ("./solve \"-n\" '400'", "script:-n=400"),
    ],
)
def test_numbers_of_a_script_are_those_of_its_commands(text: str, numbers: str) -> None:
    assert in_script(text) == numbers


def test_many_numbers_are_the_first_of_arguments_and_the_last_of_a_script() -> None:
    assert [*numbers_of(in_arguments(" ".join(map(str, range(1, 99)))))] == [
        f"${n}" for n in range(1, MOST_NUMBERS + 1)
    ]
    script = in_script("\n".join(f"A{n}={n}" for n in range(1, 99)))
    assert [*numbers_of(script).values()] == [str(n) for n in range(99 - MOST_NUMBERS, 99)]


def test_a_number_that_is_cut_off_is_no_other_number() -> None:
    assert in_arguments("7 " + (LONGEST_LINE - 4) * "x" + " 400") == "$1=7"
    assert "=4" not in in_script((LONGEST_SCRIPT - 6) * "x" + "\n-n 400")


@given(st.text(max_size=300) | st.text("-=$'\"\\ \n\t;|#n1\x00.\ud800", max_size=300))
def test_whatever_users_write_only_bounded_numbers_with_places_come_out(text: str) -> None:
    for read in READERS:
        found = read(text)
        assert len(found) <= LONGEST_TEXT
        assert re.fullmatch(r"[A-Za-z0-9_$:=.+ -]*", found)
        assert " ".join(f"{place}={number}" for place, number in numbers_of(found).items()) == found
        assert all(0.0 < float(number) < 1e12 for number in numbers_of(found).values())


@given(st.text(max_size=200), st.text("-n=$1 script:.4", max_size=200))
def test_a_text_that_is_none_of_these_is_cleaned(text: str, like: str) -> None:
    assert merged(merged(text, like)) == merged(text, like)
    assert len(merged(text, like)) <= LONGEST_TEXT
