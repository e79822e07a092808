"""The files of tests that stand nearest to a module of the product, without having run any of them."""

from __future__ import annotations

from pathlib import Path

from tests.executed_lines import dotted, files_of_tests, imported, importers

#: What takes longest is not tried.
LONG = ("tests/benchmarks/", "tests/test_docs.py")
#: Files that are tried besides those that bear the module's name.
MOST = 15


def nearby(root: Path, module: Path) -> list[list[str]]:
    """The files of tests near a module, in groups, the nearest first.

    The module's own examples and the files of its room that bear its name; then files that import the module, or a
    module that imports it: those of its room first, and those first that import least.
    """
    room = module.parent.relative_to(root)
    folder = Path("tests", *(room.parts[1:] if room.parts[0] == "metasched" else room.parts)).as_posix()
    own, others = {module.relative_to(root).as_posix(), f"{folder}/test_{module.stem}.py"}, []
    importing = {dotted(root, each) for each in (module, *importers(root, module))}
    tests = files_of_tests(root)
    for name in tests:
        if name not in own and not name.startswith(LONG) and importing & imported(root, root / name):
            others.append((Path(name).parent.as_posix() != folder, len(imported(root, root / name)), name))
    groups = [[name for name in tests if name in own], [name for *_, name in sorted(others)[:MOST]]]
    return [group for group in groups if group]
