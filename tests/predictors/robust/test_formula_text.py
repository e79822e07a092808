"""The formula that is shown is the formula that predicts: its text, evaluated, gives the same times."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasched.predictors.memory.setting_columns import SettingColumns
from metasched.predictors.robust.effects import Effects
from metasched.predictors.robust.formula_text import texts
from metasched.predictors.robust.structure import Numbers, Structure
from metasched.records import Settings


def evaluated(text: str, **values: float | str) -> float:
    """The value of a formula in which factors stand side by side, powers are ^, and a factor may be of one word."""
    text = re.sub(r"\((\S+) if (\S+) is (\S+)\)", lambda m: m[1] if values[m[2]] == m[3] else "1", text)
    text = text.replace("^", "**")
    text = re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", text)
    return float(eval(text, {"exp": math.exp}, values))


#: Exponents with two decimals and amounts with three digits, so that the text rounds nothing.
EXPONENT = st.integers(-300, 300).map(lambda k: k / 100)
POSITIVE = st.integers(0, 200).map(lambda k: k / 100)
AMOUNT = st.sampled_from([math.log(each) for each in (1.0, 2.5, 0.004, 125.0)])


@given(
    st.builds(Numbers, AMOUNT, EXPONENT, st.sampled_from([math.log(0.01), math.log(0.25)]), POSITIVE, POSITIVE, AMOUNT,
              EXPONENT, EXPONENT, POSITIVE, POSITIVE),
    st.sampled_from([(1.0, 1.0, 1.0), (1000.0, 1.0, 90.0), (500.0, 4.0, 10.0)]),
)  # fmt: skip
def test_the_text_of_both_terms_is_what_they_are(numbers: Numbers, middle: tuple[float, float, float]) -> None:
    formula = Structure(numbers, *middle)
    for n, p, cpu, bw in ((700.0, 1.0, 0.5, 90.0), (2000.0, 8.0, 1.0, 40.0), (50.0, 3.0, 0.25, 5.0)):
        said = [evaluated(text, N=n, P=p, cpu=cpu, bw=bw) for text in texts(formula)]
        exact = formula.log_time(*(np.array([each]) for each in (n, p, cpu, bw)))[0]
        # Amounts are shown with three digits, the serial part with two.
        assert math.log(sum(said)) == pytest.approx(exact, abs=0.06)


def with_effects(*settings: Settings, powers: tuple[float, ...], asked: Settings) -> tuple[Structure, Settings]:
    columns = SettingColumns.of(settings, np.log([8.0] * len(settings)))
    made = Numbers(0.0, 2.0, math.log(0.01), 1.0, 1.0, math.log(0.5), 0.5, 0.25, 1.0, 0.0)
    formula = Structure(made, 1000.0, 1.0, 90.0, Effects(columns), powers)
    (row,) = columns.rows([asked]).tolist()
    return replace(formula, setting=tuple(row)), asked


def on(**parameters: float | str) -> Settings:
    return Settings.of(parameters=parameters)


@pytest.mark.parametrize(
    ("settings", "powers", "asked", "values"),
    [
        ((Settings(1), Settings(4)), (0.25, 0.5, math.log(0.1)), Settings(4), {"k": 4.0}),
        ((Settings(1), Settings(4)), (0.25, 0.5, math.log(0.1)), Settings(1), {"k": 1.0}),
        ((Settings(threads=1), Settings(threads=4)), (0.75,), Settings(threads=3), {"threads": 3.0}),
        ((Settings(frequency=1000.0), Settings(frequency=4000.0)), (-0.5,), Settings(frequency=3000.0),
         {"frequency": 3000.0}),
        ((on(steps=10.0), on(steps=1000.0)), (1.5,), on(steps=40.0), {"steps": 40.0}),
        ((on(shift=-1.0), on(shift=3.0)), (0.5,), on(shift=2.0), {"shift": 2.0}),
        ((on(solver="amg"), on(solver="amg"), on(solver="cg")), (0.7,), on(solver="cg"), {"solver": "cg"}),
        ((on(solver="amg"), on(solver="amg"), on(solver="cg")), (0.7,), on(solver="amg"), {"solver": "amg"}),
        ((Settings(1, 2), Settings(4, 1)), (0.25, 0.5, math.log(0.1), 0.75), Settings(4, 2),
         {"k": 4.0, "threads": 2.0}),
    ],
)  # fmt: skip
def test_the_factors_of_settings_stand_in_the_text(
    settings: tuple[Settings, ...], powers: tuple[float, ...], asked: Settings, values: dict[str, float | str]
) -> None:
    formula, _ = with_effects(*settings, powers=powers, asked=asked)
    for n, p, cpu, bw in ((700.0, 8.0, 0.5, 90.0), (2000.0, 16.0, 1.0, 40.0)):
        said = [evaluated(text, N=n, P=p, cpu=cpu, bw=bw, **values) for text in texts(formula)]
        exact = formula.log_time(*(np.array([each]) for each in (n, p, cpu, bw)))[0]
        assert math.log(sum(said)) == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize(
    ("change", "computation", "communication"),
    [
        ({}, "1 N (P^-1 + 0.01) / cpu", "1 N^1.5 (1 - 1/P) P^0.25 / bw"),
        ({"growth": 0.0, "volume": 0.0}, "1 (P^-1 + 0.01) / cpu", "1 (1 - 1/P) P^0.25 / bw"),
        ({"speedup": -1.0, "cpu": 0.5}, "1 N (P + 0.01) / cpu^0.5", "1 N^1.5 (1 - 1/P) P^0.25 / bw"),
        ({"cpu": 0.0, "waiting": 1.0}, "1 N (P^-1 + 0.01)", "1 N^1.5 (1 - 1/P) P^0.25 / bw / cpu"),
        ({"speedup": 0.0}, "1 N (1 + 0.01) / cpu", "1 N^1.5 (1 - 1/P) P^0.25 / bw"),
        ({"bandwidth": 0.004, "spreading": 1.0}, "1 N (P^-1 + 0.01) / cpu", "0.595 N^1.5 (1 - 1/P) P"),
    ],
)
def test_powers_of_one_are_not_written_and_of_none_not_at_all(
    change: dict[str, float], computation: str, communication: str
) -> None:
    numbers = Numbers(0.0, 1.0, math.log(0.01), 1.0, 1.0, math.log(0.5 * 2.0**0.25), 0.5, 0.25, 1.0, 0.0)
    found = texts(Structure(numbers._replace(**change), 1.0, 1.0, 1.0))
    assert found[0] == computation
    assert found[1] == communication
