"""The language of applications: Python syntax, one function for each label, and blocks instead of real work.

A text is parsed by :mod:`ast` and becomes instructions that :mod:`metasched.simulation.engine` interprets; nothing of
it is ever handed to Python. There are numbers, variables, arithmetic, comparisons, ``and``, ``or``, ``not``, ``if``,
``while``, ``for ... in range(...)``, ``break``, ``continue``, ``pass`` and ``return``; ``rank`` and ``size`` (of the
own label), ``len(label)``, ``min``, ``max``, ``abs``, ``int``, ``ceil``, ``floor``, ``sqrt``, ``log2``; and the blocks.
Assignments outside functions are variables with what they are where nobody sets them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from metasched.records import InputError
from metasched.simulation.application import COLLECTIVES, Application, Instruction
from metasched.simulation.expressions import (
    FUNCTIONS,
    Expression,
    Scope,
    applied,
    conjunction,
    constant,
    disjunction,
    of_two,
    truth,
)
from metasched.simulation.values import BINARY, Value, settled, why

#: Longest text, and its deepest nesting.
LONGEST, DEEPEST = 200_000, 60
#: Blocks of one process, and the names of what they take.
BLOCKS = {
    "compute": ("data", "operations", "factor"),
    "send": ("to", "data"),
    "recv": ("source",),
    "read": ("data",),
    "write": ("data",),
}
RESERVED = {"rank", "size", "data", "min", "max", "len", "range", *FUNCTIONS, *BLOCKS, *COLLECTIVES}


def parse(text: str, name: str = "application") -> Application:
    r"""Parse the text of an application.

    Raises
    ------
    InputError : for the first thing that is not of the language, with its line.

    Examples
    --------
    >>> parse("rounds = 3\ndef worker():\n    for i in range(rounds):\n        compute(1e6)\n").variables
    {'rounds': 3}
    >>> parse("def worker():\n    import os\n", "a.app")
    Traceback (most recent call last):
    metasched.records.errors.InputError: a.app, line 2: import is not of the language
    """
    if len(text) > LONGEST:
        raise InputError(f"has {len(text)} characters, expected at most {LONGEST}", where=name)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise InputError(f"{error.msg}", where=f"{name}, line {error.lineno}" if error.lineno else name) from None
    except (ValueError, RecursionError, MemoryError):
        raise InputError("cannot be parsed: it holds a null byte, or is nested too deeply", where=name) from None
    variables: dict[str, float] = {}
    functions: dict[str, ast.FunctionDef] = {}
    try:
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                if node.name in functions or node.name in RESERVED:
                    raise _Wrong(node, f"label {node.name} is taken")
                arguments = node.args
                if ast.unparse(arguments) or node.decorator_list:
                    raise _Wrong(node, f"label {node.name} takes arguments or decorators, expected none")
                functions[node.name] = node
            elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                value = _Compiler({}, node.targets[0].id).expression(node.value)
                try:
                    variables[_free(node.targets[0])] = value(Scope(variables, range(1), {}))
                except ArithmeticError as error:
                    raise _Wrong(node, why(error)) from None
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                raise _Wrong(node, f"{_word(node)} stands outside a function, expected def LABEL(): or NAME = value")
        if not functions:
            raise InputError("has no label, expected def LABEL():", where=name)
        if taken := sorted(set(functions) & set(variables)):
            raise _Wrong(functions[taken[0]], f"{taken[0]} is a label and a variable")
        code, used = {}, set(variables)
        for label, function in functions.items():
            compiler = _Compiler(functions, label)
            code[label] = compiler.function(function)
            used |= compiler.used
    except _Wrong as wrong:
        raise InputError(wrong.message, where=f"{name}, line {getattr(wrong.node, 'lineno', 1)}") from None
    except RecursionError:
        raise InputError("is nested too deeply", where=name) from None
    return Application(name, code, variables, frozenset(used))


class _Wrong(Exception):  # noqa: N818 - never leaves this module
    def __init__(self, node: ast.AST, message: str) -> None:
        super().__init__(message)
        self.node, self.message = node, message


def _word(node: ast.AST) -> str:
    return type(node).__name__.lower()


def _free(name: ast.Name) -> str:
    if name.id in RESERVED or name.id.startswith("_"):
        raise _Wrong(name, f"{name.id} cannot be set: the name is taken")
    return name.id


class _Compiler:
    """Compiles one function of an application, a label, into instructions."""

    def __init__(self, labels: Mapping[str, object], own: str) -> None:
        self.labels, self.own = labels, own
        self.code: list[Instruction] = []
        self.used: set[str] = set()
        self.loops: list[tuple[int, list[int]]] = []
        self.depth = 0

    def function(self, node: ast.FunctionDef) -> tuple[Instruction, ...]:
        """Compile the body of a label, with the instruction that ends it."""
        self.block(node.body)
        self.code.append(Instruction("end", node.end_lineno or node.lineno))
        return tuple(self.code)

    def block(self, body: list[ast.stmt]) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _Wrong(body[0], "is nested too deeply")
        for node in body:
            self.statement(node)
        self.depth -= 1

    def statement(self, node: ast.stmt) -> None:
        line = node.lineno
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self.assign(node.targets[0], self.expression(node.value), line)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            now = ast.BinOp(ast.copy_location(ast.Name(node.target.id), node), node.op, node.value)
            self.assign(node.target, self.expression(ast.copy_location(now, node)), line)
        elif isinstance(node, ast.If):
            unless = self.emit(Instruction("unless", line, values=(self.expression(node.test),)))
            self.block(node.body)
            if node.orelse:
                over = self.emit(Instruction("jump", line))
                self.aim(unless)
                self.block(node.orelse)
                self.aim(over)
            else:
                self.aim(unless)
        elif isinstance(node, ast.While) and not node.orelse:
            top = len(self.code)
            unless = self.emit(Instruction("unless", line, values=(self.expression(node.test),)))
            self.loop(node.body, top, [unless], line)
        elif isinstance(node, ast.For) and not node.orelse and isinstance(node.target, ast.Name):
            self.for_loop(node, line)
        elif isinstance(node, (ast.Break, ast.Continue)):
            if not self.loops:
                raise _Wrong(node, f"{_word(node)} stands outside a loop")
            top, leaving = self.loops[-1]
            place = self.emit(Instruction("jump", line, target=top))
            if isinstance(node, ast.Break):
                leaving.append(place)
        elif isinstance(node, ast.Return) and node.value is None:
            self.emit(Instruction("end", line))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.call(node.value, line)
        elif not isinstance(node, ast.Pass) and not (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ):
            raise _Wrong(node, f"{_word(node)} is not of the language")

    def assign(self, target: ast.Name, value: Expression, line: int) -> None:
        if target.id in self.labels:
            raise _Wrong(target, f"{target.id} cannot be set: it is a label")
        self.emit(Instruction("set", line, _free(target), (value,)))

    def for_loop(self, node: ast.For, line: int) -> None:
        call = node.iter
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
            raise _Wrong(node, "for goes over something else, expected range(...)")
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise _Wrong(node, "range takes one to three numbers")
        ends = [self.expression(each) for each in call.args]
        zero, one = constant(0), constant(1)
        first, last, step = ((zero, ends[0], one) if len(ends) == 1 else (*ends, one))[:3]
        slot = f"_{len(self.code)}"
        self.emit(Instruction("loop", line, slot, (first, last, step)))
        assert isinstance(node.target, ast.Name)  # noqa: S101 - checked before
        if node.target.id in self.labels:
            raise _Wrong(node, f"{node.target.id} cannot be set: it is a label")
        self.emit(Instruction("next", line, slot, labels=(_free(node.target),)))
        top = len(self.code) - 1
        self.loop(node.body, top, [top], line)

    def loop(self, body: list[ast.stmt], top: int, leaving: list[int], line: int) -> None:
        self.loops.append((top, leaving))
        self.block(body)
        self.loops.pop()
        self.emit(Instruction("jump", line, target=top))
        for place in leaving:
            self.aim(place)

    def emit(self, instruction: Instruction) -> int:
        self.code.append(instruction)
        return len(self.code) - 1

    def aim(self, place: int) -> None:
        """Set the target of a jump to the next instruction."""
        at = self.code[place]
        self.code[place] = Instruction(at.kind, at.line, at.name, at.values, len(self.code), at.labels)

    def call(self, node: ast.Call, line: int) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in COLLECTIVES:
            self.collective(node, name, line)
            return
        if name not in BLOCKS:
            known = ", ".join([*BLOCKS, *COLLECTIVES])
            raise _Wrong(node, f"{ast.unparse(node.func)[:40]} is no block, expected one of {known}")
        taken = dict(zip(BLOCKS[name], node.args, strict=False))
        for keyword in node.keywords:
            if keyword.arg not in BLOCKS[name] or keyword.arg in taken:
                raise _Wrong(node, f"{name} does not take {keyword.arg}, expected {', '.join(BLOCKS[name])}")
            taken[str(keyword.arg)] = keyword.value
        least = {"compute": 1}.get(name, len(BLOCKS[name]))
        if len(node.args) > len(BLOCKS[name]) or len(taken) < least:
            raise _Wrong(node, f"{name} takes {', '.join(BLOCKS[name])}")
        other = ""
        if name in ("send", "recv"):
            other, index = self.process(taken.pop(BLOCKS[name][0]))
            values: tuple[Expression, ...] = (index, *(self.expression(each) for each in taken.values()))
        elif name == "compute":
            data = self.expression(taken["data"])
            values = (
                data,
                self.expression(taken["operations"], data=True) if "operations" in taken else data,
                self.expression(taken["factor"]) if "factor" in taken else constant(1.0),
            )
        else:
            values = (self.expression(taken["data"]),)
        self.emit(Instruction(name, line, other, values))

    def collective(self, node: ast.Call, name: str, line: int) -> None:
        arguments = list(node.args)
        if node.keywords or (COLLECTIVES[name] and not arguments):
            raise _Wrong(
                node, f"{name} takes {'a data size and ' * COLLECTIVES[name]}perhaps the labels that take part"
            )
        values = (self.expression(arguments.pop(0)),) if COLLECTIVES[name] else ()
        labels = []
        for each_ in arguments:
            if not (isinstance(each_, ast.Name) and each_.id in self.labels):
                raise _Wrong(node, f"{ast.unparse(each_)[:40]} is no label that takes part in {name}")
            labels.append(each_.id)
        if labels and self.own not in labels:
            raise _Wrong(node, f"{name} is called by {self.own}, which is not among those that take part")
        self.emit(Instruction(name, line, values=values, labels=tuple(sorted(labels)) or (self.own,)))

    def process(self, node: ast.expr) -> tuple[str, Expression]:
        """The label and the rank of ``label[rank]``; a label alone is its first process."""
        if isinstance(node, ast.Name) and node.id in self.labels:
            return node.id, constant(0)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in self.labels:
            return node.value.id, self.expression(node.slice)
        raise _Wrong(
            node, f"{ast.unparse(node)[:40]} is no process, expected LABEL[rank] with a label of the application"
        )

    def expression(self, node: ast.expr, data: bool = False) -> Expression:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _Wrong(node, "is nested too deeply")
        try:
            return self._expression(node, data)
        finally:
            self.depth -= 1

    def _expression(self, node: ast.expr, data: bool) -> Expression:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            try:
                return constant(settled(node.value))
            except ArithmeticError:
                raise _Wrong(node, "a number is too large") from None
        if isinstance(node, ast.Name):
            return self.variable(node, data)
        if isinstance(node, ast.BinOp) and (kind := type(node.op).__name__) in BINARY:
            return of_two(kind, self.expression(node.left, data), self.expression(node.right, data))
        if isinstance(node, ast.UnaryOp):
            inner = self.expression(node.operand, data)
            if isinstance(node.op, ast.USub):
                return of_two("Sub", constant(0), inner)
            if isinstance(node.op, ast.UAdd):
                return inner
            if isinstance(node.op, ast.Not):
                return of_two("Eq", truth(inner), constant(False))
        if isinstance(node, ast.Compare) and all(type(op).__name__ in BINARY for op in node.ops):
            terms = [self.expression(each, data) for each in (node.left, *node.comparators)]
            pairs = zip(node.ops, terms, terms[1:], strict=False)
            return conjunction([of_two(type(op).__name__, one, other) for op, one, other in pairs])
        if isinstance(node, ast.BoolOp):
            parts = [truth(self.expression(each, data)) for each in node.values]
            return conjunction(parts) if isinstance(node.op, ast.And) else disjunction(parts)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            return self.function_call(node, node.func.id, data)
        raise _Wrong(node, f"{ast.unparse(node)[:40]} is not of the language")

    def variable(self, node: ast.Name, data: bool) -> Expression:
        name = node.id
        if name in self.labels:
            raise _Wrong(node, f"{name} is a label, expected a number: len({name}), or {name}[rank] in send and recv")
        if name in RESERVED and not (name in ("rank", "size") or (name == "data" and data)):
            raise _Wrong(node, f"{name} is no variable")
        self.used.add(name)

        def read(scope: Scope) -> Value:
            if name not in scope.names:
                raise ArithmeticError(f"{name} has no value")
            return scope.names[name]

        return read

    def function_call(self, node: ast.Call, name: str, data: bool) -> Expression:
        if (
            name == "len"
            and len(node.args) == 1
            and isinstance(node.args[0], ast.Name)
            and node.args[0].id in self.labels
        ):
            label = node.args[0].id
            return lambda scope: scope.counts[label]
        arguments = [self.expression(each, data) for each in node.args]
        if name in ("min", "max") and len(arguments) > 1:
            total = arguments[0]
            for other in arguments[1:]:
                total = of_two(name, total, other)
            return total
        if name in FUNCTIONS and len(arguments) == 1:
            return applied(name, arguments[0])
        raise _Wrong(node, f"{ast.unparse(node)[:40]} is not of the language")
