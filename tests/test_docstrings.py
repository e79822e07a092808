"""Docstrings say more than the name does, and in what unit times, rates and amounts are."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("metasched", "monitors", "candidate_functions")
#: As few words add nothing, unless they say where the meaning stands.
FEWEST = 6
#: Last words of names of times, rates and amounts. Names with their unit, such as ``seconds``, are not among them, nor
#: ``available_bandwidth``, whose unit is fixed throughout (docs/architecture.md).
MEASURED = re.compile(
    r"(^|(?<!available)_)(age|bandwidth|deadline|delay|duration|energy|frequency|horizon|interval|lag|latency|limit|memory|moment"
    r"|patience|period|power|rate|time|timeout|wait|walltime)s?$"
)
NUMBER = re.compile(r"(float|Floats|ArrayLike)\b")
#: A unit in parentheses or spelled out, that of something else, or that there is none.
UNIT = re.compile(
    r"\((?:[^()]*[ ,;])?(?:1/s|s|h|W|J|kWh|MHz|GHz|Mbit/s|bit/s|[kMG]i?B|bytes?|megabytes|%|G?flop/s)\b[^()]*\)"
    r"|\b(seconds?|minutes?|hours?|Mbit/s|MHz|GHz|joules?|watts?|bytes|megabytes|in s|\d s)\b"
    r"|(the|any|same) unit|relative to|probabilit|parts? of|share of|: 1 is"
)


def brief(source: str) -> list[str]:
    """The functions and classes of a file whose docstrings have too few words, by line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            text = ast.get_docstring(node)
            if text is not None and len(text.split()) < FEWEST and not text.startswith("See :"):
                found.append(f"{node.lineno} {node.name}: {text}")
    return found


def numbers(node: ast.AST) -> Iterator[str]:
    """Names of the numbers that a public function is given, or that a public class has as fields."""
    if isinstance(node, ast.ClassDef):
        fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
        given = [(each.target.id, each.annotation) for each in fields]  # type: ignore[union-attr]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        given = [(each.arg, each.annotation) for each in (*node.args.args, *node.args.kwonlyargs)]
    else:
        given = []
    for name, kind in given:
        if kind is not None and NUMBER.match(ast.unparse(kind)) and not name.startswith("_"):
            yield name


def agreed(contract: str) -> set[tuple[str, str]]:
    """The methods of a contract with each number that they are given: what it says of them need not be said again."""
    classes = [node for node in ast.walk(ast.parse(contract)) if isinstance(node, ast.ClassDef)]
    methods = [node for each in classes for node in each.body if isinstance(node, ast.FunctionDef)]
    return {(method.name, name) for method in methods for name in numbers(method)}


def without_unit(source: str, known: Container[tuple[str, str]] = ()) -> list[str]:
    """Times, rates and amounts of which neither the docstring, nor the class, nor what is known says the unit."""
    found: list[str] = []

    def look(node: ast.AST, classes: tuple[str, ...]) -> None:
        for each in ast.iter_child_nodes(node):
            if not isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or each.name.startswith("_"):
                continue
            text = ast.get_docstring(each) or ""
            for name in filter(MEASURED.search, numbers(each)):
                of_class = [line for text in classes for line in text.splitlines() if re.search(rf"\b{name}\b", line)]
                if (each.name, name) not in known and not any(map(UNIT.search, (text, *of_class))):
                    found.append(f"{each.lineno} {each.name}: {name}")
            if isinstance(each, ast.ClassDef):
                look(each, (*classes, text))

    look(ast.parse(source), ())
    return found


def files(package: str) -> dict[str, str]:
    """The sources of a package by their path."""
    found = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted((ROOT / package).rglob("*.py"))}
    assert len(found) > 1
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_say_more_than_names(package: str) -> None:
    found = {path: brief(source) for path, source in files(package).items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_times_rates_and_amounts_have_their_unit(package: str) -> None:
    sources = files(package)
    contracts = {path: source for path, source in sources.items() if path.endswith("contract.py")}
    known = set().union(*map(agreed, contracts.values()))
    found = {path: without_unit(source, () if path in contracts else known) for path, source in sources.items()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("docstring", "found"),
    [
        ("Wait so long.", ["1 f: timeout"]),
        ("Wait so long (s).", []),
        ("Wait at most ``timeout`` seconds.", []),
        ("Wait.\n\n    timeout : in the unit of the clock.\n    ", []),
    ],
)
def test_a_time_without_unit_is_found(docstring: str, found: list[str]) -> None:
    assert without_unit(f'def f(timeout: float, seconds: float):\n    """{docstring}"""\n') == found


def test_a_brief_docstring_is_found() -> None:
    assert brief('def f():\n    """What it is."""\n') == ["1 f: What it is."]
    assert brief('def f():\n    """See :class:`Other`."""\n') == []


def test_what_a_contract_says_of_a_time_holds_for_those_who_keep_it() -> None:
    contract = 'class C:\n    def f(self, timeout: float):\n        """Wait so long (s)."""\n'
    assert agreed(contract) == {("f", "timeout")}
    assert without_unit('def f(timeout: float):\n    """Wait."""\n', agreed(contract)) == []
