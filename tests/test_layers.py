"""Imports point one way, as docs/architecture.md draws them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: Rooms of metasched, innermost first. A room may import itself and any room before it; schedulers and service
#: stand side by side and do not import each other.
ORDER = ["records", "contention", "predictors", "placement", "store", "service", "schedulers", "cli"]
SIDE_BY_SIDE = {("service", "schedulers"), ("schedulers", "service")}


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            if node.module == "metasched":
                found.update(f"metasched.{alias.name}" for alias in node.names)
    return found


def _modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [("candidate_functions", {"monitors", "metasched"}), ("monitors", {"candidate_functions", "metasched"})],
)
def test_inner_packages_import_no_other(package: str, forbidden: set[str]) -> None:
    for path in _modules(package):
        tops = {name.split(".")[0] for name in _imports(path)}
        assert not tops & forbidden, f"{path} imports {tops & forbidden}"


def test_rooms_of_metasched_import_inwards_only() -> None:
    wrong = []
    for path in _modules("metasched"):
        room = path.relative_to(ROOT / "metasched").parts[0].removesuffix(".py")
        if room not in ORDER:
            continue
        for name in _imports(path):
            parts = name.split(".")
            if parts[0] != "metasched" or len(parts) < 2 or parts[1] not in ORDER:
                continue
            other = parts[1]
            if ORDER.index(other) > ORDER.index(room) or (room, other) in SIDE_BY_SIDE:
                wrong.append(f"{path.relative_to(ROOT)} -> {name}")
    assert not wrong, wrong


def test_candidate_functions_do_no_input_or_output() -> None:
    for path in _modules("candidate_functions"):
        assert not _imports(path) & {"os", "pathlib", "io", "json", "sqlalchemy", "requests"}, path
