"""Small faults put into the product one by one, to see which of them its tests notice: ``python -m tests.mutation``.

Every room (a folder of modules) gets a seeded sample of mutants. For each the tests that execute its line are run,
fastest first, until one fails (:mod:`tests.executed_lines` records them once); that test must pass without the mutant.
Recording takes longer than the quick tests; ``--near`` begins at once, with fewer tests.
All of it happens in a copy of the tree, so that no mutant stays behind. A mutant that exceeds the time limit counts as
killed, and is shown.

Seeds whose survivors chose tests are written down below: any other seed is a judgement.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from tests.executed_lines import PRODUCT, ExecutedLines, copied, environment, record
from tests.nearby_tests import nearby
from tests.prepared_pytest import PreparedPytest

ROOT = Path(__file__).parents[1]
SEEDS_WORKED_ON: tuple[int, ...] = (
    11, 100, 101, 103, 2027, 2028, 5101, 5102, 5103, 6113, 7001, 7002, 9241, 31001, 31002, 31003, 40417, 86028,
    120001, 120003, 260123, 515151, 730211, 880001, 880002, 880003, 884407, 990417, 5590231, 7310931, 1795592331,
    1795600001, 73310261, 9988776655, 20261126164, 20261126233, 20261126939, 20261127004, 20261130011, 20261130301,
)  # fmt: skip
#: Seconds that all tests of a mutant may take; each test has a limit of its own besides.
LIMIT = 1800.0
#: Operators whose faults change nothing here: names are compared by ``is`` with what exists once (None, enumerations).
SAME = ("core/ReplaceComparisonOperator_Is_Eq", "core/ReplaceComparisonOperator_IsNot_NotEq")
#: With a literal these change nothing where Python keeps the value once; elsewhere the linter refuses them (F632).
SAME_WITH_LITERAL = ("core/ReplaceComparisonOperator_Eq_Is", "core/ReplaceComparisonOperator_NotEq_IsNot")
#: From this size on a constant of a module is as good with one more or less.
SHARP = 100
#: From this size on so is a time limit in seconds, and the length of what a message quotes.
GENEROUS = 10
DATACLASS_FORM = ("frozen", "slots", "kw_only", "repr")
DECORATORS_WITHOUT_BEHAVIOUR = ("cache", "lru_cache", "final", "override", "overload", "runtime_checkable")
#: So many tests, the fastest, are tried first: most faults need no more.
FEW = 60


@dataclass(frozen=True)
class Mutant:
    """One fault: a place in a module and what is done to it, in the words of cosmic-ray."""

    module: Path
    operator: str
    occurrence: int

    def apply(self, text: str) -> str:
        """The module's text with the fault."""
        from cosmic_ray.mutating import mutate_code  # an extra, which the quick tests do without
        from cosmic_ray.plugins import get_operator

        mutated = mutate_code(text, get_operator(self.operator)(), self.occurrence)
        if mutated is None:
            raise ValueError(f"{self.module} has no place {self.occurrence} for {self.operator}")
        return str(mutated)

    def differs(self) -> bool:
        """Whether the fault can be made and Python reads another module then.

        One that it cannot read every test would notice, and none where it reads the same: 1e18 and one more are equal.
        """
        text = self.module.read_text(encoding="utf-8")
        try:
            return ast.dump(ast.parse(self.apply(text))) != ast.dump(ast.parse(text))
        except (SyntaxError, AttributeError):  # cosmic-ray fails at ``except (module.Error, ...)``
            return False


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: ``killed``, ``timeout`` or ``survived``, or ``unjudged`` where its tests fail anyway."""

    mutant: Mutant
    outcome: str
    change: str


def rooms(root: Path) -> list[str]:
    """Every folder of the product that holds modules with statements of their own, migrations aside."""
    folders = {path.parent.relative_to(root) for top in PRODUCT for path in modules(root / top, "**/*.py")}
    return sorted(folder.as_posix() for folder in folders if "migrations" not in folder.parts)


def modules(folder: Path, pattern: str = "*.py") -> list[Path]:
    """Modules of a folder; one without a function has nothing to put a fault into."""
    return [path for path in sorted(folder.glob(pattern)) if "def " in path.read_text(encoding="utf-8")]


def mutants(module: Path) -> list[list[Mutant]]:
    """All mutants of a module, by place, but those that :func:`_silent` and :data:`SAME` say change nothing."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    text = module.read_text(encoding="utf-8")
    tree = ast.parse(text)
    silent = [(_begin(each), _end(each)) for each in _silent(tree)]
    # An operator that removes a decorator stands at its @, one column before its name.
    silent += [((line, column - 1), (line, column)) for (line, column), _ in silent]
    operators = {name: get_operator(name) for name in sorted(operator_names()) if name not in SAME}
    counts: Counter[str] = Counter()
    places: dict[tuple[int, int], list[Mutant]] = {}
    plain = {name: operator() for name, operator in operators.items() if not operator.arguments()}
    for node in ast_nodes(get_ast(text)):
        # The stars among parameters are no products.
        stars = node.type == "operator" and node.parent.type in ("parameters", "param", "lambdef", "argument")
        literal = node.type == "comparison" and any(each.type in ("number", "string") for each in node.children)
        for name, operator in plain.items():
            for begin, _ in operator.mutation_positions(node):
                if (
                    not stars
                    and not (literal and name in SAME_WITH_LITERAL)
                    and not any(first <= begin < last for first, last in silent)
                ):
                    places.setdefault(begin, []).append(Mutant(module, name, counts[name]))
                counts[name] += 1
    return [places[place] for place in sorted(places)]


