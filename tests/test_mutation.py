"""The search for faults that no test notices: what it draws, what it runs, and that it leaves the tree as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="cosmic-ray is in the extra mutation")
from metasched.cli.app import VERBS
from tests import mutation
from tests.executed_lines import FOLDER, ExecutedLines, environment, importers, record
from tests.nearby_tests import nearby
from tests.prepared_pytest import PreparedPytest

#: Every mutant starts a pytest of its own.
pytestmark = pytest.mark.timeout(600)

TREE = {
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--doctest-modules --import-mode=importlib'\n",
    "monitors/__init__.py": "",
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
    write(tmp_path / "tree", TREE)
    return tmp_path / "tree"


def write(tree: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip())


def contents(tree: Path) -> dict[str, str]:
    return {
        name: path.read_text()
        for path in tree.rglob("*")
        if path.is_file() and not (name := path.relative_to(tree).as_posix()).startswith(FOLDER)
    }


def judged(tree: Path, sample: int) -> list[mutation.Verdict]:
    record(tree)
    return [verdict for _, verdict in mutation.judge(tree, ["monitors/toy"], sample=sample, seed=3)]


def executing(tree: Path, text: str, module: str = "monitors/toy/sums.py") -> list[str]:
    """The names of the tests that execute the line of a module that holds a text."""
    line = next(at for at, each in enumerate((tree / module).read_text().splitlines(), 1) if text in each)
    return [test.rpartition("::")[2] for test in ExecutedLines(tree).tests(tree / module, line)]


def test_a_fault_that_a_test_notices_is_killed_one_that_none_does_survives_and_the_tree_stays(tree: Path) -> None:
    before = contents(tree)
    found = judged(tree, sample=9)
    assert {verdict.outcome for verdict in found if ":2: " in verdict.change} == {"killed"}
    survived = [verdict.change for verdict in found if verdict.outcome == "survived"]
    assert {change.partition("  ->  ")[0] for change in survived} == {"monitors/toy/sums.py:6: return value - 1"}
    assert {change.rpartition("  ")[2] for change in survived} == {"(no test executes it)"}
    assert len(found) == 3  # the sum, the difference and the number; no annotation
    assert contents(tree) == before


def test_a_test_that_fails_without_a_fault_too_judges_none(tree: Path) -> None:
    record(tree)
    counted = tree / "counted"
    (tree / "tests/monitors/toy/test_double.py").write_text(
        f"import pathlib\n\nfrom monitors.toy.sums import double\n\n\ndef test_double():\n"
        f"    double(7)\n    assert not pathlib.Path({str(counted)!r}).exists()\n"
    )
    record(tree)
    counted.touch()
    found = [
        verdict for _, verdict in mutation.judge(tree, ["monitors/toy"], sample=9, seed=3) if ":2:" in verdict.change
    ]
    assert [verdict.outcome for verdict in found] == ["unjudged"]
    assert found[0].change.endswith("(tests/monitors/toy/test_double.py::test_double fails without it)")


def test_a_test_that_fails_once_by_itself_is_run_again_before_it_judges_none(tree: Path) -> None:
    calls = tree.parent / "calls"
    calls.write_text("")
    (tree / "tests/monitors/toy/test_double.py").write_text(
        "import pathlib\n\nfrom monitors.toy.sums import double\n\n\ndef test_double():\n    double(1)\n"
        f"    calls = pathlib.Path({str(calls)!r})\n"
        "    calls.write_text(calls.read_text() + 'x')\n"
        "    assert len(calls.read_text()) not in (2, 3)\n"
    )
    found = [verdict.outcome for verdict in judged(tree, sample=9) if ":2:" in verdict.change]
    assert (found, calls.read_text()) == (["killed"], "xxxx")


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


def test_runs_see_the_modules_as_they_are_then_name_what_failed_and_are_stopped_at_the_limit(tree: Path) -> None:
    tests = ["tests/monitors/toy/test_double.py"]
    module = tree / "monitors/toy/sums.py"
    with PreparedPytest(tree, environment(tree)) as prepared:
        assert prepared.run(tests, 60.0) == ("survived", "")
        sound = module.read_text()
        module.write_text(sound.replace("value + value", "value * value"))
        assert prepared.run(tests, 60.0) == ("killed", f"{tests[0]}::test_double")
        module.write_text(sound.replace("value + value", "while"))
        assert prepared.run(tests, 60.0) == ("killed", tests[0])
        module.write_text(sound)
        (tree / tests[0]).write_text("import os\n\n\ndef test_double():\n    os.abort()\n")
        assert prepared.run(tests, 60.0) == ("killed", "")
        (tree / tests[0]).write_text("def test_double():\n    while True:\n        pass\n")
        assert prepared.run(tests, 0.5) == ("timeout", "")


def test_near_a_module_are_its_examples_what_imports_it_and_the_rest_of_its_room(tree: Path) -> None:
    write(
        tree,
        {
            "monitors/toy/shown.py": 'def one():\n    """\n    >>> one()\n    1\n    """\n    return 1\n',
            "tests/monitors/toy/test_shown.py": "from monitors.toy.shown import one\n",
        },
    )
    assert nearby(tree, tree / "monitors/toy/shown.py") == [
        ["monitors/toy/shown.py", "tests/monitors/toy/test_shown.py"],
        ["tests/other/test_through_the_package.py"],
        ["tests/monitors/toy/test_double.py"],
    ]
    assert nearby(tree, tree / "monitors/toy/sums.py") == [
        ["tests/monitors/toy/test_double.py", "tests/other/test_through_the_package.py"],
        ["tests/monitors/toy/test_shown.py"],
    ]
    found = [verdict for _, verdict in mutation.judge(tree, ["monitors/toy"], sample=9, seed=3, near=True)]
    assert {verdict.outcome for verdict in found if "value + value" in verdict.change} == {"killed"}
    assert {verdict.outcome for verdict in found if "value - 1" in verdict.change} == {"survived"}


def test_near_a_module_of_the_command_line_are_the_calls_of_its_verbs(tree: Path) -> None:
    place = VERBS["surface"].rpartition(".")[0].replace(".", "/")
    write(
        tree,
        {
            "metasched/cli/__init__.py": "",
            f"metasched/cli/{place}.py": "from metasched.cli.bars import bar\n",
            "metasched/cli/bars.py": "def bar():\n    return 1\n",
            "metasched/cli/app.py": "",
            "tests/other/test_shown.py": 'def test_surface():\n    main(["surface"])\n',
            "tests/other/test_whole_toys.py": "from metasched.cli import app\n",
        },
    )
    shown, whole = ["tests/other/test_shown.py"], ["tests/other/test_whole_toys.py"]
    assert nearby(tree, tree / "metasched/cli/bars.py") == [shown, whole]


def test_a_line_is_tested_by_whatever_executes_it(tree: Path) -> None:
    further = {
        # An example in another module, and a test of that module.
        "monitors/toy/uses.py": """
            from monitors.toy.limits import MOST
            from monitors.toy.sums import unused


            def less(value):
                \"\"\"
                >>> less(4)
                3
                \"\"\"
                return unused(value)


            def few(value):
                return value < MOST
            """,
        "tests/other/test_uses.py": """
            from monitors.toy.uses import few, less


            def test_less():
                assert less(4) == 3


            def test_few():
                assert few(2)
            """,
        # What a fixture of the module executes before the first of its tests alone.
        "tests/other/test_fixture.py": """
            import pytest

            from monitors.toy.sums import unused


            @pytest.fixture(scope="module")
            def three():
                return unused(4)


            def test_one(three):
                assert three > 0


            def test_two(three):
                assert three == 3
            """,
        "tests/other/test_process.py": """
            import subprocess
            import sys


            def test_nothing():
                pass


            def test_process():
                subprocess.run([sys.executable, "-c", "import monitors.toy.sums as sums; sums.unused(2)"], check=True)
            """,
        # Results that are kept: the second test finds that of the first.
        "monitors/toy/limits.py": """
            from functools import cache

            MOST = 3


            @cache
            def squared(value):
                return value * value


            def some(
                most=MOST,
            ):
                return most
            """,
        "tests/other/test_limits.py": """
            from monitors.toy.limits import some, squared


            def test_squared():
                assert squared(3)


            def test_squared_again():
                assert squared(3) == 9


            def test_some():
                assert some() == 3
            """,
    }
    write(tree, further)
    record(tree)
    through = {"test_less", "monitors.toy.uses.less", "test_one", "test_two", "test_process"}
    assert set(executing(tree, "value - 1")) == through
    assert executing(tree, "value + value") == ["test_double"]
    assert set(executing(tree, "value * value", "monitors/toy/limits.py")) == {"test_squared", "test_squared_again"}
    assert executing(tree, "most=MOST", "monitors/toy/limits.py") == ["test_some"]
    # What runs at import counts for whoever executes the module, or one that imports it.
    own = {"test_squared", "test_squared_again", "test_some"}
    assert set(executing(tree, "MOST = 3", "monitors/toy/limits.py")) == own | {
        "test_few",
        "test_less",
        "monitors.toy.uses.less",
    }
    assert importers(tree, tree / "monitors/toy/limits.py") == [tree / "monitors/toy/uses.py"]


def test_only_changed_tests_are_recorded_again_and_lines_of_a_changed_module_count_for_all_of_its_tests(
    tree: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    record(tree)
    (tree / "tests/other/test_unused.py").write_text(
        "from monitors.toy.sums import unused\n\n\ndef test_unused():\n    assert unused(3) == 2\n"
    )
    record(tree)
    record(tree)
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("recording")]
    assert [line.split()[-3:] for line in said] == [["of", "3", "files"], ["of", "1", "files"]]
    assert executing(tree, "value - 1") == ["test_unused"]
    module = tree / "monitors/toy/sums.py"
    module.write_text("# A line more.\n" + module.read_text())
    assert set(executing(tree, "value - 1")) == {"test_unused", "test_double"}


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
        STEPS = {"some": (300, 6)}
        if TYPE_CHECKING:
            DEFAULT = 3


        class Thing(Protocol):
            @property
            def name(self) -> str: ...

            def size(self, most: int = 9) -> int: ...


        @dataclass(frozen=True, order=True)
        class Pair:
            one: int = 5


        @cache
        def pairs(ones):
            return [one for one, _ in zip(ones, ones, strict=True) if one is None]


        def told(words):
            found = run(words, timeout=60) == 3
            raise ValueError(f"{words[:40]} are none")
        """
    module = tmp_path / "module.py"
    module.write_text(textwrap.dedent(text).lstrip())
    before = module.read_text()
    found = [mutant for place in mutation.mutants(module) for mutant in place]
    changes = {
        mutation.change(tmp_path, mutant, before, mutant.apply(before)).partition("  ->  ")[2] for mutant in found
    }
    assert {each for each in changes if not each.startswith("found")} == {
        "FEW = 8",
        "FEW = 6",
        'STEPS = {"some": (300, 7)}',
        'STEPS = {"some": (300, 5)}',
        "class Pair:",  # without its decorator
        "@dataclass(frozen=True, order=False)",
        "one: int = 6",
        "one: int = 4",
        "return [one for one, _ in zip(ones, ones, strict=True) if one is not None]",
    }
    about = {each for each in changes if each.startswith("found")}
    assert "found = run(words, timeout=60) != 3" in about
    assert not {each for each in about if " is " in each or "timeout=60" not in each}


