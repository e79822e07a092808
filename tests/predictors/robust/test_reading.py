"""A newcomer understands how a prediction comes about from few files: those that docs/models.md names."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[3]
WITHOUT_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def lines_of_code(source: str) -> int:
    """Lines that hold more than white space, comments and docstrings."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in WITHOUT_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def test_a_prediction_is_understood_from_eight_files_and_a_thousand_lines() -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    named = re.search(r"A complete prediction takes eight files(.*?)Around them", page, re.DOTALL)
    assert named is not None
    files = re.findall(r"`([\w/]+\.py)`", named[1])
    sources = [(ROOT / "metasched" / "predictors" / file).read_text(encoding="utf-8") for file in files]
    assert len(files) == 8
    assert sum(map(lines_of_code, sources)) < 1000


def test_docstrings_and_comments_are_no_code() -> None:
    assert lines_of_code('"""Says\nmuch."""\n\n# why\nx = [\n    1,\n]\n') == 3
