"""What another program prints may be in any encoding, and none of it may stop us."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from metasched.records import InputError
from metasched.tracing.compiled import compiled
from tests.tracing.programs import script

ROOT = Path(__file__).parents[1]
MODULES = [path for top in ("metasched", "monitors", "deploy") for path in sorted((ROOT / top).rglob("*.py"))]


def test_the_output_of_every_program_is_decoded_whatever_it_is() -> None:
    strict, found = [], 0
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            words = {each.arg for each in node.keywords}
            if words & {"text", "universal_newlines"}:
                found += 1
                strict += [f"{path.relative_to(ROOT)}:{node.lineno}"] * ("errors" not in words)
    assert found > 5
    assert strict == []


def test_a_compiler_that_complains_in_another_encoding_is_reported(tmp_path: Path) -> None:
    (tmp_path / "p.c").touch()
    script(tmp_path / "cc", r"printf 'fichier illisible: \351t\351\n' >&2; exit 1")
    with pytest.raises(InputError, match=r"cannot build p\.c: fichier illisible: �t�"):
        compiled(tmp_path / "p.c", str(tmp_path / "cc"), ())