def test_a_fault_that_cannot_be_made_or_that_python_cannot_read_is_not_drawn(tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "star.py").write_text("def double(value, *, times=2):\n    return value\n")
    (tmp_path / "toy" / "tried.py").write_text(
        "def tried(value):\n    try:\n        value()\n    except (os.Error, os.Other):\n        return\n"
    )
    drawn = mutation.drawn(tmp_path, "toy", 9, 1)
    assert {mutant.operator for mutant in drawn} == {"core/NumberReplacer"}


@pytest.mark.parametrize(("number", "drawn"), [("1e15", 1), ("1e16", 0), ("1e18", 0), ("10**18", 2)])
def test_a_number_that_is_the_same_with_one_more_is_not_drawn(number: str, drawn: int, tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "large.py").write_text(f"def large(value):\n    value({number})\n")
    found = [mutant for mutant in mutation.drawn(tmp_path, "toy", 9, 1) if mutant.operator == "core/NumberReplacer"]
    assert len(found) == drawn


def test_near_a_module_are_whole_answers_that_come_from_it_and_the_defaults(tree: Path) -> None:
    write(
        tree,
        {
            "monitors/toy/inner.py": "def inner():\n    return 1\n",
            "monitors/toy/middle.py": "from monitors.toy.inner import inner\n\n\ndef middle():\n    return inner()\n",
            "monitors/toy/outer.py": "from monitors.toy.middle import middle\n\n\ndef outer():\n    return middle()\n",
            "monitors/toy/last.py": "from monitors.toy.outer import outer\n\n\ndef last():\n    return outer()\n",
            "tests/other/asked.py": "from monitors.toy.last import last\nfrom tests.other import again\n",
            "tests/other/again.py": "from tests.other.asked import last\n",
            "tests/other/test_whole_toys.py": "from tests.other.again import last\n",
            "tests/other/test_whole_others.py": "",
            "tests/test_fields.py": "",
        },
    )
    assert nearby(tree, tree / "monitors/toy/inner.py")[-1] == [
        "tests/other/test_whole_toys.py",
        "tests/test_fields.py",
    ]
    first, *_, last = nearby(tree, tree / "monitors/toy/last.py")
    assert "tests/other/test_whole_toys.py" in first
    assert last == ["tests/test_fields.py"]


@pytest.mark.parametrize(("value", "drawn"), [('"x"', False), ("7", False), ("b", True), ("b.kind", True)])
def test_what_the_linter_refuses_of_literals_is_not_drawn(value: str, drawn: bool, tmp_path: Path) -> None:
    for number, text in enumerate((f"a.kind == {value} or b", f"{value} == a", f"a != {value}")):
        module = tmp_path / f"module{number}.py"
        module.write_text(f"def f(a, b):\n    return {text}\n", encoding="utf-8")
        names = {mutant.operator for place in mutation.mutants(module) for mutant in place}
        assert bool(names & set(mutation.SAME_WITH_LITERAL)) is drawn
        assert names & {"core/ReplaceComparisonOperator_Eq_NotEq", "core/ReplaceComparisonOperator_NotEq_Eq"}
