"""The tests themselves: none that cannot fail, none that asks how long something took."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(HERE.rglob("test_*.py"))
#: Calls that fail where what they check is not so.
CHECKS = {"raises", "warns", "deprecated_call", "fail", "skip", "check", "until", "refusal"}
#: Clocks whose differences are durations.
CLOCKS = {"perf_counter", "process_time", "monotonic", "perf_counter_ns", "thread_time"}


def functions_run(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The functions that pytest runs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def helpers(tree: ast.Module) -> set[str]:
    """Functions of a file that always assert something, so that calling one counts."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found: set[str] = set()
    for _ in functions:
        more = {each.name for each in functions if always(each.body, found)}
        if more == found:
            break
        found = more
    return found


def named(call: ast.Call) -> str:
    """The last part of the name that is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def checks(node: ast.AST, known: set[str]) -> bool:
    """Whether evaluating an expression or a simple statement checks something."""
    calls = {named(each) for each in ast.walk(node) if isinstance(each, ast.Call)}
    return bool(calls & (CHECKS | known)) or any(name.startswith("assert_") for name in calls)


def never_empty(loop: ast.For | ast.AsyncFor) -> bool:
    """Whether a loop runs at least once as far as its text tells: over a display, a range or a constant."""
    over = loop.iter
    if isinstance(over, (ast.Tuple, ast.List)) and any(isinstance(each, ast.Starred) for each in over.elts):
        return not all(isinstance(each, ast.Starred) for each in over.elts)
    while isinstance(over, ast.Call) and named(over) in {"enumerate", "zip", "sorted", "reversed", "product", "items"}:
        if named(over) == "items" and isinstance(over.func, ast.Attribute):
            over = over.func.value
        elif over.args:
            over = over.args[0]
        else:
            break
    if isinstance(over, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
        return bool(over.elts if not isinstance(over, ast.Dict) else over.keys)
    if isinstance(over, ast.Name):
        return over.id.isupper()  # a constant of the module
    return isinstance(over, ast.Constant) or (isinstance(over, ast.Call) and named(over) == "range")


def always(body: list[ast.stmt], known: set[str]) -> bool:
    """Whether something is checked whichever way a block runs."""
    for node in body:
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, (ast.With, ast.AsyncWith)):
            if any(checks(item.context_expr, known) for item in node.items) or always(node.body, known):
                return True
        elif isinstance(node, ast.Try):
            handled = all(always(each.body, known) for each in node.handlers)
            if always(node.finalbody, known) or (handled and always([*node.body, *node.orelse], known)):
                return True
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            if never_empty(node) and always(node.body, known):
                return True
        elif isinstance(node, ast.If):
            if always(node.body, known) and always(node.orelse, known):
                return True
        elif isinstance(node, ast.While):
            if isinstance(node.test, ast.Constant) and always(node.body, known):
                return True
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            # A property of hypothesis is often a function within the test, which the test then calls.
            if isinstance(node, ast.FunctionDef) and always(node.body, known):
                known = known | {node.name}
        elif checks(node, known):
            return True
    return False


def toothless(source: str) -> list[str]:
    """The tests of a file that may pass without having checked anything."""
    tree = ast.parse(source)
    known = helpers(tree)
    return [test.name for test in functions_run(tree) if not always(test.body, known)]


def timed(source: str) -> list[str]:
    """The tests of a file that assert how long something took."""
    found = []
    for test in functions_run(ast.parse(source)):
        clocks = {
            target.id
            for node in ast.walk(test)
            if isinstance(node, ast.Assign) and reads_clock(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(test):
            if isinstance(node, ast.Assert) and any(
                isinstance(each, ast.BinOp)
                and isinstance(each.op, ast.Sub)
                and reads_clock(each.left)
                and (reads_clock(each.right) or getattr(each.right, "id", "") in clocks)
                for each in ast.walk(node)
            ):
                found.append(test.name)
    return found


def reads_clock(node: ast.AST) -> bool:
    """Whether an expression reads a clock."""
    return any(isinstance(each, ast.Call) and named(each) in CLOCKS for each in ast.walk(node))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_every_test_checks_something_whichever_way_it_runs(path: Path) -> None:
    assert toothless(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_no_test_asserts_how_long_something_took(path: Path) -> None:
    assert timed(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "for x in found():\n        assert x",
        "if found():\n        assert True",
        "while more():\n        assert True",
        "for x in []:\n        assert x",
    ],
)
def test_a_test_that_may_check_nothing_is_found(body: str) -> None:
    assert toothless(f"def test_a():\n    {body}\n") == ["test_a"]


@pytest.mark.parametrize(
    "body",
    [
        "assert found()",
        "for x in (1, 2):\n        assert x",
        "for x in range(3):\n        assert x",
        "with pytest.raises(ValueError):\n        found()",
        "np.testing.assert_allclose(1, 1)",
        "helper()",
        "if found():\n        assert 1\n    else:\n        assert 2",
    ],
)
def test_a_test_that_checks_something_is_not(body: str) -> None:
    assert toothless(f"def helper():\n    assert 1\ndef test_a():\n    {body}\n") == []


def test_an_assertion_about_a_duration_is_found() -> None:
    body = "    begin = time.perf_counter()\n    work()\n    assert time.perf_counter() - begin < 1\n"
    assert timed(f"def test_a():\n{body}") == ["test_a"]
    assert timed("def test_a():\n    assert time.monotonic() < end\n") == []
