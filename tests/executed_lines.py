"""Which tests execute a line of the product, recorded once by coverage.py and kept in ``.executed_lines/``.

Test files that changed since are recorded again; in a module of the product that changed since, lines have moved, and
each counts as executed by every test that executes anything of the module.
"""

from __future__ import annotations

import ast
import compileall
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import TypedDict

import coverage

from tests import recording
from tests.recording import PRODUCT, TIMES

FOLDER = ".executed_lines"
LEFT_OUT = (".git", ".venv", FOLDER, ".hypothesis", "__pycache__", ".*_cache", "*.egg-info", "api-docs", "demo-output")
#: Tracing slows tests several times: none of them is to fail by its time limit.
SLOWER = "1200"
#: So many files are recorded before what they execute is kept.
AT_ONCE = 20
SETTINGS = """[run]
source =
    {sources}
data_file = {data}
parallel = true
# A process that a test starts executes lines for that test.
context = ${{PYTEST_CURRENT_TEST-}}
disable_warnings = no-data-collected,module-not-measured,module-not-imported,couldnt-parse
"""
#: Run by each interpreter at its start. Of itself coverage.py traces only where it is installed among the interpreter's
#: own packages, not where these are found by a path.
STARTED = "import coverage\n\ncoverage.process_startup()\n"


def copied(root: Path, folder: str) -> Path:
    """A copy of the tree in a folder, without what is no source, compiled.

    Its byte code is checked by content: a change within the same second is noticed.
    """
    copy = Path(folder) / root.name
    shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for top in PRODUCT:
        compileall.compile_dir(copy / top, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return copy


def environment(copy: Path) -> dict[str, str]:
    """The environment of tests in a copy: its product comes before an installed one, and byte code is not kept."""
    return os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}


def files_of_tests(root: Path) -> list[str]:
    """The files of the quick tests and the modules with examples; tests of benchmarks, which take longest, last."""
    tests = (path for path in (root / "tests").rglob("test_*.py") if "system" not in path.parts)
    examples = (path for path in sources(root) if ">>>" in path.read_text(encoding="utf-8"))
    found = (path.relative_to(root).as_posix() for path in (*tests, *examples))
    return sorted(found, key=lambda name: (name.startswith("tests/benchmarks/"), name))


def sources(root: Path) -> tuple[Path, ...]:
    """The modules of the product."""
    return tuple(path for top in PRODUCT for path in sorted((root / top).rglob("*.py")))


class Recorded(TypedDict):
    """The tests of a file: its digest when they were recorded, and the seconds of each that passed."""

    digest: str
    seconds: dict[str, float]


class Kept(TypedDict):
    """What stands beside the lines: the files of tests, and the digests of the product's modules."""

    files: dict[str, Recorded]
    modules: dict[str, str]


def record(root: Path, workers: int = 1) -> None:
    """Run the tests that changed since they were last recorded, in a copy of the tree, and keep what they execute.

    What is recorded is kept from time to time: an interrupted recording goes on where it was.
    """
    kept = _kept(root)
    digests = {name: _digest(root / name) for name in files_of_tests(root)}
    kept["files"] = {name: each for name, each in kept["files"].items() if each["digest"] == digests.get(name)}
    changed = [name for name in digests if name not in kept["files"]]
    if not kept["modules"]:
        kept["modules"] = {path.relative_to(root).as_posix(): _code_digest(path) for path in sources(root)}
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(root, folder)
        for at in range(0, len(changed), AT_ONCE):
            print(f"recording the tests of {len(changed) - at} files", file=sys.stderr, flush=True)
            files = changed[at : at + AT_ONCE]
            seconds = _recorded(root, copy, files, workers)
            for name in files:
                own = {test: spent for test, spent in seconds.items() if test.partition("::")[0] == name}
                kept["files"][name] = {"digest": digests[name], "seconds": own}
            (root / FOLDER / "tests.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")


def _kept(root: Path) -> Kept:
    path = root / FOLDER / "tests.json"
    if not path.exists():
        return {"files": {}, "modules": {}}
    kept: Kept = json.loads(path.read_text(encoding="utf-8"))
    return kept


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _code_digest(path: Path) -> str:
    """The digest of a module's lines without those of docstrings: another wording moves no line."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            between = range(node.lineno - 1, node.end_lineno or node.lineno)
            lines[between.start : between.stop] = [""] * len(between)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _recorded(root: Path, copy: Path, files: Sequence[str], workers: int) -> dict[str, float]:
    """Run test files of a copy under coverage.py and keep what they execute; the seconds of each test that passed."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data, plugins = folder / "data", folder / "plugins"  # Not in the tree, which may have a module of that name.
        data.mkdir()
        plugins.mkdir()
        shutil.copy(recording.__file__, plugins)
        (plugins / "sitecustomize.py").write_text(STARTED, encoding="utf-8")
        each = "\n    ".join(str(copy / top) for top in PRODUCT)
        (folder / "coveragerc").write_text(SETTINGS.format(sources=each, data=data / "lines"), encoding="utf-8")
        (folder / "files").write_text("\n".join(files), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "recording"]
        command += ["--timeout", SLOWER, *(["-n", str(workers)] if workers > 1 else []), f"@{folder / 'files'}"]
        traced = environment(copy) | {
            "COVERAGE_PROCESS_START": str(folder / "coveragerc"),
            TIMES: str(folder / "times"),
        }
        traced["PYTHONPATH"] += f"{os.pathsep}{plugins}"
        traced.pop("PYTEST_CURRENT_TEST", None)  # where a test records
        subprocess.run(command, cwd=copy, env=traced, stdout=sys.stderr)
        keep(root, copy, data)
        return dict(json.loads((folder / "times").read_text(encoding="utf-8")))