def _silent(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    """The parts of a module whose faults no behaviour can show.

    Annotations and what only a type checker reads; what a dataclass forbids or how it is stored; decorators that
    remember results or are read by a type checker; the strictness of ``zip``, which checks the programmer; and numbers
    of which a change by one is less than they were chosen to: of a hundred and more where they are constants of a
    module, alone or in a table, and of ten and more where they are seconds of a ``timeout`` or the length
    of what a message quotes.
    """
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            parts = list(ast.walk(statement.value))
            if not any(isinstance(each, ast.Call) for each in parts):
                yield from (each for each in parts if _large(each, SHARP))
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "timeout" and _large(node.value, GENEROUS):
            yield node.value
        if isinstance(node, ast.JoinedStr):
            cuts = (each.upper for each in ast.walk(node) if isinstance(each, ast.Slice))
            yield from (each for each in cuts if _large(each, GENEROUS))
        found = (getattr(node, "annotation", None), getattr(node, "returns", None))
        yield from (each for each in found if isinstance(each, ast.expr))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                if _name(decorator) == "dataclass" and isinstance(decorator, ast.Call):
                    yield from (each.value for each in decorator.keywords if each.arg in DATACLASS_FORM)
                elif _name(decorator) in DECORATORS_WITHOUT_BEHAVIOUR:
                    yield decorator
        if isinstance(node, ast.ClassDef) and "Protocol" in {_name(base) for base in node.bases}:
            yield from node.body
        if isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING":
            yield from [node] if not node.orelse else node.body
        if isinstance(node, ast.Call) and _name(node.func) == "zip":
            yield from (each.value for each in node.keywords if each.arg == "strict")


def _large(node: ast.AST | None, least: float) -> TypeGuard[ast.Constant]:
    """Whether a node is a number of at least this size."""
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and node.value >= least


def _name(node: ast.expr) -> str:
    """The last name of ``name``, ``module.name``, ``name[...]`` or of a call of one of these."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    if isinstance(node, ast.Subscript):
        return _name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _begin(node: ast.expr | ast.stmt) -> tuple[int, int]:
    """Where a node begins, with its decorators."""
    first, *_ = *getattr(node, "decorator_list", ()), node
    return first.lineno, first.col_offset - (first is not node)


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def drawn(root: Path, room: str, sample: int, seed: int) -> list[Mutant]:
    """A sample of a room's mutants: places drawn evenly over its modules, then one of each that differs."""
    source = random.Random(f"{seed} {room}")
    places = [place for module in modules(root / room) for place in mutants(module)]
    order = source.sample(places, len(places))
    differing = (next(filter(Mutant.differs, source.sample(place, len(place))), None) for place in order)
    return list(itertools.islice((mutant for mutant in differing if mutant is not None), sample))


def changed_line(before: str, after: str) -> int:
    """The first line that differs, from 0."""
    old, new = before.splitlines(), after.splitlines()
    differing = (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other)
    return next(differing, min(len(old), len(new)) - 1)


def change(root: Path, mutant: Mutant, before: str, after: str) -> str:
    """A mutant as one line: the module, the line's number, and its first line that differs, before and after."""
    old, new, at = before.splitlines(), after.splitlines(), changed_line(before, after)
    return f"{mutant.module.relative_to(root)}:{at + 1}: {old[at].strip()}  ->  {new[at].strip()}"


def judge(
    root: Path, chosen: Sequence[str], sample: int, seed: int, near: bool = False
) -> Iterator[tuple[str, Verdict]]:
    """Put a sample of faults into each room of a copy of the tree, one at a time, and say what became of each.

    The tests of a fault are those recorded to execute its line; where ``near``, those of :mod:`tests.nearby_tests`.
    """
    recorded = None if near else ExecutedLines(root)
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(root, folder)
        with PreparedPytest(copy, environment(copy)) as prepared:
            sound: dict[str, bool] = {}
            for room in chosen:
                for mutant in drawn(copy, room, sample, seed):
                    before = mutant.module.read_text(encoding="utf-8")
                    after = mutant.apply(before)
                    if recorded is None:
                        groups = nearby(copy, mutant.module)
                    else:
                        at = changed_line(before, after)
                        tests = recorded.tests(root / mutant.module.relative_to(copy), at + 1)
                        groups = [group for group in (tests[:FEW], tests[FEW:]) if group]
                    mutant.module.write_text(after, encoding="utf-8")
                    outcome, failed = "survived", ""
                    for group in groups:
                        if outcome == "survived":
                            outcome, failed = prepared.run(group, LIMIT)
                    mutant.module.write_text(before, encoding="utf-8")
                    line = change(copy, mutant, before, after) + ("" if groups else "  (no test executes it)")
                    if outcome == "killed" and failed:
                        if failed not in sound:  # Twice, since on a busy machine a test may run out of time.
                            sound[failed] = any(prepared.run([failed], LIMIT)[0] == "survived" for _ in range(2))
                        if not sound[failed]:
                            outcome = "unjudged"
                            line += f"  ({failed} fails without it)"
                    yield room, Verdict(mutant, outcome, line)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the rooms that are named, or all; leave with 1 where tests fail without any mutant."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=3, help="mutants in each room")
    parser.add_argument("--rooms", nargs="+", default=rooms(ROOT), metavar="ROOM", help="such as metasched/store/files")
    parser.add_argument("--workers", type=int, default=2, help="processes that record which tests execute which line")
    tests = parser.add_mutually_exclusive_group()
    tests.add_argument("--recorded", action="store_true", help="run only tests recorded so far; others might kill more")
    tests.add_argument("--near", action="store_true", help="record none, and run few tests that import the module")
    options = parser.parse_args(arguments)
    if unknown := sorted({room.rstrip("/") for room in options.rooms} - set(rooms(ROOT))):
        parser.error(f"--rooms names {unknown[0]}, expected a folder of modules such as {rooms(ROOT)[0]}")
    if options.sample < 1:
        parser.error(f"--sample is {options.sample}, expected at least 1")
    if not (options.recorded or options.near):
        record(ROOT, options.workers)
    counts: dict[str, Counter[str]] = {}
    chosen = [room.rstrip("/") for room in options.rooms]
    for room, verdict in judge(ROOT, chosen, options.sample, options.seed, options.near):
        counts.setdefault(room, Counter())[verdict.outcome] += 1
        print(f"{verdict.outcome:9} {verdict.change}", flush=True)
    total = sum(counts.values(), Counter[str]())
    for room, each in [*counts.items(), ("all", total)]:
        killed = each["killed"] + each["timeout"]
        judged = killed + each["survived"]
        share = f"{killed / judged:4.0%}" if judged else "   -"
        print(f"{room:40} {killed:4} killed {each['survived']:4} survived {share}")
    used = "worked on" if options.seed in SEEDS_WORKED_ON else "not worked on"
    print(f"seed {options.seed}, {used}; {total['timeout']} killed by their time limit, {total['unjudged']} unjudged")
    return int(total["unjudged"] > 0)


if __name__ == "__main__":
    sys.exit(main())
