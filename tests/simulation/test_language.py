"""Expressions and statements of applications are what Python makes of them, for every rank by itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from metasched.records import InputError
from metasched.simulation.expressions import Scope
from metasched.simulation.language import DEEPEST, LONGEST, parse
from metasched.simulation.values import LARGEST, LARGEST_WHOLE, Affine, each
from tests.simulation.test_engine import ended

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs, "int": int, "ceil": math.ceil, "floor": math.floor, "sqrt": math.sqrt, "log2": math.log2, "min": min,
    "max": max,
}  # fmt: skip
NAMES = {"n": 5, "x": 2.5, "below": -3}


def expressions() -> st.SearchStrategy[tuple[str, str]]:
    """Texts of the language, each with what Python calls the same: ``and`` and ``or`` tell a truth, not an operand."""
    leaves = st.sampled_from(["rank", "size", "n", "x", "below", "0", "1", "2", "3.5", "len(w)"]).map(
        lambda it: (it, it)
    )

    def wider(inner: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[tuple[str, str]]:
        operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!="])
        two = st.tuples(inner, operators, inner).map(
            lambda it: tuple(f"({it[0][at]} {it[1]} {it[2][at]})" for at in (0, 1))
        )
        powers = st.tuples(inner, st.sampled_from(["2", "-1", "0.5", "rank"])).map(
            lambda it: tuple(f"({it[0][at]} ** {it[1]})" for at in (0, 1))
        )
        chains = st.tuples(inner, inner, inner).map(
            lambda it: tuple(f"({it[0][at]} < {it[1][at]} <= {it[2][at]})" for at in (0, 1))
        )
        both = st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda it: (f"({it[0][0]} {it[1]} {it[2][0]})", f"(bool({it[0][1]}) {it[1]} bool({it[2][1]}))")
        )
        ones = st.tuples(st.sampled_from(["-", "+", "not "]), inner).map(
            lambda it: tuple(f"({it[0]}{it[1][at]})" for at in (0, 1))
        )
        called = st.tuples(st.sampled_from(["abs", "int", "ceil", "floor", "sqrt", "log2"]), inner).map(
            lambda it: tuple(f"{it[0]}({it[1][at]})" for at in (0, 1))
        )
        several = st.tuples(st.sampled_from(["min", "max"]), inner, inner, inner).map(
            lambda it: tuple(f"{it[0]}({it[1][at]}, {it[2][at]}, {it[3][at]})" for at in (0, 1))
        )
        return two | powers | chains | both | ones | called | several  # type: ignore[return-value]

    return st.recursive(leaves, wider, max_leaves=6)


def of_ranks(text: str, ranks: range, size: int) -> list[Any]:
    """The value of an expression of the language for each rank."""
    instruction, _ = parse(f"n = 1\nx = 1\nbelow = 1\ndef w():\n    y = {text}\n").code["w"]
    scope = Scope({**NAMES, "rank": Affine(0, 1), "size": size}, ranks, {"w": size})
    found = each(instruction.values[0](scope), ranks)
    return np.broadcast_to(found, len(ranks)).tolist()


@settings(max_examples=400)
@given(expressions(), st.integers(0, 3), st.integers(2, 6), st.integers(1, 3))
def test_an_expression_has_the_value_of_python_at_each_rank(
    texts: tuple[str, str], first: int, count: int, step: int
) -> None:
    ranks, size = range(first, first + count * step, step), first + count * step
    told, asked = texts
    try:
        expected = [
            eval(asked, {**FUNCTIONS, **NAMES, "rank": rank, "size": size, "len": lambda _: size, "w": None})
            for rank in ranks
        ]
    except (ArithmeticError, ValueError, TypeError):
        assume(False)
    assume(all(isinstance(each, bool | int | float) and abs(each) < 1e12 for each in expected))
    try:
        found = of_ranks(told, ranks, size)
    except ArithmeticError:
        # A part that Python does not reach for one rank is computed for all of them; a whole number has an end.
        assume(False)
    assert found == pytest.approx([float(each) for each in expected], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("rank == 2 or rank == 4", [0, 0, 1, 0, 1]),
        ("not rank", [1, 0, 0, 0, 0]),
        ("+rank", [0, 1, 2, 3, 4]),
        ("1 and rank", [0, 1, 1, 1, 1]),
        ("0 or 0", [0] * 5),
        ("1 or 1 / 0", [1] * 5),
        ("0 and 1 / 0", [0] * 5),
        ("int(7.9) + ceil(1.1) + floor(1.9) + sqrt(9) + log2(8)", [16] * 5),
        ("int(rank / 2)", [0, 0, 1, 1, 2]),
        ("ceil(rank / 2)", [0, 1, 1, 2, 2]),
        ("floor(rank / 2)", [0, 0, 1, 1, 2]),
        ("sqrt(rank * rank)", [0, 1, 2, 3, 4]),
        ("log2(2 ** rank)", [0, 1, 2, 3, 4]),
        ("abs(rank - 2)", [2, 1, 0, 1, 2]),
        ("max(rank, 2)", [2, 2, 2, 3, 4]),
        ("min(3, rank, 2)", [0, 1, 2, 2, 2]),
        ("rank * rank", [0, 1, 4, 9, 16]),
        ("2 ** -rank", [1, 0.5, 0.25, 0.125, 0.0625]),
        ("2 ** -1", [0.5] * 5),
        ("2 ** 61", [2**61] * 5),
        ("rank < 5", [1] * 5),
        ("rank != 5", [1] * 5),
        ("rank == -1", [0] * 5),
        ("rank == 0", [1, 0, 0, 0, 0]),
        ("rank != 4", [1, 1, 1, 1, 0]),
        ("rank >= 4", [0, 0, 0, 0, 1]),
        ("rank - rank", [0] * 5),
    ],
)
def test_values_by_hand(text: str, values: list[float]) -> None:
    assert of_ranks(text, range(5), 5) == pytest.approx(values)


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(5):\n        compute(1000 * i)",
        "for i in range(2, 9, 3):\n        compute(1000 * i)",
        "for i in range(9, 2, -2):\n        compute(1000 * i)",
        "for i in range(3, 3):\n        compute(1000)",
        "for i in range(2, 4):\n        compute(1000 * i)\n    compute(100 * i)",
        "i = 0\n    while i < 5:\n        i += 1\n        if i == 2:\n            continue\n"
        "        if i == 4:\n            break\n        compute(1000 * i)",
        "for i in range(3):\n        for j in range(4):\n            if j > i:\n                break\n"
        "            compute(1000 + i * j)\n        compute(10)",
        "if rank == 0:\n        return\n    compute(5000)",
        "x = 3\n    x *= 2\n    x -= 1\n    compute(1000 * x)",
        "if rank % 2:\n        compute(3000)\n    elif rank == 2:\n        compute(4000)\n    else:\n        pass",
        "'some words'\n    compute(1000 * (rank + 1), 2000)\n    compute(10, data * 3)\n    compute(100, factor=4)",
    ],
)
def test_a_process_computes_what_the_same_function_in_python_would(body: str) -> None:
    """CPU computes 1e9 operations a second: the whole time is their sum."""
    text = f"def w():\n    {body}\n"
    expected = []
    for rank in range(4):
        done: list[float] = []

        def compute(data: float, operations: float | None = None, factor: float = 1.0, to: list[float] = done) -> None:
            to.append((data if operations is None else operations) * factor)

        scope = {"compute": compute, "rank": rank, "size": 4, "data": 10}
        exec(text, scope)
        scope["w"]()  # type: ignore[operator]
        expected.append(sum(done) / 1e9)
    assert ended(text, 4) == pytest.approx(expected, rel=1e-12)
    assert ended(text, 4, together=False) == pytest.approx(expected, rel=1e-12)


OPEN, TAKEN = "def w():\n    ", "the name is taken"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "a.app: has no label, expected def LABEL():"),
        ("#" * (LONGEST + 1), f"a.app: has {LONGEST + 1} characters, expected at most {LONGEST}"),
        ("def w(:\n", "a.app, line 1: invalid syntax"),
        ("n = 9 ** 9 ** 9 ** 9\ndef w():\n    pass\n", "a.app, line 1: a number is too large"),
        ("def w():\n    pass\ndef w():\n    pass\n", "a.app, line 3: label w is taken"),
        ("def rank():\n    pass\n", "a.app, line 1: label rank is taken"),
        ("def w(a):\n    pass\n", "a.app, line 1: label w takes arguments or decorators, expected none"),
        ("@x\ndef w():\n    pass\n", "a.app, line 2: label w takes arguments or decorators, expected none"),
        ("import os\n", "a.app, line 1: import stands outside a function, expected def LABEL(): or NAME = value"),
        ("a = b = 1\n", "a.app, line 1: assign stands outside a function, expected def LABEL(): or NAME = value"),
        ("'words'\nfoo()\n", "a.app, line 2: expr stands outside a function, expected def LABEL(): or NAME = value"),
        ("w = 1\ndef w():\n    pass\n", "a.app, line 2: w is a label and a variable"),
        ("n = 10 ** 400\ndef w():\n    pass\n", "a.app, line 1: a number is too large"),
        ("_n = 1\ndef w():\n    pass\n", f"a.app, line 1: _n cannot be set: {TAKEN}"),
        ("n = 1 / 0\ndef w():\n    pass\n", "a.app, line 1: division by zero"),
        ("n = 1\nm = 1 % 0\ndef w():\n    pass\n", "a.app, line 2: division by zero"),
        ("n = m\ndef w():\n    pass\n", "a.app, line 1: m has no value"),
        (f"{OPEN}size = 2\n", f"a.app, line 2: size cannot be set: {TAKEN}"),
        (f"{OPEN}w = 2\n", "a.app, line 2: w cannot be set: it is a label"),
        (f"{OPEN}for w in range(2):\n        pass\n", "a.app, line 2: w cannot be set: it is a label"),
        (f"{OPEN}for data in range(2):\n        pass\n", f"a.app, line 2: data cannot be set: {TAKEN}"),
        (f"{OPEN}for i in [1]:\n        pass\n", "a.app, line 2: for goes over something else, expected range(...)"),
        (f"{OPEN}for i in other(1):\n        pass\n",
         "a.app, line 2: for goes over something else, expected range(...)"),
        (f"{OPEN}for i in range():\n        pass\n", "a.app, line 2: range takes one to three numbers"),
        (f"{OPEN}for i in range(1, 2, 3, 4):\n        pass\n", "a.app, line 2: range takes one to three numbers"),
        (f"{OPEN}for i in range(stop=2):\n        pass\n", "a.app, line 2: range takes one to three numbers"),
        (f"{OPEN}for i, j in range(2):\n        pass\n", "a.app, line 2: for is not of the language"),
        (f"{OPEN}for i in range(2):\n        pass\n    else:\n        pass\n",
         "a.app, line 2: for is not of the language"),
        (f"{OPEN}while 0:\n        pass\n    else:\n        pass\n", "a.app, line 2: while is not of the language"),
        (f"{OPEN}return 3\n", "a.app, line 2: return is not of the language"),
        (f"{OPEN}x[0] = 3\n", "a.app, line 2: assign is not of the language"),
        (f"{OPEN}x[0] += 3\n", "a.app, line 2: augassign is not of the language"),
        (f"{OPEN}3\n", "a.app, line 2: expr is not of the language"),
        (f"{OPEN}break\n", "a.app, line 2: break stands outside a loop"),
        (f"{OPEN}pass\n    continue\n", "a.app, line 3: continue stands outside a loop"),
        (f"{OPEN}w.compute(1)\n",
         "a.app, line 2: w.compute is no block, expected one of compute, send, recv, read, write, bcast, scatter, "
         "gather, alltoall, barrier"),
        (f"{OPEN}compute()\n", "a.app, line 2: compute takes data, operations, factor"),
        (f"{OPEN}compute(1, 2, 3, 4)\n", "a.app, line 2: compute takes data, operations, factor"),
        (f"{OPEN}compute(1, data=2)\n",
         "a.app, line 2: compute does not take data, expected data, operations, factor"),
        (f"{OPEN}compute(1, speed=2)\n",
         "a.app, line 2: compute does not take speed, expected data, operations, factor"),
        (f"{OPEN}send(w[0])\n", "a.app, line 2: send takes to, data"),
        (f"{OPEN}recv()\n", "a.app, line 2: recv takes source"),
        (f"{OPEN}send(3, 1)\n",
         "a.app, line 2: 3 is no process, expected LABEL[rank] with a label of the application"),
        (f"{OPEN}recv(v[0])\n",
         "a.app, line 2: v[0] is no process, expected LABEL[rank] with a label of the application"),
        (f"{OPEN}bcast()\n", "a.app, line 2: bcast takes a data size and perhaps the labels that take part"),
        (f"{OPEN}bcast(data=1)\n", "a.app, line 2: bcast takes a data size and perhaps the labels that take part"),
        (f"{OPEN}barrier(labels=w)\n", "a.app, line 2: barrier takes perhaps the labels that take part"),
        (f"{OPEN}barrier(3)\n", "a.app, line 2: 3 is no label that takes part in barrier"),
        (f"{OPEN}bcast(1, v)\n", "a.app, line 2: v is no label that takes part in bcast"),
        (f"{OPEN}barrier(v)\ndef v():\n    pass\n",
         "a.app, line 2: barrier is called by w, which is not among those that take part"),
        (f"{OPEN}compute(w)\n",
         "a.app, line 2: w is a label, expected a number: len(w), or w[rank] in send and recv"),
        (f"{OPEN}compute(data)\n", "a.app, line 2: data is no variable"),
        (f"{OPEN}compute(1, 2, data)\n", "a.app, line 2: data is no variable"),
        (f"{OPEN}compute(min)\n", "a.app, line 2: min is no variable"),
        (f"{OPEN}compute(len(3))\n", "a.app, line 2: len(3) is not of the language"),
        (f"{OPEN}compute(len(w, w))\n",
         "a.app, line 2: w is a label, expected a number: len(w), or w[rank] in send and recv"),
        (f"{OPEN}compute(min(1))\n", "a.app, line 2: min(1) is not of the language"),
        (f"{OPEN}compute(sqrt(1, 2))\n", "a.app, line 2: sqrt(1, 2) is not of the language"),
        (f"{OPEN}compute(sqrt(x=1))\n", "a.app, line 2: sqrt(x=1) is not of the language"),
        (f"{OPEN}compute('x')\n", "a.app, line 2: 'x' is not of the language"),
        (f"{OPEN}x = [1]\n", "a.app, line 2: [1] is not of the language"),
        (f"{OPEN}x = n.real\n", "a.app, line 2: n.real is not of the language"),
        (f"{OPEN}x = lambda: 1\n", "a.app, line 2: lambda: 1 is not of the language"),
        (f"{OPEN}compute(~1)\n", "a.app, line 2: ~1 is not of the language"),
        (f"{OPEN}compute(1 << 2)\n", "a.app, line 2: 1 << 2 is not of the language"),
        (f"{OPEN}compute(1 in 2)\n", "a.app, line 2: 1 in 2 is not of the language"),
        (f"{OPEN}compute(1{'0' * 400})\n", "a.app, line 2: a number is too large"),
        (f"{OPEN}compute({'-' * DEEPEST}1)\n", "a.app, line 2: is nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_not_of_the_language_is_refused_with_its_line(text: str, line: str) -> None:
    with pytest.raises(InputError) as refused:
        parse(text, "a.app")
    assert str(refused.value) == line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{OPEN}x = 1\0\n", r"^a\.app: .*null byte"),
        (f"{OPEN}x = {'(' * 90}1{')' * 90}{' + 1' * 90}\n", "nested too deeply|too many"),
    ],
)
def test_what_python_itself_does_not_parse_is_refused(text: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        parse(text, "a.app")


def test_what_is_nested_as_deeply_as_can_be_and_as_long_is_of_the_language() -> None:
    assert parse(f"{OPEN}compute({'-' * (DEEPEST - 2)}1)\n").code["w"]
    assert parse(f"{OPEN}pass\n".ljust(LONGEST, "#")).code["w"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{LARGEST_WHOLE}", LARGEST_WHOLE),
        (f"{LARGEST_WHOLE} + 1", float(LARGEST_WHOLE + 1)),
        (f"-{LARGEST_WHOLE} - 1", float(-LARGEST_WHOLE - 1)),
        (f"{LARGEST!r}", LARGEST),
        (f"-{LARGEST!r}", -LARGEST),
        ("2 ** 62", 2.0**62),
        ("True", True),
    ],
)
def test_a_whole_number_that_is_too_large_goes_on_as_a_fraction(text: str, value: float) -> None:
    found = parse(f"n = {text}\ndef w():\n    pass\n").variables["n"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", [f"{LARGEST!r} * 2", f"-{LARGEST!r} * 2", "1e308 * 10 - 1e308 * 10", "9 ** 9 ** 9"])
def test_a_variable_that_is_too_large_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^application(, line 1)?: a number is too large"):
        parse(f"n = {text}\ndef w():\n    pass\n")
