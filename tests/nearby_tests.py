"""The files of tests that stand nearest to a module of the product, without having run any of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from metasched.cli.app import VERBS
from tests.executed_lines import dotted, files_of_tests, imported, importers, sources

#: What takes longest is not tried, nor what tests this.
LONG = ("tests/benchmarks/", "tests/test_docs.py", "tests/test_mutation.py")
#: What looks at every module that declares fields or defaults, and imports none by name.
OF_FIELDS = "tests/test_fields.py"
#: What compares whole answers with those written down, of all modules that these come from.
WHOLE = "test_whole_"
#: Files that are tried in each group but the first.
MOST = 15


def nearby(root: Path, module: Path) -> list[list[str]]:
    """The files of tests near a module, in groups, the nearest first.

    The module's own examples, the files of its room that bear its name, and what tests all declared fields; then files
    that import the module, or a module that imports it, or that call a verb of one of these by its name, or else the
    package, which loads the module by its name; then files that are one import further away, and the rest of the
    room's; and what compares whole answers or tests the defaults of functions. In a group those of the room come first,
    and those first that import least.
    """
    room = module.parent.relative_to(root)
    folder = Path("tests", *(room.parts[1:] if room.parts[0] == "metasched" else room.parts))
    own = {module.relative_to(root).as_posix(), (folder / f"test_{module.stem}.py").as_posix()}
    while not (root / folder).is_dir():
        folder = folder.parent
    if "Field(" in module.read_text(encoding="utf-8"):
        own.add(OF_FIELDS)
    tests = [name for name in files_of_tests(root) if not name.startswith(LONG)]
    groups, left = [[name for name in tests if name in own]], [name for name in tests if name not in own]
    reached = {module, *importers(root, module)}
    for further in (False, True):
        if further:
            reached |= {each for one in reached for each in importers(root, one)}
        found = _using(root, reached, left) or _using(root, [module.parent / "__init__.py"], left)
        if further:
            found |= {name for name in left if Path(name).parent == folder}
        ranked = sorted(found, key=lambda name: (Path(name).parent != folder, len(imported(root, root / name)), name))
        groups.append(ranked[:MOST])
        left = [name for name in left if name not in groups[-1]]
    whole = [name for name in left if Path(name).name.startswith(WHOLE) and module in _behind(root, root / name)]
    groups.append([*whole, *(name for name in left if name == OF_FIELDS)])
    return [group for group in groups if group]


def _behind(root: Path, test: Path) -> set[Path]:
    """The modules of the product that a file of tests uses, through whatever imports; the command line loads verbs."""
    by_name = {dotted(root, path): path for path in sources(root)}
    verbs = {f"metasched.cli.{place.rpartition('.')[0]}" for place in VERBS.values()}
    found: set[Path] = set()
    names = set(imported_by(root, test))
    while new := {by_name[name] for name in names if name in by_name} - found:
        found |= new
        names = {name for path in new for name in imported(root, path)}
        if root / "metasched/cli/app.py" in new:
            names |= verbs
    return found


@cache
def imported_by(root: Path, test: Path) -> frozenset[str]:
    """Modules of the product that a file of tests imports, itself or through others of the tests."""
    found, new = set[Path](), {test}
    while new:
        found |= new
        new = {other for path in new for other in _of_tests(root, path)} - found
    return frozenset().union(*(imported(root, path) for path in found))


@cache
def _of_tests(root: Path, test: Path) -> frozenset[Path]:
    """Modules of the tests that one of them imports."""
    found = set()
    for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "tests":
            place = root / Path(*node.module.split("."))
            found |= {place.with_suffix(".py"), *(place / f"{each.name}.py" for each in node.names)}
    return frozenset(path for path in found if path.exists())


def _using(root: Path, modules: Iterable[Path], tests: Iterable[str]) -> set[str]:
    """Those of the tests that import one of the modules, or call one of their verbs, which are loaded by name."""
    names = {dotted(root, each) for each in modules}
    verbs = [f'"{verb}"' for verb, place in VERBS.items() if f"metasched.cli.{place.rpartition('.')[0]}" in names]
    return {
        name
        for name in tests
        if names & imported_by(root, root / name)
        or (name.startswith("tests/") and any(verb in (root / name).read_text(encoding="utf-8") for verb in verbs))
    }
