"""Imports point one way, as docs/architecture.md draws them: between the packages, between rooms, and inside rooms."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: What lies in each room, innermost first: it may import itself and whatever stands before it, never what follows.
ORDER = {
    "metasched": [
        *(
            "arrays",
            "records",
            "json_numbers",
            "plain_numbers",
            "node_names",
            "slurm_times",
            "sbatch_words",
            "validation",
            "jobs",
            "modes",
            "audit",
            "blocks",
            "energy_share",
            "simulation",
            "signature",
            "queueing",
            "contention",
            "predictors",
        ),
        *(
            "history",
            "placement",
            "advised_placements",
            "store",
            "tracing",
            "frames",
            "fitting",
            "estimator",
            "schedulers",
            "client",
            "described_placements",
            "sites",
            "service",
            "doctor",
            "installation",
            "cli",
        ),
    ],
    "metasched.records": ["errors", "settings", "loads", "predictions", "runs", "placements"],
    "metasched.predictors": [
        *(
            *("contract", "columns", "abilities"),
            "memory",
            "load_doubt",
            "gaussian_process",
            "expected_scales",
            "log_regression",
            "formulas",
            "robust",
            "energy",
            "porting",
            "adaptive",
            "phases",
            "analytic",
        ),
        *("tournament", "judging", "walltime"),
    ],
    "metasched.signature": ["traces", "equations", "computation", "rules", "times", "synthetic"],
    "metasched.history": [
        "argument_numbers",
        "job_log",
        "submission",
        "log_formats",
        "backfill_order",
        "backfilling",
        "course",
        "joined_queue",
        "replay",
        "waits",
        "problem_sizes",
        "run_times",
        "evaluation",
        "queue",
        "outcomes",
        "playback",
        "report",
    ],
    "metasched.placement": ["clusters", "loads", "search", "ranking", "moving", "explaining"],
    "metasched.store": ["errors", "roles", "documents", "files", "database", "pseudonyms", "spool"],
    "metasched.cli": [
        *("output", "help_tables", "written_files", "options", "job_words", "configured", "figures"),
        *("models", "placements", "signatures", "simulations", "history", "daemon"),
        *("runs", "hardware", "network", "solve", "app", "manual"),
    ],
    "metasched.service": [
        *(
            "configuration",
            "sources",
            "schemas",
            "munge_credentials",
            "web_tokens",
            "authentication",
            "refusals",
            "simulations",
            "analytic_models",
            "clock",
            "quality",
            "state",
            "metrics",
        ),
        *("load_intake", "advice"),
        *("learning", "periodic_work", "daemon", "api", "dashboard", "app", "server"),
    ],
}
#: What starts the command line: it may import all.
OUTERMOST = {"metasched.__init__", "metasched.__main__"}


def _imports(path: Path) -> set[str]:
    """The modules that a file imports, each as far as its name tells: ``a.b.c`` for ``from a.b import c`` too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def _modules(package: str) -> list[Path]:
    return sorted((ROOT / package.replace(".", "/")).rglob("*.py"))


def _inside(name: str, room: str) -> str:
    """The part of a room that a module belongs to; empty where it lies elsewhere."""
    return name.removeprefix(f"{room}.").split(".")[0] if name.startswith(f"{room}.") else ""


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [("candidate_functions", {"monitors", "metasched"}), ("monitors", {"candidate_functions", "metasched"})],
)
def test_inner_packages_import_no_other(package: str, forbidden: set[str]) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} -> {name}"
        for path in _modules(package)
        for name in _imports(path)
        if name.split(".")[0] in forbidden
    ]
    assert not wrong


@pytest.mark.parametrize("room", ORDER)
def test_imports_inside_a_room_point_inwards(room: str) -> None:
    order, wrong = ORDER[room], []
    for path in _modules(room):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        here = _inside(module, room)
        if module in OUTERMOST or here == "__init__":
            continue
        for name in _imports(path):
            there = _inside(name, room)
            if there in order and order.index(there) > order.index(here):
                wrong.append(f"{path.relative_to(ROOT)} -> {name}")
    assert not wrong


@pytest.mark.parametrize("room", ORDER)
def test_everything_in_a_room_has_its_place(room: str) -> None:
    there = {
        path.stem
        for path in (ROOT / room.replace(".", "/")).iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert there - {"__init__", "__main__"} == set(ORDER[room])


def test_every_file_of_the_journeys_exists_and_every_journey_is_told() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    journeys = page[page.index("## Three journeys") : page.index("## Words")].split("\n### ")
    named = [re.findall(r"`([a-z_]+/[\w./-]+)`", journey) for journey in journeys]
    assert [len(files) > 10 for files in named[1:]] == [True] * 3
    assert not [file for files in named for file in files if not (ROOT / file).is_file()]


def test_candidate_functions_do_no_input_or_output() -> None:
    read_or_write = {"os", "pathlib", "io", "json", "sqlalchemy", "requests"}
    wrong = [
        f"{path.relative_to(ROOT)} -> {name}"
        for path in _modules("candidate_functions")
        for name in _imports(path)
        if name.split(".")[0] in read_or_write
    ]
    assert not wrong
