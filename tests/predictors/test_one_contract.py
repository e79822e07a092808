"""The contract is all that other rooms know of predictors: none asks which one it has."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / "metasched"
CONTRACT = {"metasched.predictors.contract", "metasched.predictors.abilities"}
#: Rooms that must work with whatever predictor there is.
RANKING = ("placement", "service")


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _predictors() -> set[str]:
    """The names of all classes that predict."""
    classes = {
        node.name: node
        for path in (ROOT / "predictors").rglob("*.py")
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ClassDef)
    }
    own = {
        name
        for name, node in classes.items()
        if any(isinstance(each, ast.FunctionDef) and each.name == "predict_many" for each in node.body)
    }
    return own | {name for name, node in classes.items() if any(getattr(base, "id", "") in own for base in node.bases)}


def _outside() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if ROOT / "predictors" not in path.parents)


def _asks_for(node: ast.AST, predictors: set[str]) -> bool:
    """Whether a node asks which predictor something is."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"isinstance", "issubclass"}:
        return any(getattr(each, "id", getattr(each, "attr", "")) in predictors for each in ast.walk(node.args[1]))
    if isinstance(node, ast.MatchClass):
        return getattr(node.cls, "id", getattr(node.cls, "attr", "")) in predictors
    return False


def test_the_predictors_are_found() -> None:
    assert {"PublishedPredictor", "RobustPredictor", "Tournament", "EnergyPredictor", "Predictor"} <= _predictors()


def test_no_room_outside_asks_which_predictor_it_has() -> None:
    predictors = _predictors()
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in _outside()
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.expr | ast.pattern) and _asks_for(node, predictors)
    ]
    assert not wrong


def test_what_ranks_and_serves_imports_no_predictor() -> None:
    predictors = _predictors()
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} {alias.name}"
        for path in _outside()
        if path.relative_to(ROOT).parts[0] in RANKING
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ImportFrom) and node.module not in CONTRACT
        for alias in node.names
        if alias.name in predictors
    ]
    assert not wrong