def keep(root: Path, copy: Path, data: Path) -> None:
    """Add the lines that were recorded in a copy of the tree to those kept."""
    (root / FOLDER).mkdir(exist_ok=True)
    lines = coverage.CoverageData(str(root / FOLDER / "lines"))
    lines.read()
    for path in sorted(data.iterdir()):
        part = coverage.CoverageData(str(path))
        part.read()
        lines.update(part, map_path=lambda name: Path(name).relative_to(copy).as_posix())


class ExecutedLines:
    """The recorded tests of a tree, to be asked which of them execute a line.

    Parameters
    ----------
    root
        The tree; :func:`record` has recorded its tests.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        kept = _kept(root)
        self.modules = kept["modules"]
        self.seconds = {test: spent for each in kept["files"].values() for test, spent in each["seconds"].items()}
        self._lines = coverage.CoverageData(str(root / FOLDER / "lines"))
        self._lines.read()
        self._by_line: dict[str, dict[int, list[str]]] = {}

    def tests(self, module: Path, line: int) -> list[str]:
        """The tests that execute a line of a module, fastest first.

        A line of a function's head counts as executed with the function. A line that runs when the module is imported
        runs before every test: it counts as executed by the tests that execute anything of the module, or of a module
        that imports it.
        """
        name = module.relative_to(self.root).as_posix()
        contexts = self._contexts(name)
        extent = extent_of(ast.parse(module.read_text(encoding="utf-8")), line)
        if self.modules.get(name) != _code_digest(module):
            found = self._named(chain.from_iterable(contexts.values()))
        else:
            at = {context for each in extent or () for context in contexts.get(each, ())}
            found = self._named(at)
            if extent is None or at == {""}:
                users = [name, *(each.relative_to(self.root).as_posix() for each in importers(self.root, module))]
                found = {test for each in users for test in self._named(chain(*self._contexts(each).values()))}
        return sorted(found, key=lambda test: (self.seconds[test], test))

    def _contexts(self, name: str) -> dict[int, list[str]]:
        """By line, what executed it: a test, a module or folder whose fixture did, or nothing but an import."""
        if name not in self._by_line:
            self._by_line[name] = self._lines.contexts_by_lineno(name)
        return self._by_line[name]

    def _named(self, contexts: Iterable[str]) -> set[str]:
        """The tests of contexts; those of a process that a test started end with the step of the test."""
        found: set[str] = set()
        for context in set(contexts) - {""}:
            test, _, step = context.removesuffix(")").rpartition(" (")
            if context in self.seconds:
                found.add(context)
            elif step in ("call", "teardown") and test in self.seconds:
                found.add(test)
            else:
                within = test.partition("::")[0] if step == "setup" else context
                found |= {each for each in self.seconds if each.startswith((f"{within}::", f"{within}/"))}
        return found


def extent_of(tree: ast.Module, line: int) -> range | None:
    """The lines that are executed together with a line: a statement's, or its head's where it has a body of its own.

    Returns
    -------
    The function's body for a line of its head, and None for other lines that run when the module is imported.
    """
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    if not any(line in _body(each) for each in functions):
        return next((_body(each) for each in functions if line in _head(each)), None)
    heads = (_head(each) for each in ast.walk(tree) if isinstance(each, ast.stmt | ast.ExceptHandler | ast.match_case))
    return min((head for head in heads if line in head), key=len, default=range(line, line + 1))


def _body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> range:
    return range(function.body[0].lineno, (function.end_lineno or function.lineno) + 1)


def _head(node: ast.stmt | ast.ExceptHandler | ast.match_case) -> range:
    """The lines of a statement, without those of its body."""
    first = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
    first = min([first, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    body = getattr(node, "body", None)
    end = max(body[0].lineno, first + 1) if body else (node.end_lineno or first) + 1
    return range(first, end)


def importers(root: Path, module: Path) -> list[Path]:
    """The modules of the product that import a module, directly or by a name that a package passes on."""
    name = dotted(root, module)
    return [path for path in sources(root) if path != module and name in imported(root, path)]


def dotted(root: Path, module: Path) -> str:
    """The name by which a module of a tree is imported."""
    return ".".join(module.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


@cache
def imported(root: Path, path: Path) -> frozenset[str]:
    """Modules of the product that a file imports, directly or by a name that a package passes on."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in PRODUCT:
            names |= {node.module}
            for each in node.names:
                names |= _meant(root, node.module, each.name)
    return frozenset(names)


def _meant(root: Path, module: str, name: str) -> set[str]:
    """The modules that ``from module import name`` reaches, through packages that pass the name on."""
    package = root / Path(*module.split("."))
    if (package / f"{name}.py").exists() or (package / name).is_dir():
        return {f"{module}.{name}"}
    reached: set[str] = set()
    if (package / "__init__.py").exists():
        # Names that are loaded when they are first used stand below ``if TYPE_CHECKING``.
        for node in ast.walk(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and name in {each.name for each in node.names}:
                reached |= {node.module} | _meant(root, node.module, name)
    return reached
