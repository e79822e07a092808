"""Docstrings say more than the name does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: As few words add nothing, unless they say where the meaning stands.
FEWEST = 6


def brief(source: str) -> list[str]:
    """The functions and classes of a file whose docstrings have too few words, by line."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            text = ast.get_docstring(node)
            if text is not None and len(text.split()) < FEWEST and not text.startswith("See :"):
                found.append(f"{node.lineno} {node.name}: {text}")
    return found


@pytest.mark.parametrize("package", ["metasched", "monitors", "candidate_functions"])
def test_docstrings_say_more_than_names(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    found = {str(path.relative_to(ROOT)): brief(path.read_text(encoding="utf-8")) for path in files}
    assert len(found) > 1
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_a_brief_docstring_is_found() -> None:
    assert brief('def f():\n    """What it is."""\n') == ["1 f: What it is."]
    assert brief('def f():\n    """See :class:`Other`."""\n') == []
