"""The search for faults that no test notices: what it draws, what it runs, and that it leaves the tree as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="cosmic-ray is in the extra mutation")
from tests import mutation

#: Every mutant starts a pytest of its own.
pytestmark = pytest.mark.timeout(600)

TREE = {
    "pyproject.toml": "",
    "monitors/toy/__init__.py": '"""Toys."""\n\nfrom monitors.toy.sums import double\n',
    "monitors/toy/sums.py": """
        def double(value: int | None) -> int:
            return value + value


        def unused(value):
            return value - 1
        """,
    "tests/monitors/toy/test_double.py": """
        from monitors.toy.sums import double


        def test_double() -> None:
            assert double(7) == 14
        """,
    "tests/other/test_through_the_package.py": "from monitors.toy import double\n",
    "tests/other/test_of_nothing.py": "import json\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip())
    return tmp_path / "tree"


def contents(tree: Path) -> dict[str, str]:
    return {path.relative_to(tree).as_posix(): path.read_text() for path in tree.rglob("*") if path.is_file()}


def test_a_fault_that_a_test_notices_is_killed_one_that_none_does_survives_and_the_tree_stays(tree: Path) -> None:
    before = contents(tree)
    found = [verdict for _, verdict in mutation.judge(tree, ["monitors/toy"], sample=9, seed=3)]
    assert {verdict.outcome for verdict in found if ":2: " in verdict.change} == {"killed"}
    survived = {verdict.change.partition("  ->  ")[0] for verdict in found if verdict.outcome == "survived"}
    assert survived == {"monitors/toy/sums.py:6: return value - 1"}
    assert len(found) == 3  # the sum, the difference and the number; no annotation
    assert contents(tree) == before


def test_tests_that_fail_without_a_fault_judge_none(tree: Path) -> None:
    (tree / "tests/monitors/toy/test_double.py").write_text("def test_double():\n    assert False\n")
    found = [verdict for _, verdict in mutation.judge(tree, ["monitors/toy"], sample=1, seed=3)]
    assert [verdict.outcome for verdict in found] == ["unjudged"]
    named = "(tests/monitors/toy/test_double.py fails without it)"
    assert [verdict.change.partition("  (")[1:] for verdict in found] == [("  (", named[1:])]


def test_a_test_that_fails_once_by_itself_is_run_again_before_it_judges_none(tree: Path) -> None:
    calls = tree / "calls"
    calls.write_text("")
    (tree / "tests/monitors/toy/test_double.py").write_text(
        "import pathlib\n\n\ndef test_double():\n"
        f"    calls = pathlib.Path({str(calls)!r})\n"
        "    calls.write_text(calls.read_text() + 'x')\n"
        "    assert len(calls.read_text()) > 2\n"
    )
    (found,) = (verdict.outcome for _, verdict in mutation.judge(tree, ["monitors/toy"], sample=1, seed=3))
    assert (found, calls.read_text()) == ("killed", "xxx")


def test_a_run_in_the_background_of_a_shell_heeds_an_interruption_as_one_in_the_foreground() -> None:
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import tests.conftest; "
        "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=mutation.ROOT, env=os.environ | {"PYTHONPATH": str(mutation.ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ended.stdout == "True\n"


def test_tests_that_do_not_end_are_stopped(tree: Path) -> None:
    test = tree / "tests/monitors/toy/test_double.py"
    test.write_text("def test_double():\n    while True:\n        pass\n")
    assert mutation.run(tree, [test], limit=0.5) == ("timeout", None)


def test_a_module_is_tested_by_its_doctests_its_mirrored_folder_and_whoever_imports_it(tree: Path) -> None:
    found = mutation.covering_tests(tree, tree / "monitors/toy/sums.py")
    names = [path.relative_to(tree).as_posix() for path in found]
    assert names == [
        "monitors/toy/sums.py",
        "tests/monitors/toy/test_double.py",
        "tests/other/test_through_the_package.py",
    ]


def test_tests_of_a_module_that_imports_it_are_run_where_its_own_notice_nothing(tree: Path) -> None:
    (tree / "monitors/toy/uses.py").write_text(
        "from monitors.toy.sums import unused\n\n\ndef less(value):\n    return unused(value)\n"
    )
    test = tree / "tests/further/test_uses.py"
    test.parent.mkdir()
    test.write_text("from monitors.toy.uses import less\n\n\ndef test_less():\n    assert less(4) == 3\n")
    assert test not in mutation.covering_tests(tree, tree / "monitors/toy/sums.py")
    assert mutation.tests_of_users(tree, tree / "monitors/toy/sums.py") == [test]
    found = [verdict for _, verdict in mutation.judge(tree, ["monitors/toy"], sample=9, seed=3)]
    assert [verdict.change for verdict in found if verdict.outcome != "killed"] == []


def test_a_seed_draws_the_same_mutants_again_whatever_other_rooms_are_judged(tree: Path) -> None:
    assert mutation.rooms(tree) == ["monitors/toy"]
    assert mutation.drawn(tree, "monitors/toy", 2, 5) == mutation.drawn(tree, "monitors/toy", 2, 5)
    assert len({tuple(mutation.drawn(tree, "monitors/toy", 2, seed)) for seed in range(20)}) > 1


def test_what_changes_no_behaviour_is_no_mutant(tmp_path: Path) -> None:
    text = """
        from dataclasses import dataclass
        from functools import cache
        from typing import TYPE_CHECKING, Protocol

        LIMIT = 2000.0
        FEW = 7
        if TYPE_CHECKING:
            DEFAULT = 3


        class Thing(Protocol):
            def size(self, most: int = 9) -> int: ...


        @dataclass(frozen=True, order=True)
        class Pair:
            one: int = 5


        @cache
        def pairs(ones):
            return [one for one, _ in zip(ones, ones, strict=True) if one is None]
        """
    module = tmp_path / "module.py"
    module.write_text(textwrap.dedent(text).lstrip())
    before = module.read_text()
    found = [mutant for place in mutation.mutants(module) for mutant in place]
    changes = {
        mutation.change(tmp_path, mutant, before, mutant.apply(before)).partition("  ->  ")[2] for mutant in found
    }
    assert changes == {
        "FEW = 8",
        "FEW = 6",
        "class Pair:",  # without its decorator
        "@dataclass(frozen=True, order=False)",
        "one: int = 6",
        "one: int = 4",
        "return [one for one, _ in zip(ones, ones, strict=True) if one is not None]",
    }


def test_a_fault_that_python_cannot_read_is_not_drawn(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "star.py").write_text("def double(value, *, times=2):\n    return value\n")
    drawn = mutation.drawn(tmp_path, "toy", 9, 1)
    assert {mutant.operator for mutant in drawn} == {"core/NumberReplacer"}
